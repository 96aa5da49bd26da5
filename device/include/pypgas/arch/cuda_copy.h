// SPDX-License-Identifier: Apache-2.0
// Copies on a GPU: by one thread, or shared by the threads of a warp or a block. Regions must not overlap.
//
// Whatever the alignment, nearly all of a copy is 16-byte loads and stores, several of them on their way at a time:
// a load takes as long as hundreds of instructions. Where source and destination disagree modulo 16, each store is put
// together from two loads. No byte outside the source is read. Aligned elements of up to 8 bytes are never torn.
#pragma once

namespace pgas {
namespace arch {

namespace detail {

constexpr int in_flight = 6, shifted_in_flight = 3; // stores that a thread prepares at a time; all fits 64 registers

template <class U> PGAS_FN void copy_each(char *dst, const char *src, size_t n, unsigned rank, unsigned size) {
#pragma unroll 1
  for (size_t i = rank * sizeof(U); i < n; i += size * sizeof(U))
    *reinterpret_cast<U *>(dst + i) = *reinterpret_cast<const U *>(src + i);
}

// Few bytes, by the widest access that divides both addresses and the length.
PGAS_FN void copy_few(char *dst, const char *src, size_t n, unsigned rank, unsigned size) {
  const unsigned all = unsigned(reinterpret_cast<size_t>(dst) | reinterpret_cast<size_t>(src) | n);
  if (all % 2) copy_each<unsigned char>(dst, src, n, rank, size);
  else if (all % 4) copy_each<unsigned short>(dst, src, n, rank, size);
  else if (all % 8) copy_each<unsigned>(dst, src, n, rank, size);
  else copy_each<unsigned long long>(dst, src, n, rank, size);
}

// Aligned words. The last round repeats the last word instead of branching around what is not there.
PGAS_FN void copy_words(uint4 *to, const uint4 *from, size_t n, unsigned rank, size_t size) {
#pragma unroll 1
  for (size_t i = rank; i < n; i += in_flight * size) {
    uint4 held[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; k++) held[k] = from[i + k * size < n ? i + k * size : n - 1];
#pragma unroll
    for (int k = 0; k < in_flight; k++) to[i + k * size < n ? i + k * size : n - 1] = held[k];
  }
}

// Bytes `shift` to `shift` + 15 of two neighbours, 0 < shift < 16.
PGAS_FN uint4 join(uint4 a, uint4 b, unsigned shift) {
  const bool two = shift & 8, one = shift & 4;
  const unsigned bits = shift % 4 * 8;
  const unsigned p0 = two ? a.z : a.x, p1 = two ? a.w : a.y, p2 = two ? b.x : a.z, p3 = two ? b.y : a.w;
  const unsigned p4 = two ? b.z : b.x, p5 = two ? b.w : b.y;
  const unsigned q0 = one ? p1 : p0, q1 = one ? p2 : p1, q2 = one ? p3 : p2, q3 = one ? p4 : p3, q4 = one ? p5 : p4;
  return make_uint4(__funnelshift_r(q0, q1, bits), __funnelshift_r(q1, q2, bits), __funnelshift_r(q2, q3, bits),
                    __funnelshift_r(q3, q4, bits));
}
// The same for words that begin `shift` bytes into those of the source, of which there are n + 1.
PGAS_FN void copy_shifted(uint4 *to, const uint4 *from, unsigned shift, size_t n, unsigned rank, size_t size) {
#pragma unroll 1
  for (size_t i = rank; i < n; i += shifted_in_flight * size) {
    uint4 low[shifted_in_flight], high[shifted_in_flight];
#pragma unroll
    for (int k = 0; k < shifted_in_flight; k++) {
      const size_t at = i + k * size < n ? i + k * size : n - 1;
      low[k] = from[at];
      high[k] = from[at + 1];
    }
#pragma unroll
    for (int k = 0; k < shifted_in_flight; k++) to[i + k * size < n ? i + k * size : n - 1] = join(low[k], high[k], shift);
  }
}

// Not inlined: a kernel with many operations would otherwise hold many copies of this, and take long to compile.
PGAS_CALL void copy_shared(void *dst, const void *src, size_t n, unsigned rank, unsigned size) {
  char *d = static_cast<char *>(dst);
  const char *s = static_cast<const char *>(src);
  size_t head = (0 - reinterpret_cast<size_t>(d)) % 16;
  const unsigned shift = unsigned(reinterpret_cast<size_t>(s) + head) % 16;
  if (head < shift) head += 16; // so that the first word read lies within the source
  const size_t whole = n + shift > head ? (n + shift - head) / 16 : 0; // words of the source from there on
  const size_t words = whole - (shift && whole);
  if (!words) head = n;
  if (words && !shift) copy_words(reinterpret_cast<uint4 *>(d + head), reinterpret_cast<const uint4 *>(s + head), words, rank, size);
  else if (words) copy_shifted(reinterpret_cast<uint4 *>(d + head), reinterpret_cast<const uint4 *>(s + head - shift), shift, words, rank, size);
  size_t at = 0, few = head;
#pragma unroll 1
  for (int side = 0; side < 2; side++) {
    if (few) copy_few(d + at, s + at, few, rank, size);
    at = head + words * 16;
    few = n - at;
  }
}

} // namespace detail

PGAS_FN void copy_bytes(void *dst, const void *src, size_t n) { detail::copy_shared(dst, src, n, 0, 1); }
template <class S> PGAS_FN void copy_scope(void *dst, const void *src, size_t n) {
  detail::copy_shared(dst, src, n, scope_rank<S>(), scope_size<S>());
}

} // namespace arch
} // namespace pgas
