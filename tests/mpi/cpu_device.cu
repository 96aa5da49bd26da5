// SPDX-License-Identifier: Apache-2.0
// Kernels of test_cpu_device.py.
#include <cooperative_groups.h>
#include <pypgas.cuh>

// ---- a block

// Thread i takes part in i rounds, at most 20, and sums how many came after it is left out.
__global__ void leaving(int *out) {
  __shared__ int present;
  for (int r = 0; r < 20; r++) {
    if (int(threadIdx.x) <= r) return;
    __syncthreads();
    if (int(threadIdx.x) == r + 1) present = 0;
    __syncthreads();
    atomicAdd(&present, 1);
    __syncthreads();
    out[threadIdx.x] += present;
  }
}
__global__ void block_votes(int *out, int limit) {
  const int n = blockDim.x, i = threadIdx.x;
  out[i] = __syncthreads_count(i < limit);
  out[n + i] = __syncthreads_and(i < limit);
  out[2 * n + i] = __syncthreads_or(i < limit);
}
__global__ void shared(int *out) {
  extern __shared__ int dynamic[];
  __shared__ int fixed[64];
  const int i = threadIdx.x, n = blockDim.x;
  dynamic[i] = blockIdx.x * 1000 + i;
  fixed[i] = blockIdx.x * 1000 + i + 14;
  if (gridDim.x > 1 && i == 0) __nanosleep(1000);
  __syncthreads();
  out[blockIdx.x * n + i] = dynamic[n - 1 - i] + fixed[n - 1 - i];
}
__global__ void diffuse(int *x, int steps) {
  const auto grid = cooperative_groups::this_grid();
  const int n = gridDim.x, b = blockIdx.x;
  for (int step = 0; step < steps; step++) {
    const int *from = x + step % 2 * n;
    if (threadIdx.x == blockDim.x - 1) x[(step + 1) % 2 * n + b] = (from[(b + n - 1) % n] + from[(b + 1) % n]) % 1009;
    grid.sync();
  }
}
__global__ void backwards(int *flags) {
  if (threadIdx.x == 0 && blockIdx.x + 1 < gridDim.x) pgas::wait_until(flags + blockIdx.x + 1, pgas::Compare::eq, 1);
  __syncthreads();
  if (threadIdx.x == blockDim.x - 1) pgas::arch::store_release(flags + blockIdx.x, 1);
}

// ---- a warp

__global__ void shuffle_from(int *out, int by, int width) { out[threadIdx.x] = __shfl_sync(~0u, int(threadIdx.x) * 10, by, width); }
__global__ void shuffle_up(int *out, int by, int width) { out[threadIdx.x] = __shfl_up_sync(~0u, int(threadIdx.x) * 10, by, width); }
__global__ void shuffle_down(int *out, int by, int width) { out[threadIdx.x] = __shfl_down_sync(~0u, int(threadIdx.x) * 10, by, width); }
__global__ void shuffle_xor(int *out, int by, int width) { out[threadIdx.x] = __shfl_xor_sync(~0u, int(threadIdx.x) * 10, by, width); }
__global__ void shuffle_double(double *out) { out[threadIdx.x] = __shfl_sync(~0u, threadIdx.x + 0.5, 31 - threadIdx.x); }
__global__ void shuffle_long(long long *out) { out[threadIdx.x] = __shfl_sync(~0u, (long long)(threadIdx.x) - (1ll << 40), 31 - threadIdx.x); }
__global__ void shuffle_float(float *out) { out[threadIdx.x] = __shfl_sync(~0u, threadIdx.x * 0.25f, 31 - threadIdx.x); }

__global__ void masked(int *out, unsigned mask, int operation) {
  const int lane = threadIdx.x;
  if (!(mask >> lane & 1)) {
    out[lane] = -1;
    return;
  }
  int result = 0;
  switch (operation) {
  case 0: result = int(__ballot_sync(mask, lane % 3 == 0)); break;
  case 1: result = __any_sync(mask, lane % 3 == 0); break;
  case 2: result = __all_sync(mask, lane % 3 == 0); break;
  case 3: result = __reduce_add_sync(mask, lane - 5); break;
  case 4: result = __reduce_min_sync(mask, lane - 5); break;
  case 5: result = __reduce_max_sync(mask, lane - 5); break;
  case 6: result = int(__reduce_min_sync(mask, unsigned(lane - 5))); break;
  case 7: result = int(__reduce_max_sync(mask, unsigned(lane - 5))); break;
  case 8: result = int(__reduce_and_sync(mask, unsigned(lane))); break;
  case 9: result = int(__reduce_or_sync(mask, unsigned(lane))); break;
  case 10: result = int(__reduce_xor_sync(mask, unsigned(lane))); break;
  default: result = __shfl_sync(mask, lane * 10, __ffs(int(mask)) - 1); break;
  }
  out[lane] = result;
}
__global__ void match_any(unsigned *out) { out[threadIdx.x] = __match_any_sync(~0u, threadIdx.x % 5); }
// 7 where all lanes have the same value, which they have unless `other` is negative.
__global__ void match_all(int *out, int other) {
  int all;
  const unsigned mask = __match_all_sync(~0u, threadIdx.x == 9 ? other : 7, &all);
  out[threadIdx.x] = all && mask == ~0u ? 7 : mask ? -2 : 0;
}
__global__ void warp_sums(int *out) {
  const unsigned mask = __activemask();
  out[threadIdx.x] = __reduce_add_sync(mask, int(threadIdx.x));
}

// ---- CUDA's atomic functions

template <class T> __device__ void all_atomics(T *x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(x, T(i));
  atomicSub(x + 1, T(i));
  atomicExch(x + 2, T(i + 1));
  atomicMax(x + 3, T(i));
  atomicMin(x + 4, T(i));
  for (T seen = x[5];;) {
    const T before = atomicCAS(x + 5, seen, T(seen + 1));
    if (before == seen) break;
    seen = before;
  }
  atomicOr(x + 6, T(1) << i % 31);
  atomicAnd(x + 7, T(~(T(1) << 5)));
  atomicXor(x + 8, T(i));
}
__global__ void atomics_int(int *x) { all_atomics(x); }
__global__ void atomics_unsigned(unsigned *x) { all_atomics(x); }
__global__ void atomics_long(long long *x) { all_atomics(x); }
__global__ void atomics_ulong(unsigned long long *x) { all_atomics(x); }
__global__ void atomics_rest(float *f, double *d, unsigned *wraps) {
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.5);
  atomicInc(wraps, 9u);
  atomicDec(wraps + 1, 9u);
}

// ---- streams

__global__ void meet(int *flags, int me) {
  pgas::arch::store_release(flags + me, 1);
  pgas::wait_until(flags + 1 - me, pgas::Compare::eq, 1);
}
__global__ void note(int *log, int what, int delay) {
  for (int i = 0; i < delay; i++) __nanosleep(1);
  log[1 + log[0]] = what;
  log[0]++;
}

// ---- kernels that go wrong

__device__ __noinline__ int deep(int n) {
  volatile int room[64];
  room[n % 64] = n;
  return n ? deep(n - 1) + room[n % 64] : 0;
}
__device__ int zero = 0;

__global__ void fails(int how, unsigned block, unsigned thread, int *out) {
  if (how < 0 || blockIdx.x != block || threadIdx.x != thread) {
    atomicAdd(out, 1);
    return;
  }
  if (how == 0) assert(threadIdx.x != 3);
  if (how == 1) __trap();
  if (how == 2) *(volatile int *)(16) = 1;
  if (how == 3) out[0] += deep(1 << 20);
  if (how == 4) out[0] += how / *(volatile int *)&zero;
  if (how == 5) for (volatile int i = 0;; i = i + 1) {}
}
__global__ void stuck(int how, int *out) {
  const unsigned lane = threadIdx.x;
  if (how == 0) {
    if (lane < 16) __syncthreads();
    else atomicAdd(out, __shfl_sync(~0u, int(lane), 0));
  } else if (how == 1) {
    __syncwarp(lane < 16 ? 0xffffffffu : 0xffff0001u);
  } else {
    __syncwarp(~(1u << lane));
  }
}
__global__ void store(int *x, int pe) { pgas::p(x, 1, pe); }
