// SPDX-License-Identifier: Apache-2.0
// CUDA's atomic functions, at any scope: on the CPU every atomic is a system-wide one. A compare-and-swap that fails
// lets other threads run, because whoever it competes with may be a fiber of the same operating-system thread.
#pragma once

namespace pgas {
namespace cpu {

template <class T> struct Word { typedef T type; };
template <> struct Word<float> { typedef uint32_t type; };
template <> struct Word<double> { typedef uint64_t type; };

template <class T, class F> inline T update(T *p, F f) {
  typedef typename Word<T>::type W;
  W seen = __atomic_load_n(reinterpret_cast<W *>(p), __ATOMIC_RELAXED);
  for (;;) {
    T old;
    memcpy(&old, &seen, sizeof old);
    const T next = f(old);
    W bits;
    memcpy(&bits, &next, sizeof bits);
    if (__atomic_compare_exchange_n(reinterpret_cast<W *>(p), &seen, bits, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return old;
  }
}
template <class T> inline T compare_swap(T *p, T condition, T value) {
  const T old = condition;
  if (!__atomic_compare_exchange_n(p, &condition, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) api->yield();
  return condition == old ? old : condition;
}

} // namespace cpu
} // namespace pgas

#define PGAS_ATOMIC2(name, T, expression)                                                                             \
  inline T name(T *p, T v) { expression; }                                                                            \
  inline T name##_system(T *p, T v) { return name(p, v); }                                                            \
  inline T name##_block(T *p, T v) { return name(p, v); }
#define PGAS_ATOMIC_INTEGER(T)                                                                                        \
  PGAS_ATOMIC2(atomicAdd, T, return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST))                                       \
  PGAS_ATOMIC2(atomicSub, T, return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST))                                       \
  PGAS_ATOMIC2(atomicAnd, T, return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST))                                       \
  PGAS_ATOMIC2(atomicOr, T, return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST))                                         \
  PGAS_ATOMIC2(atomicXor, T, return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST))                                       \
  PGAS_ATOMIC2(atomicExch, T, return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST))                                     \
  PGAS_ATOMIC2(atomicMin, T, return pgas::cpu::update(p, [v](T old) { return old < v ? old : v; }))                   \
  PGAS_ATOMIC2(atomicMax, T, return pgas::cpu::update(p, [v](T old) { return old > v ? old : v; }))                   \
  inline T atomicCAS(T *p, T condition, T v) { return pgas::cpu::compare_swap(p, condition, v); }                     \
  inline T atomicCAS_system(T *p, T condition, T v) { return pgas::cpu::compare_swap(p, condition, v); }              \
  inline T atomicCAS_block(T *p, T condition, T v) { return pgas::cpu::compare_swap(p, condition, v); }
PGAS_ATOMIC_INTEGER(int)
PGAS_ATOMIC_INTEGER(unsigned int)
PGAS_ATOMIC_INTEGER(long long)
PGAS_ATOMIC_INTEGER(unsigned long long)
#undef PGAS_ATOMIC_INTEGER
PGAS_ATOMIC2(atomicInc, unsigned int, return pgas::cpu::update(p, [v](unsigned old) { return old >= v ? 0 : old + 1; }))
PGAS_ATOMIC2(atomicDec, unsigned int, return pgas::cpu::update(p, [v](unsigned old) { return old == 0 || old > v ? v : old - 1; }))
PGAS_ATOMIC2(atomicAdd, float, return pgas::cpu::update(p, [v](float old) { return old + v; }))
PGAS_ATOMIC2(atomicAdd, double, return pgas::cpu::update(p, [v](double old) { return old + v; }))
PGAS_ATOMIC2(atomicExch, float, return pgas::cpu::update(p, [v](float) { return v; }))
#undef PGAS_ATOMIC2
inline unsigned short atomicCAS(unsigned short *p, unsigned short condition, unsigned short v) {
  return pgas::cpu::compare_swap(p, condition, v);
}
