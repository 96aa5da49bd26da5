// SPDX-License-Identifier: Apache-2.0
// Kernels of h200_device_library.py: every PE runs its own copy of this module, bound to its own state.
#include <cooperative_groups.h>
#include <pypgas.cuh>

using namespace pgas;

#define KERNEL(name, ...) extern "C" __global__ void __launch_bounds__(1024) name(__VA_ARGS__)
#define AT_SCOPES(M) M(thread) M(warp) M(block)

// ---- making PEs: only C++ knows these structures

KERNEL(sizes, u64 *out, u64 max_teams, u64 staging) {
  out[0] = sizeof(State);
  out[1] = sizeof(Team);
  out[2] = AreaLayout(max_teams, staging).bytes;
  out[3] = sizeof(KernelReport);
  KernelReport *r = nullptr;
  out[4] = u64(&r->records[0]);
  out[5] = sizeof(KernelRecord);
  KernelRecord *k = nullptr;
  out[6] = u64(&k->reason);
  out[7] = u64(&k->block);
  out[8] = u64(&k->thread);
  out[9] = u64(&k->address);
  out[10] = u64(&k->expected);
  out[11] = u64(&k->seen);
  out[12] = u64(&k->waited_ns);
  out[13] = u64(&k->operation[0]);
}
KERNEL(fill, State *state, Team *world, char **heaps, char **areas, i64 *members, i64 pe, i64 n, u64 heap_bytes, u64 max_teams,
       u64 staging, u64 *abort_word, KernelReport *report, u64 limit_ns) {
  *world = Team{0, n, pe, members};
  *state = State{state_version, u32(sizeof(State)), pe, n, heap_bytes, heaps, areas, max_teams, staging,
                 AreaLayout(max_teams, staging), world, {abort_word, report, limit_ns}};
  raw::reset_sync(*state, 0);
}

// ---- copies: a block for each pair of offsets, every size in a slot of its own

constexpr int largest = 300, slot_bytes = 384;
template <class S, bool get_it> PGAS_FN void copies(char *slots, const char *source, int pe) {
  const unsigned from = blockIdx.x / 32, to = blockIdx.x % 32;
  constexpr unsigned threads = is_same<S, thread>::value ? 1 : is_same<S, warp>::value ? 32 : 1024;
  const unsigned workers = (blockDim.x + threads - 1) / threads, worker = threadIdx.x / threads;
  for (unsigned n = worker; n <= largest; n += workers) {
    char *slot = slots + (u64(blockIdx.x) * (largest + 1) + n) * slot_bytes + to;
    if (get_it) get<S>(slot, source + from, n, pe);
    else put<S>(slot, source + from, n, pe);
  }
}
#define COPIES(S)                                                                                                     \
  KERNEL(put_all_##S, char *slots, const char *source, int pe) { copies<S, false>(slots, source, pe); }               \
  KERNEL(get_all_##S, char *slots, const char *source, int pe) { copies<S, true>(slots, source, pe); }
AT_SCOPES(COPIES)

KERNEL(pattern, unsigned *x, u64 n, unsigned seed) {
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < n; i += u64(gridDim.x) * blockDim.x)
    x[i] = unsigned(i * 2654435761u + (i >> 32) * 40503u + seed);
}
KERNEL(put_long, char *dst, const char *src, u64 n, int pe) { put<block>(dst, src, n, pe); }
KERNEL(differences, const char *a, const char *b, u64 n, u64 *count) {
  u64 found = 0;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < n; i += u64(gridDim.x) * blockDim.x) found += a[i] != b[i];
  if (found) atomicAdd(reinterpret_cast<unsigned long long *>(count), found);
}

// ---- scalars and strides
#define SCALARS(T, name)                                                                                              \
  KERNEL(scalars_##name, T *x, const T *from, T *fetched, int n, int pe) {                                            \
    for (int i = threadIdx.x; i < n; i += blockDim.x) {                                                               \
      p(x + i, from[i], pe);                                                                                          \
      quiet();                                                                                                        \
      fetched[i] = g(x + i, pe);                                                                                      \
    }                                                                                                                 \
    __syncthreads();                                                                                                  \
    iput<block>(x + n, from, 3, 2, n / 2, pe);                                                                        \
    iget<warp>(fetched + n, x + n, 2, 3, n / 2, pe);                                                                  \
  }

// ---- atomics: all PEs at once on neighbouring elements of PE 0
// 0: added to; 1: or of a bit each; 2: and; 3: xor; 4: swap; 5: counted by compare_swap; 6: set and fetched
#define AMO_ADD(T, name)                                                                                              \
  KERNEL(amo_add_##name, T *x, int times) {                                                                           \
    for (int i = 0; i < times; i++) {                                                                                 \
      if (i % 2) atomic_add(x, T(1.0f), 0);                                                                           \
      else atomic_fetch_add(x, T(1.0f), 0);                                                                           \
    }                                                                                                                 \
  }
#define AMO_BITS(T, name)                                                                                             \
  KERNEL(amo_bits_##name, T *x, u64 *sums, int times) {                                                               \
    const int me = my_pe() * int(blockDim.x) + int(threadIdx.x), bit = me % int(8 * sizeof(T));                       \
    const int all = n_pes() * int(blockDim.x);                                                                        \
    for (int i = 0; i < times; i++) atomic_fetch_add(x, T(3), 0);                                                     \
    if (me < int(8 * sizeof(T))) {                                                                                    \
      atomic_or(x + 1, T(T(1) << bit), 0);                                                                            \
      atomic_and(x + 2, T(~(T(1) << bit)), 0);                                                                        \
      atomic_xor(x + 3, T(T(1) << bit), 0);                                                                           \
    }                                                                                                                 \
    sums[me] = u64(T(atomic_swap(x + 4, T(me % 100), 0)));                                                            \
    for (int i = 0; i < times; i++) {                                                                                 \
      T seen = atomic_fetch(x + 5, 0);                                                                                \
      for (;;) {                                                                                                      \
        const T before = atomic_compare_swap(x + 5, seen, T(seen + 1), 0);                                            \
        if (before == seen) break;                                                                                    \
        seen = before;                                                                                                \
      }                                                                                                               \
    }                                                                                                                 \
    if (me == all - 1) atomic_set(x + 6, T(42), 0);                                                                   \
    atomic_inc(x + 7, 0);                                                                                             \
  }
#define INTEGERS(M) M(int8_t, i8) M(int16_t, i16) M(int32_t, i32) M(int64_t, i64) M(uint8_t, u8) M(uint16_t, u16) M(uint32_t, u32) M(uint64_t, u64)
INTEGERS(SCALARS)
INTEGERS(AMO_BITS)
INTEGERS(AMO_ADD)
SCALARS(float, f32) SCALARS(double, f64) SCALARS(half, f16) SCALARS(bfloat16, bf16) SCALARS(complex64, c64) SCALARS(complex128, c128)
AMO_ADD(float, f32) AMO_ADD(double, f64) AMO_ADD(half, f16) AMO_ADD(bfloat16, bf16)
KERNEL(amo_add_c64, complex64 *x, int times) {
  for (int i = 0; i < times; i++) atomic_add(x, complex64{1.0f, 2.0f}, 0);
}

// ---- put with signal: around a ring, each payload checked by whoever sees its signal
template <class S> PGAS_FN void ring(unsigned *landing, unsigned *source, int n, u64 *signal, u64 *credit, int rounds, u64 *errors) {
  const int me = my_pe(), all = n_pes(), next = (me + 1) % all, before = (me + all - 1) % all;
  const unsigned rank = arch::scope_rank<S>(), size = arch::scope_size<S>();
  u64 wrong = 0;
  for (int r = 1; r <= rounds; r++) {
    for (int i = rank; i < n; i += size) source[i] = unsigned(r * 7919 + me * 31 + i);
    if (rank == 0 && r > 2) signal_wait_until(credit, Compare::ge, u64(r - 2)); // the landing place of r - 2 is free again
    arch::scope_sync<S>();
    unsigned *place = landing + (r & 1) * n;
    put_signal<S>(place, source, n, signal, r % 2 ? u64(r) : 1, r % 2 ? SignalOp::set : SignalOp::add, next);
    if (rank == 0) signal_wait_until(signal, Compare::ge, u64(r));
    arch::scope_sync<S>();
    for (int i = rank; i < n; i += size) wrong += place[i] != unsigned(r * 7919 + before * 31 + i);
    arch::scope_sync<S>();
    if (rank == 0) signal_add(credit, 1, before);
  }
  if (wrong) atomicAdd(reinterpret_cast<unsigned long long *>(errors), wrong);
}
#define RING(S)                                                                                                       \
  KERNEL(ring_##S, unsigned *landing, unsigned *source, int n, u64 *signal, u64 *credit, int rounds, u64 *errors) {   \
    ring<S>(landing, source, n, signal, credit, rounds, errors);                                                      \
  }
AT_SCOPES(RING)

// ---- waits on several variables: PE 0 waits, the others send in turn
KERNEL(waits, int *flags, u64 *errors) {
  const int me = my_pe(), all = n_pes();
  if (threadIdx.x) return;
  int status[16] = {1};
  size_t indices[16];
  if (me) {
    wait_until(flags + 32, Compare::ge, me); // one after the other
    p(flags + me, me * 10, 0);
    return;
  }
  u64 wrong = 0;
  for (int k = 1; k < all; k++) {
    p(flags + 32, k, k);
    const size_t i = wait_until_any(flags, all, status, Compare::ne, 0);
    wrong += i != size_t(k) || flags[i] != k * 10;
    status[i] = 1;
  }
  wrong += wait_until_any(flags, all, status, Compare::ne, 0) != ~size_t(0);
  for (int k = 1; k < all; k++) status[k] = 0;
  wait_until_all(flags, all, status, Compare::ge, 10);
  wrong += wait_until_some(flags, all, indices, status, Compare::gt, 9) != size_t(all - 1);
  wrong += !test_all(flags, all, status, Compare::gt, 9) || test_any(flags, all, status, Compare::lt, 0) != ~size_t(0);
  *errors += wrong;
}

// ---- barriers: what everybody wrote before is there after
template <class S> PGAS_FN void barriers(int *flags, int rounds, u64 *errors) {
  const int me = my_pe(), all = n_pes();
  const unsigned rank = arch::scope_rank<S>(), size = arch::scope_size<S>();
  u64 wrong = 0;
  for (int r = 1; r <= rounds; r++) {
    for (int k = rank; k < all * 64; k += size) put(flags + me * 64 + k % 64, &r, 1, k / 64);
    barrier_all<S>();
    for (int k = rank; k < all * 64; k += size) wrong += flags[k] != r;
    sync_all<S>();
  }
  if (wrong) atomicAdd(reinterpret_cast<unsigned long long *>(errors), wrong);
}
#define BARRIERS(S) KERNEL(barriers_##S, int *flags, int rounds, u64 *errors) { barriers<S>(flags, rounds, errors); }
AT_SCOPES(BARRIERS)

// ---- collectives
#define MOVES(S)                                                                                                      \
  KERNEL(broadcast_##S, int *dst, const int *src, u64 n, u64) { broadcast<S>(world(), dst, src, n, n_pes() - 1); }    \
  KERNEL(fcollect_##S, int *dst, const int *src, u64 n, u64) { fcollect<S>(world(), dst, src, n); }                   \
  KERNEL(collect_##S, int *dst, const int *src, u64 n, u64 room) { collect<S>(world(), dst, room, src, n); }          \
  KERNEL(alltoall_##S, int *dst, const int *src, u64 n, u64) { alltoall<S>(world(), dst, src, n); }
AT_SCOPES(MOVES)
#define REDUCES(S, T, name, op)                                                                                       \
  KERNEL(reduce_##S##_##name##_##op, T *dst, const T *src, u64 n, u64) { reduce<S, Reduction::op>(world(), dst, src, n); }
#define REDUCES_AT(S)                                                                                                 \
  REDUCES(S, float, f32, sum)                                                                                         \
  KERNEL(reduce_scatter_##S, double *dst, const double *src, u64 n, u64) { reduce_scatter<S, Reduction::sum>(world(), dst, src, n); } \
  KERNEL(inclusive_scan_##S, int *dst, const int *src, u64 n, u64) { inclusive_scan<S, Reduction::sum>(world(), dst, src, n); } \
  KERNEL(exclusive_scan_##S, int *dst, const int *src, u64 n, u64) { exclusive_scan<S, Reduction::sum>(world(), dst, src, n); }
AT_SCOPES(REDUCES_AT)
REDUCES(block, float, f32, prod) REDUCES(block, float, f32, min) REDUCES(block, float, f32, max) REDUCES(block, double, f64, sum)
REDUCES(block, half, f16, sum) REDUCES(block, bfloat16, bf16, sum) REDUCES(block, complex64, c64, sum) REDUCES(block, complex128, c128, prod)
REDUCES(block, int8_t, i8, sum) REDUCES(block, int16_t, i16, max) REDUCES(block, int32_t, i32, prod) REDUCES(block, int64_t, i64, min)
REDUCES(block, uint8_t, u8, and_) REDUCES(block, uint16_t, u16, or_) REDUCES(block, uint32_t, u32, xor_) REDUCES(block, uint64_t, u64, sum)

// ---- waits that never come to an end, and the grid
KERNEL(hang, u64 *signal) { signal_wait_until(signal, Compare::ge, 12345); }
KERNEL(hang_in_barrier, int) { barrier_all<block>(); }
KERNEL(grid_rounds, unsigned *count, int rounds, u64 *errors) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  u64 wrong = 0;
  for (int r = 1; r <= rounds; r++) {
    if (threadIdx.x == 0) atomicAdd(count, 1u);
    grid.sync();
    wrong += arch::load_relaxed(count) != unsigned(r) * gridDim.x;
    grid.sync();
  }
  if (wrong) atomicAdd(reinterpret_cast<unsigned long long *>(errors), wrong);
}

// ---- timings
template <class S> PGAS_FN void share(char *dst, const char *src, u64 n, int pe, u64 step) {
  for (u64 at = blockIdx.x * step; at < n; at += u64(gridDim.x) * step)
    put_nbi<S>(dst + at, src + at, n - at < step ? n - at : step, pe);
}
KERNEL(put_grid, char *dst, const char *src, u64 n, int pe, u64 step) { share<block>(dst, src, n, pe, step); }
KERNEL(plain_grid, uint4 *dst, const uint4 *src, u64 n) {
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < n; i += u64(gridDim.x) * blockDim.x) dst[i] = src[i];
}
#define ALONE(S) KERNEL(put_alone_##S, char *dst, const char *src, u64 n, int pe) { put<S>(dst, src, n, pe); }
AT_SCOPES(ALONE)

template <class S> PGAS_FN void ping_pong(char *data, const char *source, u64 bytes, u64 *signal, int rounds, u64 *ns) {
  const int me = my_pe(), other = 1 - me;
  u64 start = 0;
  for (int r = 1; r <= rounds + 10; r++) {
    if (r == 11) start = arch::now_ns();
    if (me == 1) {
      if (arch::scope_rank<S>() == 0) signal_wait_until(signal, Compare::ge, u64(r));
      arch::scope_sync<S>();
    }
    put_signal<S>(data, source, bytes, signal, u64(r), SignalOp::set, other);
    if (me == 0) {
      if (arch::scope_rank<S>() == 0) signal_wait_until(signal, Compare::ge, u64(r));
      arch::scope_sync<S>();
    }
  }
  if (threadIdx.x == 0) *ns = arch::now_ns() - start;
}
#define PING_PONG(S)                                                                                                  \
  KERNEL(ping_pong_##S, char *data, const char *source, u64 bytes, u64 *signal, int rounds, u64 *ns) {                \
    ping_pong<S>(data, source, bytes, signal, rounds, ns);                                                            \
  }
AT_SCOPES(PING_PONG)
// The least that any such exchange needs: 8 bytes, then the flag.
KERNEL(ping_pong_bare, u64 *mine, u64 *theirs, int first, int rounds, u64 *ns) {
  u64 start = 0;
  for (int r = 1; r <= rounds + 10; r++) {
    if (r == 11) start = arch::now_ns();
    if (!first) while (arch::load_acquire(mine) < u64(r)) {}
    theirs[8] = u64(r);
    arch::store_release(theirs, u64(r));
    if (first) while (arch::load_acquire(mine) < u64(r)) {}
  }
  *ns = arch::now_ns() - start;
}
template <class S> PGAS_FN void time_barriers(int rounds, u64 *ns) {
  for (int r = 0; r < 10; r++) barrier_all<S>();
  const u64 start = arch::now_ns();
  for (int r = 0; r < rounds; r++) barrier_all<S>();
  if (threadIdx.x == 0) *ns = arch::now_ns() - start;
}
#define TIME_BARRIERS(S) KERNEL(time_barriers_##S, int rounds, u64 *ns) { time_barriers<S>(rounds, ns); }
AT_SCOPES(TIME_BARRIERS)

KERNEL(add_library, u64 *x, u64 spread, int times, int pe) {
  const u64 i = (blockIdx.x * u64(blockDim.x) + threadIdx.x) * spread;
  for (int k = 0; k < times; k++) atomic_add(x + i, u64(1), pe);
}
KERNEL(add_plain, u64 *x, u64 spread, int times, int) {
  const u64 i = (blockIdx.x * u64(blockDim.x) + threadIdx.x) * spread;
  for (int k = 0; k < times; k++) atomicAdd_system(reinterpret_cast<unsigned long long *>(x + i), 1ull);
}
KERNEL(time_reduce, float *dst, const float *src, u64 n, int rounds, u64 *ns) {
  reduce<block>(world(), dst, src, n);
  const u64 start = arch::now_ns();
  for (int r = 0; r < rounds; r++) reduce<block>(world(), dst, src, n);
  if (threadIdx.x == 0) *ns = arch::now_ns() - start;
}
