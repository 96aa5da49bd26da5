// SPDX-License-Identifier: Apache-2.0
// The few type traits the library needs; run-time compilers for GPUs bring no <type_traits>.
#pragma once

namespace pgas {

template <class T, T v> struct constant { static constexpr T value = v; };
template <class A, class B> struct is_same { static constexpr bool value = false; };
template <class A> struct is_same<A, A> { static constexpr bool value = true; };
template <bool c, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <class T> struct is_const { static constexpr bool value = false; };
template <class T> struct is_const<const T> { static constexpr bool value = true; };
template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_const<const T> { typedef T type; };

template <class T> struct is_integral { static constexpr bool value = false; };
#define PGAS_INTEGRAL(T) template <> struct is_integral<T> { static constexpr bool value = true; };
PGAS_INTEGRAL(char)
PGAS_INTEGRAL(signed char)
PGAS_INTEGRAL(unsigned char)
PGAS_INTEGRAL(short)
PGAS_INTEGRAL(unsigned short)
PGAS_INTEGRAL(int)
PGAS_INTEGRAL(unsigned int)
PGAS_INTEGRAL(long)
PGAS_INTEGRAL(unsigned long)
PGAS_INTEGRAL(long long)
PGAS_INTEGRAL(unsigned long long)
#undef PGAS_INTEGRAL
template <class T> struct is_floating_point {
  static constexpr bool value = is_same<T, float>::value || is_same<T, double>::value;
};

} // namespace pgas
