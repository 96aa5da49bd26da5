// SPDX-License-Identifier: Apache-2.0
// CUDA's half precision for the CPU device.
#pragma once

#include "pypgas_small_float.h"

struct __half_raw { unsigned short x; };
PGAS_SMALL_FLOAT(__half, __half_raw, ::pgas::detail::half_to_float, ::pgas::detail::float_to_half)
PGAS_SMALL_FLOAT2(__half2, __half, __halves2half2)
typedef __half half;
typedef __half2 half2;

inline __half2 make_half2(__half a, __half b) { return __half2(a, b); }
inline __half __float2half(float f) { return __half(f); }
inline __half __float2half_rn(float f) { return __half(f); }
inline __half __double2half(double f) { return __half(f); }
inline __half __int2half_rn(int i) { return __half(i); }
inline float __half2float(__half h) { return float(h); }
inline int __half2int_rn(__half h) { return int(rintf(float(h))); }
inline int __half2int_rz(__half h) { return int(float(h)); }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }
inline __half2 __float2half2_rn(float f) { return __half2(f, f); }
inline __half2 __floats2half2_rn(float a, float b) { return __half2(a, b); }
inline __half2 __half2half2(__half h) { return __half2(h, h); }
inline float2 __half22float2(__half2 h) { return make_float2(float(h.x), float(h.y)); }
inline __half __low2half(__half2 h) { return h.x; }
inline __half __high2half(__half2 h) { return h.y; }
