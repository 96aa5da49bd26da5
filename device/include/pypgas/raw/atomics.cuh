// SPDX-License-Identifier: Apache-2.0
// Atomic updates of one element of a mapped peer's memory, for every type the operation has a meaning for.
#pragma once

#include "../state.cuh"

namespace pgas {
namespace raw {

namespace detail {
template <class T> struct AsBits {
  typedef typename BitsOf<sizeof(T)>::type type;
  static PGAS_FN type to(T v) { type b; memcpy(&b, &v, sizeof b); return b; }
  static PGAS_FN T from(type b) { T v; memcpy(&v, &b, sizeof b); return v; }
};

// Integers as they are, and a bool as the byte it is.
template <class T> struct Integer {
  typedef T type;
  static PGAS_FN T to(T v) { return v; }
  static PGAS_FN T from(T v) { return v; }
};
template <> struct Integer<bool8> : AsBits<bool8> {};
template <> struct Integer<bool> : AsBits<bool> {};

template <class T> PGAS_FN T sum(T a, T b) { return T(a + b); }
PGAS_FN half sum(half a, half b) { return half(float(a) + float(b)); }
PGAS_FN bfloat16 sum(bfloat16 a, bfloat16 b) { return bfloat16(float(a) + float(b)); }

template <class T> struct IsInteger { static constexpr bool value = is_integral<T>::value; };

// Floating-point and complex sums: retry until nobody came between.
template <class T> PGAS_FN T add_by_swap(T *p, T v) {
  typedef AsBits<T> B;
  typename B::type *word = reinterpret_cast<typename B::type *>(p), seen = arch::load_relaxed(word);
  while (!arch::compare_exchange(word, seen, B::to(sum(B::from(seen), v)))) {}
  return B::from(seen);
}
} // namespace detail

template <class T> PGAS_FN T atomic_fetch(const T *p) {
  typedef detail::AsBits<T> B;
  return B::from(arch::load_acquire(reinterpret_cast<const typename B::type *>(p)));
}
template <class T> PGAS_FN T atomic_swap(T *p, T v) {
  typedef detail::AsBits<T> B;
  return B::from(arch::exchange(reinterpret_cast<typename B::type *>(p), B::to(v)));
}
template <class T> PGAS_FN void atomic_set(T *p, T v) {
  typedef detail::AsBits<T> B;
  arch::store_release(reinterpret_cast<typename B::type *>(p), B::to(v));
}
// Compares bit for bit; returns what was there.
template <class T> PGAS_FN T atomic_compare_swap(T *p, T condition, T v) {
  typedef detail::AsBits<T> B;
  typename B::type seen = B::to(condition);
  arch::compare_exchange(reinterpret_cast<typename B::type *>(p), seen, B::to(v));
  return B::from(seen);
}
template <class T> PGAS_FN T atomic_fetch_add(T *p, T v) {
  if constexpr (detail::IsInteger<T>::value) return arch::fetch_add(p, v);
  else return detail::add_by_swap(p, v);
}
template <class T> PGAS_FN T atomic_fetch_and(T *p, T v) {
  typedef detail::Integer<T> B;
  return B::from(arch::fetch_and(reinterpret_cast<typename B::type *>(p), B::to(v)));
}
template <class T> PGAS_FN T atomic_fetch_or(T *p, T v) {
  typedef detail::Integer<T> B;
  return B::from(arch::fetch_or(reinterpret_cast<typename B::type *>(p), B::to(v)));
}
template <class T> PGAS_FN T atomic_fetch_xor(T *p, T v) {
  typedef detail::Integer<T> B;
  return B::from(arch::fetch_xor(reinterpret_cast<typename B::type *>(p), B::to(v)));
}

// Which operations mean something for T.
template <class T, Amo op> PGAS_FN constexpr bool atomic_supported() {
  constexpr bool words = sizeof(T) <= 8;
  constexpr bool boolean = IsBool<T>::value, integer = is_integral<T>::value;
  switch (op) {
  case Amo::fetch: case Amo::set: case Amo::swap: return words;
  case Amo::compare_swap: return words && (integer || boolean);
  case Amo::add: return words && !boolean;
  case Amo::and_: case Amo::or_: case Amo::xor_: return integer || boolean;
  default: return false;
  }
}

} // namespace raw
} // namespace pgas
