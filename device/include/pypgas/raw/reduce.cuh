// SPDX-License-Identifier: Apache-2.0
// Combining the same elements of several PEs, in team order, so that every PE gets the same bits.
#pragma once

#include "../state.cuh"

namespace pgas {
namespace raw {

namespace detail {
template <class A> PGAS_FN bool is_nan(A a) {
  if constexpr (is_floating_point<A>::value) return a != a;
  else return false;
}
template <Reduction op, class A> PGAS_FN A combine(A a, A b) {
  if constexpr (op == Reduction::sum) return A(a + b);
  else if constexpr (op == Reduction::prod) return A(a * b);
  else if constexpr (op == Reduction::min) return (a < b || is_nan(a)) ? a : b; // NaN wins, as in numpy.minimum
  else if constexpr (op == Reduction::max) return (a > b || is_nan(a)) ? a : b;
  else if constexpr (op == Reduction::and_) return A(a & b);
  else if constexpr (op == Reduction::or_) return A(a | b);
  else return A(a ^ b);
}
} // namespace detail

template <class T, Reduction op> PGAS_FN constexpr bool reduction_supported() {
  constexpr bool bits = op == Reduction::and_ || op == Reduction::or_ || op == Reduction::xor_;
  constexpr bool order = op == Reduction::min || op == Reduction::max;
  if (IsBool<T>::value) return bits;
  if (IsComplex<T>::value) return !bits && !order;
  if (bits) return is_integral<T>::value;
  return true;
}

// dst[i] = source(0)[i] op source(1)[i] op ..., for n elements; without members (the first PE of an exclusive scan)
// zeros, as OpenSHMEM 1.6 says. source(member) gives the address of the member's first element.
template <class S, class T, Reduction op, class F>
PGAS_FN void reduce_elements(T *dst, i64 members, F source, u64 n) {
  typedef typename Wide<T>::type A;
  const u64 rank = arch::work_rank<S>(), size = arch::work_size<S>();
  if constexpr (arch::reduce_block == 1) { // neighbouring threads take neighbouring elements, each several at a time
    constexpr int many = 4;
#pragma unroll 1
    for (u64 first = rank; first < n; first += many * size) {
      A acc[many];
      T part[many];
#pragma unroll 1
      for (i64 k = 0; k < members; k++) {
        const T *from = reinterpret_cast<const T *>(source(k));
        for (int j = 0; j < many; j++) part[j] = from[first + j * size < n ? first + j * size : first];
        for (int j = 0; j < many; j++) acc[j] = k == 0 ? A(part[j]) : detail::combine<op>(acc[j], A(part[j]));
      }
      if (members == 0) memset(part, 0, sizeof part);
      else for (int j = 0; j < many; j++) part[j] = T(acc[j]);
      for (int j = 0; j < many; j++)
        if (first + j * size < n) dst[first + j * size] = part[j];
    }
  } else {
    constexpr u64 block = arch::reduce_block; // elements a thread handles at a time
    for (u64 begin = rank * block; begin < n; begin += size * block) {
      const u64 m = n - begin < block ? n - begin : block;
      A acc[block];
      T part[block];
      for (i64 k = 0; k < members; k++) {
        memcpy(part, source(k) + begin * sizeof(T), m * sizeof(T)); // plain arrays may start at any address
        if (k == 0) for (u64 i = 0; i < m; i++) acc[i] = A(part[i]);
        else for (u64 i = 0; i < m; i++) acc[i] = detail::combine<op>(acc[i], A(part[i]));
      }
      if (members == 0) memset(part, 0, sizeof part);
      else for (u64 i = 0; i < m; i++) part[i] = T(acc[i]);
      memcpy(reinterpret_cast<char *>(dst) + begin * sizeof(T), part, m * sizeof(T));
    }
  }
}

} // namespace raw
} // namespace pgas
