// SPDX-License-Identifier: Apache-2.0
// Reductions over a tile of a warp: every thread of it gets the result.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T> struct plus { PGAS_FN T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { PGAS_FN T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { PGAS_FN T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { PGAS_FN T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { PGAS_FN T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { PGAS_FN T operator()(T a, T b) const { return a ^ b; } };

template <unsigned Size, class Parent, class T, class F>
PGAS_FN T reduce(const thread_block_tile<Size, Parent> &tile, T value, F combine) {
  for (unsigned step = Size / 2; step; step /= 2) value = combine(value, tile.shfl_xor(value, step));
  return value;
}

} // namespace cooperative_groups
