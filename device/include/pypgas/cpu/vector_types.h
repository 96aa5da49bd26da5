// SPDX-License-Identifier: Apache-2.0
// CUDA's vector types and dim3, and the little template machinery that calls kernels.
#pragma once

#include <cstddef>

#define PGAS_VECTOR(T, name, align1, align2, align4)                                                                  \
  struct alignas(sizeof(T)) name##1 { T x; };                                                                         \
  struct alignas(align2) name##2 { T x, y; };                                                                         \
  struct name##3 { T x, y, z; };                                                                                      \
  struct alignas(align4) name##4 { T x, y, z, w; };                                                                   \
  inline name##1 make_##name##1(T x) { return {x}; }                                                                  \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                                          \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                                  \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
PGAS_VECTOR(signed char, char, 1, 2, 4)
PGAS_VECTOR(unsigned char, uchar, 1, 2, 4)
PGAS_VECTOR(short, short, 2, 4, 8)
PGAS_VECTOR(unsigned short, ushort, 2, 4, 8)
PGAS_VECTOR(int, int, 4, 8, 16)
PGAS_VECTOR(unsigned int, uint, 4, 8, 16)
PGAS_VECTOR(long, long, 8, 16, 16)
PGAS_VECTOR(unsigned long, ulong, 8, 16, 16)
PGAS_VECTOR(long long, longlong, 8, 16, 16)
PGAS_VECTOR(unsigned long long, ulonglong, 8, 16, 16)
PGAS_VECTOR(float, float, 4, 8, 16)
PGAS_VECTOR(double, double, 8, 16, 16)
#undef PGAS_VECTOR

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  dim3(pgas::cpu::Dim3 v) : x(v.x), y(v.y), z(v.z) {}
};

namespace pgas {
namespace cpu {

template <size_t... i> struct Indices {};
template <size_t n, size_t... i> struct Count { typedef typename Count<n - 1, n - 1, i...>::type type; };
template <size_t... i> struct Count<0, i...> { typedef Indices<i...> type; };
template <class T> struct Plain { typedef T type; };
template <class T> struct Plain<const T> { typedef T type; };

} // namespace cpu
} // namespace pgas
