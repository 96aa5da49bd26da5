// SPDX-License-Identifier: Apache-2.0
// Kernels of test_kernel_collectives.py: every collective at one scope, chosen by number.
#include <pypgas.cuh>

using pgas::Reduction;
using pgas::block;
using pgas::thread;
using pgas::warp;

template <class S, class T>
__global__ void move(int which, pgas::team team, T *dst, const T *src, size_t n, int root) {
  switch (which) {
  case 0: pgas::broadcast<S>(team, dst, src, n, root); break;
  case 1: pgas::fcollect<S>(team, dst, src, n); break;
  case 2: pgas::alltoall<S>(team, dst, src, n); break;
  default: pgas::collect<S>(team, dst, size_t(root), src, n); break; // root: the room in dst
  }
}
template <class S, class T, int op> __device__ void combine(int which, pgas::team team, T *dst, const T *src, size_t n) {
  if constexpr (pgas::raw::reduction_supported<T, Reduction(op)>()) {
    switch (which) {
    case 0: pgas::reduce<S, Reduction(op)>(team, dst, src, n); break;
    case 1: pgas::reduce_scatter<S, Reduction(op)>(team, dst, src, n); break;
    case 2: pgas::inclusive_scan<S, Reduction(op)>(team, dst, src, n); break;
    default: pgas::exclusive_scan<S, Reduction(op)>(team, dst, src, n); break;
    }
  }
}
template <class S, class T>
__global__ void sum(int which, pgas::team team, T *dst, const T *src, size_t n) {
  combine<S, T, int(Reduction::sum)>(which, team, dst, src, n);
}
// All reductions, of one element type.
template <class T> __global__ void reduce(int op, pgas::team team, T *dst, const T *src, size_t n) {
  switch (op) {
  case 0: combine<block, T, 0>(0, team, dst, src, n); break;
  case 1: combine<block, T, 1>(0, team, dst, src, n); break;
  case 2: combine<block, T, 2>(0, team, dst, src, n); break;
  case 3: combine<block, T, 3>(0, team, dst, src, n); break;
  case 4: combine<block, T, 4>(0, team, dst, src, n); break;
  case 5: combine<block, T, 5>(0, team, dst, src, n); break;
  default: combine<block, T, 6>(0, team, dst, src, n); break;
  }
}

// A team's own view, and barriers and syncs on it.
__global__ void together(pgas::team team, pgas::team world, long long *box, int *seen) {
  const int me = team.my_pe(), n = team.n_pes();
  for (int r = 1; r <= 20; r++) {
    for (int pe = 0; pe < n; pe++) pgas::p(box + me, (long long)(r), team.translate(pe, world));
    if (r % 2) pgas::barrier(team);
    else {
      pgas::quiet();
      pgas::sync(team);
    }
    for (int pe = 0; pe < n; pe++)
      if (box[pe] < r) seen[0]++;
    pgas::sync(team);
  }
}
