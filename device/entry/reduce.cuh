// SPDX-License-Identifier: Apache-2.0
// Host entry points of the reductions.
#pragma once

#include "dispatch.cuh"

namespace pgas {
namespace entry {

namespace detail {
template <class F, class T> PGAS_FN bool with_reduction(Reduction op, F f, Of<T>) {
  switch (op) {
#define PGAS_REDUCTION_CASE(name)                                                                                     \
  case Reduction::name:                                                                                               \
    if constexpr (raw::reduction_supported<T, Reduction::name>()) {                                                        \
      f(Of<T>{}, constant<Reduction, Reduction::name>{});                                               \
      return true;                                                                                                    \
    } else return false;
    PGAS_REDUCTION_CASE(sum)
    PGAS_REDUCTION_CASE(prod)
    PGAS_REDUCTION_CASE(min)
    PGAS_REDUCTION_CASE(max)
    PGAS_REDUCTION_CASE(and_)
    PGAS_REDUCTION_CASE(or_)
    PGAS_REDUCTION_CASE(xor_)
#undef PGAS_REDUCTION_CASE
  default: return false;
  }
}
template <class T> struct Reduced { typedef T type; };
template <> struct Reduced<bool8> { typedef uint8_t type; };
} // namespace detail

PGAS_FN bool reduction_supported(DType type, Reduction op) {
  return with_type(type, [&](auto of) { return detail::with_reduction(op, [](auto, auto) {}, of); });
}

// dst[i] = source(0)[i] op source(1)[i] ...; see raw::reduce_elements.
template <class S> PGAS_FN bool reduce(DType type, Reduction op, void *dst, i64 members, S source, u64 n) {
  return with_type(type, [&](auto of) {
    return detail::with_reduction(op, [&](auto t, auto o) {
      typedef typename detail::Reduced<typename decltype(t)::type>::type T;
      raw::reduce_elements<thread, T, decltype(o)::value>(static_cast<T *>(dst), members, source, n);
    }, of);
  });
}

} // namespace entry
} // namespace pgas
