// SPDX-License-Identifier: Apache-2.0
// Element types: their codes, shared with the host API, and the types C++ lacks (half, bfloat16, complex).
#pragma once

#include "arch.cuh"

namespace pgas {

typedef int64_t i64;
typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;

// The order is part of the host API's contract (pypgas/dtypes.py lists the same names in the same order).
enum class DType : int {
  i8, i16, i32, i64, u8, u16, u32, u64, b8, f16, bf16, f32, f64, c64, c128, count
};

// Operations and comparisons; the host API's enumerations have the same members in the same order.
enum class Amo : int { fetch, set, swap, compare_swap, add, and_, or_, xor_, count };
enum class Compare : int { eq, ne, gt, ge, lt, le, count };
enum class SignalOp : int { set, add, count };
enum class Reduction : int { sum, prod, min, max, and_, or_, xor_, count };

namespace detail {
PGAS_FN u32 bits_of(float f) { u32 u; memcpy(&u, &f, 4); return u; }
PGAS_FN float float_of(u32 u) { float f; memcpy(&f, &u, 4); return f; }

PGAS_FN float half_to_float(u16 h) {
  const u32 sign = u32(h & 0x8000u) << 16, exponent = (h >> 10) & 31, fraction = h & 0x3ffu;
  if (exponent == 31) return float_of(sign | 0x7f800000u | (fraction << 13));
  if (exponent) return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = float(fraction) * 5.9604644775390625e-8f; // subnormal: fraction * 2^-24, exact
  return float_of(sign | bits_of(magnitude));
}

PGAS_FN u16 float_to_half(float f) { // round to nearest, ties to even
  const u32 u = bits_of(f), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return u16(sign | 0x7e00u | ((u >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return u16(sign | 0x7c00u); // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {                            // below 2^-14: subnormal half
    // Adding 0.5 puts the value's last representable bit at the float's own last bit, so the FPU rounds.
    const float shifted = float_of(magnitude) + 0.5f;
    return u16(sign | (bits_of(shifted) - 0x3f000000u));
  }
  const u32 rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return u16(sign | ((rounded - 0x38000000u) >> 13));
}

PGAS_FN float bfloat_to_float(u16 b) { return float_of(u32(b) << 16); }
PGAS_FN u16 float_to_bfloat(float f) {
  const u32 u = bits_of(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return u16((u >> 16) | 0x40u);
  return u16((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
} // namespace detail

// Storage types: arithmetic happens in float (see Wide below) and is rounded once, when stored.
struct half {
  u16 bits;
  half() = default;
  PGAS_FN explicit half(float f) : bits(detail::float_to_half(f)) {}
  PGAS_FN operator float() const { return detail::half_to_float(bits); }
};
struct bfloat16 {
  u16 bits;
  bfloat16() = default;
  PGAS_FN explicit bfloat16(float f) : bits(detail::float_to_bfloat(f)) {}
  PGAS_FN operator float() const { return detail::bfloat_to_float(bits); }
};

template <class F> struct alignas(2 * sizeof(F)) complex_of {
  F re, im;
  friend PGAS_FN complex_of operator+(complex_of a, complex_of b) { return {F(a.re + b.re), F(a.im + b.im)}; }
  friend PGAS_FN complex_of operator*(complex_of a, complex_of b) {
    return {F(a.re * b.re - a.im * b.im), F(a.re * b.im + a.im * b.re)};
  }
};
// NumPy aligns complex numbers to their parts only; arrays of them may start at such an address.
typedef complex_of<float> complex64;
typedef complex_of<double> complex128;

// NumPy's bool: one byte, 0 or 1.
struct bool8 {
  uint8_t value;
  friend PGAS_FN bool8 operator&(bool8 a, bool8 b) { return {uint8_t(a.value & b.value)}; }
  friend PGAS_FN bool8 operator|(bool8 a, bool8 b) { return {uint8_t(a.value | b.value)}; }
  friend PGAS_FN bool8 operator^(bool8 a, bool8 b) { return {uint8_t(a.value ^ b.value)}; }
};
template <class T> struct IsBool { static constexpr bool value = is_same<T, bool8>::value || is_same<T, bool>::value; };

// The type in which values of T are accumulated.
template <class T> struct Wide { typedef T type; };
template <> struct Wide<half> { typedef float type; };
template <> struct Wide<bfloat16> { typedef float type; };

template <class T> struct IsComplex { static constexpr bool value = false; };
template <class F> struct IsComplex<complex_of<F>> { static constexpr bool value = true; };

// The unsigned integer with T's size, on which compare-and-swap loops work.
template <int N> struct BitsOf;
template <> struct BitsOf<1> { typedef uint8_t type; };
template <> struct BitsOf<2> { typedef uint16_t type; };
template <> struct BitsOf<4> { typedef uint32_t type; };
template <> struct BitsOf<8> { typedef uint64_t type; };

} // namespace pgas
