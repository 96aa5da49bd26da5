// SPDX-License-Identifier: Apache-2.0
// The GPU's copy, thread after thread, on the host: every offset and size, with memory that ends where it has to.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

struct alignas(16) uint4 { unsigned x, y, z, w; };
static uint4 make_uint4(unsigned a, unsigned b, unsigned c, unsigned d) { return {a, b, c, d}; }
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
  return unsigned(((unsigned long long)high << 32 | low) >> (bits & 31));
}
#define PGAS_FN inline
#define PGAS_CALL inline
namespace pgas {
namespace arch {
template <class S> unsigned scope_rank() { return 0; }
template <class S> unsigned scope_size() { return 1; }
} // namespace arch
} // namespace pgas
#include <pypgas/arch/cuda_copy.h>

int main() {
  for (unsigned threads : {1u, 2u, 32u})
    for (int from = 0; from < 32; from++)
      for (int to = 0; to < 32; to++)
        for (int n = 0; n <= 300; n++) {
          const int after = 40;
          char *source = static_cast<char *>(malloc(from + n)); // no more, so that a sanitizer sees a read past it
          unsigned char *target = static_cast<unsigned char *>(malloc(to + n + after));
          for (int i = 0; i < from + n; i++) source[i] = char(i * 7 + 3);
          memset(target, 0xAB, to + n + after);
          for (unsigned rank = 0; rank < threads; rank++)
            pgas::arch::detail::copy_shared(target + to, source + from, n, rank, threads);
          for (int i = 0; i < to + n + after; i++) {
            const unsigned char wanted = i < to || i >= to + n ? 0xAB : static_cast<unsigned char>(source[from + i - to]);
            if (target[i] == wanted) continue;
            printf("%u threads, offsets %d and %d, %d bytes: byte %d is wrong\n", threads, from, to, n, i - to);
            return 1;
          }
          free(source);
          free(target);
        }
  return 0;
}
