// SPDX-License-Identifier: Apache-2.0
// What CUDA's half and bfloat16 have in common, for the CPU device: arithmetic in float, rounded after each operation.
#pragma once

#include <pypgas/types.cuh>

#define PGAS_SMALL_FLOAT(name, storage, to_float, from_float)                                                         \
  struct name {                                                                                                       \
    unsigned short bits;                                                                                              \
    name() = default;                                                                                                 \
    name(float f) : bits(from_float(f)) {}                                                                            \
    name(double f) : bits(from_float(float(f))) {}                                                                    \
    name(int i) : bits(from_float(float(i))) {}                                                                       \
    name(unsigned i) : bits(from_float(float(i))) {}                                                                  \
    name(long i) : bits(from_float(float(i))) {}                                                                      \
    name(unsigned long i) : bits(from_float(float(i))) {}                                                             \
    name(long long i) : bits(from_float(float(i))) {}                                                                 \
    name(unsigned long long i) : bits(from_float(float(i))) {}                                                        \
    name(const storage &raw) : bits(raw.x) {}                                                                         \
    operator float() const { return to_float(bits); }                                                                 \
    operator storage() const { return {bits}; }                                                                       \
    name &operator+=(name b);                                                                                         \
    name &operator-=(name b);                                                                                         \
    name &operator*=(name b);                                                                                         \
    name &operator/=(name b);                                                                                         \
  };                                                                                                                  \
  inline name operator+(name a, name b) { return name(float(a) + float(b)); }                                         \
  inline name operator-(name a, name b) { return name(float(a) - float(b)); }                                         \
  inline name operator*(name a, name b) { return name(float(a) * float(b)); }                                         \
  inline name operator/(name a, name b) { return name(float(a) / float(b)); }                                         \
  inline name operator-(name a) { return name(-float(a)); }                                                           \
  inline bool operator==(name a, name b) { return float(a) == float(b); }                                             \
  inline bool operator!=(name a, name b) { return float(a) != float(b); }                                             \
  inline bool operator<(name a, name b) { return float(a) < float(b); }                                               \
  inline bool operator>(name a, name b) { return float(a) > float(b); }                                               \
  inline bool operator<=(name a, name b) { return float(a) <= float(b); }                                             \
  inline bool operator>=(name a, name b) { return float(a) >= float(b); }                                             \
  inline name &name::operator+=(name b) { return *this = *this + b; }                                                 \
  inline name &name::operator-=(name b) { return *this = *this - b; }                                                 \
  inline name &name::operator*=(name b) { return *this = *this * b; }                                                 \
  inline name &name::operator/=(name b) { return *this = *this / b; }                                                 \
  inline name __hadd(name a, name b) { return a + b; }                                                                \
  inline name __hsub(name a, name b) { return a - b; }                                                                \
  inline name __hmul(name a, name b) { return a * b; }                                                                \
  inline name __hdiv(name a, name b) { return a / b; }                                                                \
  inline name __hneg(name a) { return -a; }                                                                           \
  inline name __habs(name a) { return name(fabsf(float(a))); }                                                        \
  inline name __hfma(name a, name b, name c) { return name(fmaf(float(a), float(b), float(c))); }                     \
  inline bool __heq(name a, name b) { return a == b; }                                                                \
  inline bool __hne(name a, name b) { return a != b && a == a && b == b; }                                            \
  inline bool __hlt(name a, name b) { return a < b; }                                                                 \
  inline bool __hle(name a, name b) { return a <= b; }                                                                \
  inline bool __hgt(name a, name b) { return a > b; }                                                                 \
  inline bool __hge(name a, name b) { return a >= b; }                                                                \
  inline bool __hisnan(name a) { return a != a; }                                                                     \
  inline name __hmax(name a, name b) { return name(fmaxf(float(a), float(b))); }                                      \
  inline name __hmin(name a, name b) { return name(fminf(float(a), float(b))); }                                      \
  inline name hsqrt(name a) { return name(sqrtf(float(a))); }                                                         \
  inline name hexp(name a) { return name(expf(float(a))); }                                                           \
  inline name hlog(name a) { return name(logf(float(a))); }                                                           \
  inline name atomicAdd(name *p, name v) {                                                                            \
    unsigned short seen = __atomic_load_n(&p->bits, __ATOMIC_RELAXED);                                                \
    for (;;) {                                                                                                        \
      const name old = storage{seen}, next = old + v;                                                                 \
      if (__atomic_compare_exchange_n(&p->bits, &seen, next.bits, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return old; \
    }                                                                                                                 \
  }

#define PGAS_SMALL_FLOAT2(pair, name, make)                                                                           \
  struct alignas(4) pair {                                                                                            \
    name x, y;                                                                                                        \
    pair() = default;                                                                                                 \
    pair(name a, name b) : x(a), y(b) {}                                                                              \
  };                                                                                                                  \
  inline pair make(name a, name b) { return pair(a, b); }                                                             \
  inline pair operator+(pair a, pair b) { return pair(a.x + b.x, a.y + b.y); }                                        \
  inline pair operator-(pair a, pair b) { return pair(a.x - b.x, a.y - b.y); }                                        \
  inline pair operator*(pair a, pair b) { return pair(a.x * b.x, a.y * b.y); }                                        \
  inline pair __hadd2(pair a, pair b) { return a + b; }                                                               \
  inline pair __hsub2(pair a, pair b) { return a - b; }                                                               \
  inline pair __hmul2(pair a, pair b) { return a * b; }                                                               \
  inline pair __hfma2(pair a, pair b, pair c) { return pair(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }          \
  inline pair __hmax2(pair a, pair b) { return pair(__hmax(a.x, b.x), __hmax(a.y, b.y)); }                            \
  inline pair __hmin2(pair a, pair b) { return pair(__hmin(a.x, b.x), __hmin(a.y, b.y)); }                            \
  inline float __low2float(pair a) { return float(a.x); }                                                             \
  inline float __high2float(pair a) { return float(a.y); }
