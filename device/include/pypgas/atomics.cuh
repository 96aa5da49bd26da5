// SPDX-License-Identifier: Apache-2.0
// Atomic operations on an element of PE `pe`. All are acquire and release at system scope.
#pragma once

#include "kernel_state.cuh"
#include "raw/atomics.cuh"

namespace pgas {

namespace detail {
template <Amo op, class T> PGAS_FN T *amo_target(T *dst, int pe, const context &c) {
  static_assert(raw::atomic_supported<T, op>(), "this element type has no such atomic operation");
  return remote(dst, world_pe(pe, c));
}
} // namespace detail

template <class T> PGAS_FN T atomic_fetch(const T *src, int pe, context c = {}) {
  return raw::atomic_fetch(detail::amo_target<Amo::fetch>(const_cast<T *>(src), pe, c));
}
template <class T> PGAS_FN void atomic_set(T *dst, T value, int pe, context c = {}) {
  raw::atomic_set(detail::amo_target<Amo::set>(dst, pe, c), value);
}
template <class T> PGAS_FN T atomic_swap(T *dst, T value, int pe, context c = {}) {
  return raw::atomic_swap(detail::amo_target<Amo::swap>(dst, pe, c), value);
}
// Stores `value` if the element equals `condition`; returns what was there.
template <class T> PGAS_FN T atomic_compare_swap(T *dst, T condition, T value, int pe, context c = {}) {
  return raw::atomic_compare_swap(detail::amo_target<Amo::compare_swap>(dst, pe, c), condition, value);
}
template <class T> PGAS_FN T atomic_fetch_add(T *dst, T value, int pe, context c = {}) {
  return raw::atomic_fetch_add(detail::amo_target<Amo::add>(dst, pe, c), value);
}
template <class T> PGAS_FN void atomic_add(T *dst, T value, int pe, context c = {}) {
  raw::atomic_fetch_add(detail::amo_target<Amo::add>(dst, pe, c), value);
}
template <class T> PGAS_FN T atomic_fetch_inc(T *dst, int pe, context c = {}) { return atomic_fetch_add(dst, T(1), pe, c); }
template <class T> PGAS_FN void atomic_inc(T *dst, int pe, context c = {}) { atomic_add(dst, T(1), pe, c); }
template <class T> PGAS_FN T atomic_fetch_and(T *dst, T value, int pe, context c = {}) {
  return raw::atomic_fetch_and(detail::amo_target<Amo::and_>(dst, pe, c), value);
}
template <class T> PGAS_FN T atomic_fetch_or(T *dst, T value, int pe, context c = {}) {
  return raw::atomic_fetch_or(detail::amo_target<Amo::or_>(dst, pe, c), value);
}
template <class T> PGAS_FN T atomic_fetch_xor(T *dst, T value, int pe, context c = {}) {
  return raw::atomic_fetch_xor(detail::amo_target<Amo::xor_>(dst, pe, c), value);
}
template <class T> PGAS_FN void atomic_and(T *dst, T value, int pe, context c = {}) { atomic_fetch_and(dst, value, pe, c); }
template <class T> PGAS_FN void atomic_or(T *dst, T value, int pe, context c = {}) { atomic_fetch_or(dst, value, pe, c); }
template <class T> PGAS_FN void atomic_xor(T *dst, T value, int pe, context c = {}) { atomic_fetch_xor(dst, value, pe, c); }

} // namespace pgas
