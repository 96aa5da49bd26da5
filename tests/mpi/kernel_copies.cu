// SPDX-License-Identifier: Apache-2.0
// Kernels of test_kernel_copies.py: copies, single elements and atomics of every type.
#include <pypgas.cuh>

using pgas::block;
using pgas::thread;
using pgas::warp;

constexpr int offsets = 32, sizes = 301, slot = 384;

// Every size from every source offset, each to a slot of its own, at one offset in the slot.
template <class S, bool fetch>
__global__ void sweep(unsigned char *dst, const unsigned char *src, int offset, int pe) {
  for (int from = 0; from < offsets; from++)
    for (int size = 0; size < sizes; size++) {
      unsigned char *to = dst + (from * sizes + size) * slot + offset;
      if (fetch) pgas::get<S>(to, src + from, size, pe);
      else pgas::put<S>(to, src + from, size, pe);
    }
}

__global__ void large(unsigned char *dst, const unsigned char *src, unsigned long long count, int pe) {
  pgas::put(dst, src, count, pe);
}

template <class S, class T>
__global__ void copies(T *dst, const T *src, T *back, size_t n, int pe, pgas::context c) {
  pgas::put<S>(dst, src, n, pe, c);
  pgas::put_nbi<S>(dst + n, src, n, pe, c);
  pgas::quiet(c);
  pgas::get<S>(back, dst, n, pe, c);
  pgas::get_nbi<S>(back + n, dst + n, n, pe, c);
  pgas::quiet(c);
}
template <class S, class T>
__global__ void strided(T *dst, const T *src, T *back, long long tst, long long sst, size_t n, int pe) {
  pgas::iput<S>(dst, src, tst, sst, n, pe);
  pgas::quiet();
  pgas::iget<S>(back, dst, sst, tst, n, pe);
}

template <class T> __global__ void elements(T *box, const T *values, T *back, int n, int pe) {
  for (int i = 0; i < n; i++) pgas::p(box + i, values[i], pe);
  pgas::quiet();
  for (int i = 0; i < n; i++) back[i] = pgas::g(box + i, pe);
}

// Operation `op` on element i of the PE, with values[i]; what it fetches goes to out[i].
template <class T>
__global__ void atomics(int op, T *x, const T *conditions, const T *values, T *out, int n, int pe) {
  using pgas::Amo;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    T *at = x + i;
    const T v = values[i];
    switch (op) {
    case 0: out[i] = pgas::atomic_fetch(at, pe); break;
    case 1: pgas::atomic_set(at, v, pe); break;
    case 2: out[i] = pgas::atomic_swap(at, v, pe); break;
    default: break;
    }
    if constexpr (pgas::raw::atomic_supported<T, Amo::compare_swap>())
      if (op == 3) out[i] = pgas::atomic_compare_swap(at, conditions[i], v, pe);
    if constexpr (pgas::raw::atomic_supported<T, Amo::add>()) {
      if (op == 4) pgas::atomic_add(at, v, pe);
      if (op == 5) out[i] = pgas::atomic_fetch_add(at, v, pe);
    }
    if constexpr (pgas::raw::atomic_supported<T, Amo::add>() && !pgas::IsComplex<T>::value) {
      if (op == 6) pgas::atomic_inc(at, pe);
      if (op == 7) out[i] = pgas::atomic_fetch_inc(at, pe);
    }
    if constexpr (pgas::raw::atomic_supported<T, Amo::and_>()) {
      if (op == 8) pgas::atomic_and(at, v, pe);
      if (op == 9) out[i] = pgas::atomic_fetch_and(at, v, pe);
      if (op == 10) pgas::atomic_or(at, v, pe);
      if (op == 11) out[i] = pgas::atomic_fetch_or(at, v, pe);
      if (op == 12) pgas::atomic_xor(at, v, pe);
      if (op == 13) out[i] = pgas::atomic_fetch_xor(at, v, pe);
    }
  }
}
