// SPDX-License-Identifier: Apache-2.0
// The GPU's side of the architecture layer, for NVRTC and nvcc. All memory operations are inline PTX: compilers take
// milliseconds for it, where headers with the same operations take seconds. Everything works from sm_70 on.
#pragma once

#ifdef __CUDACC_RTC__
// NVRTC brings no stdint.h. These are the types that CUDA's own headers give it, so the two can meet.
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#else
#include <cstddef>
#include <cstdint>
#include <cstring>
#endif

#include "../report.cuh"
#include "../scopes.cuh"
#include "../traits.cuh"

#define PGAS_FN __device__ __forceinline__
#define PGAS_CALL inline __device__ __noinline__ // for what is too big to be inlined at every use
#define PGAS_GLOBAL static __device__

// Set by the host when it has loaded the module.
extern "C" {
__constant__ const pgas::State *pgas_bound_state;
}

namespace pgas {
namespace arch {

namespace detail {

// Loads, stores and read-modify-writes of N bytes. Every one clobbers memory, because the compiler does not know
// that it touches what the pointer points to.
template <int N> struct Word;
#define PGAS_WORD_ACCESS(type, constraint, ptx)                                                                       \
  typedef type bits;                                                                                                  \
  static PGAS_FN bits load_relaxed(const void *p) {                                                                   \
    bits v;                                                                                                           \
    asm volatile("ld.relaxed.sys." ptx " %0, [%1];" : "=" constraint(v) : "l"(p) : "memory");                         \
    return v;                                                                                                         \
  }                                                                                                                   \
  static PGAS_FN bits load_acquire(const void *p) {                                                                   \
    bits v;                                                                                                           \
    asm volatile("ld.acquire.sys." ptx " %0, [%1];" : "=" constraint(v) : "l"(p) : "memory");                         \
    return v;                                                                                                         \
  }                                                                                                                   \
  static PGAS_FN void store_relaxed(void *p, bits v) {                                                                \
    asm volatile("st.relaxed.sys." ptx " [%0], %1;" ::"l"(p), constraint(v) : "memory");                              \
  }                                                                                                                   \
  static PGAS_FN void store_release(void *p, bits v) {                                                                \
    asm volatile("st.release.sys." ptx " [%0], %1;" ::"l"(p), constraint(v) : "memory");                              \
  }
#define PGAS_WORD_ATOMIC(name, constraint, ptx)                                                                       \
  static PGAS_FN bits name(void *p, bits v) {                                                                         \
    bits old;                                                                                                         \
    asm volatile("atom.acq_rel.sys." ptx " %0, [%1], %2;" : "=" constraint(old) : "l"(p), constraint(v) : "memory");  \
    return old;                                                                                                       \
  }
#define PGAS_WORD_ATOMICS(constraint, width)                                                                          \
  PGAS_WORD_ATOMIC(fetch_add, constraint, "add.u" width)                                                              \
  PGAS_WORD_ATOMIC(fetch_and, constraint, "and.b" width)                                                              \
  PGAS_WORD_ATOMIC(fetch_or, constraint, "or.b" width)                                                                \
  PGAS_WORD_ATOMIC(fetch_xor, constraint, "xor.b" width)                                                              \
  PGAS_WORD_ATOMIC(exchange, constraint, "exch.b" width)                                                              \
  static PGAS_FN bits compare_swap(void *p, bits expected, bits desired) {                                            \
    bits old;                                                                                                         \
    asm volatile("atom.acq_rel.sys.cas.b" width " %0, [%1], %2, %3;"                                                  \
                 : "=" constraint(old) : "l"(p), constraint(expected), constraint(desired) : "memory");               \
    return old;                                                                                                       \
  }
template <> struct Word<8> { PGAS_WORD_ACCESS(unsigned long long, "l", "u64") PGAS_WORD_ATOMICS("l", "64") };
template <> struct Word<4> { PGAS_WORD_ACCESS(unsigned, "r", "u32") PGAS_WORD_ATOMICS("r", "32") };

// Smaller operands have no atomics of their own: they are a part of an aligned word of four bytes.
template <class Bits> struct Part {
  unsigned *word;
  unsigned shift;
  PGAS_FN explicit Part(void *p)
      : word(reinterpret_cast<unsigned *>(reinterpret_cast<size_t>(p) & ~size_t(3))),
        shift(unsigned(reinterpret_cast<size_t>(p) & 3) * 8) {}
  PGAS_FN Bits of(unsigned whole) const { return Bits(whole >> shift); }
  PGAS_FN unsigned with(unsigned whole, Bits part) const {
    return (whole & ~(unsigned(Bits(~Bits(0))) << shift)) | unsigned(part) << shift;
  }
  template <class F> PGAS_FN Bits update(F f) const {
    unsigned seen = Word<4>::load_relaxed(word);
    for (;;) {
      const unsigned old = Word<4>::compare_swap(word, seen, with(seen, f(of(seen))));
      if (old == seen) return of(old);
      seen = old;
    }
  }
  PGAS_FN Bits compare_swap(Bits expected, Bits desired) const {
    unsigned seen = Word<4>::load_relaxed(word);
    for (;;) {
      const bool same = of(seen) == expected;
      // Not equal: stored back as it is, so that the outcome is that of one atomic look.
      const unsigned old = Word<4>::compare_swap(word, seen, same ? with(seen, desired) : seen);
      if (old == seen) return of(old);
      seen = old;
    }
  }
};
#define PGAS_PART_ATOMICS                                                                                             \
  static PGAS_FN bits fetch_add(void *p, bits v) { return Part<bits>(p).update([v](bits x) { return bits(x + v); }); }  \
  static PGAS_FN bits fetch_and(void *p, bits v) { return Part<bits>(p).update([v](bits x) { return bits(x & v); }); }  \
  static PGAS_FN bits fetch_or(void *p, bits v) { return Part<bits>(p).update([v](bits x) { return bits(x | v); }); }   \
  static PGAS_FN bits fetch_xor(void *p, bits v) { return Part<bits>(p).update([v](bits x) { return bits(x ^ v); }); }  \
  static PGAS_FN bits exchange(void *p, bits v) { return Part<bits>(p).update([v](bits) { return v; }); }             \
  static PGAS_FN bits compare_swap(void *p, bits e, bits d) { return Part<bits>(p).compare_swap(e, d); }
template <> struct Word<2> { PGAS_WORD_ACCESS(unsigned short, "h", "u16") PGAS_PART_ATOMICS };
// PTX has no registers of one byte: a wider one holds it.
template <> struct Word<1> {
  typedef unsigned char bits;
  static PGAS_FN bits load_relaxed(const void *p) {
    unsigned v;
    asm volatile("ld.relaxed.sys.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return bits(v);
  }
  static PGAS_FN bits load_acquire(const void *p) {
    unsigned v;
    asm volatile("ld.acquire.sys.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return bits(v);
  }
  static PGAS_FN void store_relaxed(void *p, bits v) {
    asm volatile("st.relaxed.sys.u8 [%0], %1;" ::"l"(p), "r"(unsigned(v)) : "memory");
  }
  static PGAS_FN void store_release(void *p, bits v) {
    asm volatile("st.release.sys.u8 [%0], %1;" ::"l"(p), "r"(unsigned(v)) : "memory");
  }
  PGAS_PART_ATOMICS
};
#undef PGAS_PART_ATOMICS
#undef PGAS_WORD_ATOMICS
#undef PGAS_WORD_ATOMIC
#undef PGAS_WORD_ACCESS

template <class T> struct As {
  typedef Word<sizeof(T)> word;
  typedef typename word::bits bits;
  static PGAS_FN bits to(T v) { bits b; memcpy(&b, &v, sizeof b); return b; }
  static PGAS_FN T from(bits b) { T v; memcpy(&v, &b, sizeof v); return v; }
};

} // namespace detail

template <class T> PGAS_FN T load_relaxed(const T *p) { return detail::As<T>::from(detail::As<T>::word::load_relaxed(p)); }
template <class T> PGAS_FN T load_acquire(const T *p) { return detail::As<T>::from(detail::As<T>::word::load_acquire(p)); }
template <class T> PGAS_FN void store_relaxed(T *p, T v) { detail::As<T>::word::store_relaxed(p, detail::As<T>::to(v)); }
template <class T> PGAS_FN void store_release(T *p, T v) { detail::As<T>::word::store_release(p, detail::As<T>::to(v)); }

template <class T> PGAS_FN T fetch_add(T *p, T v) { return T(detail::As<T>::word::fetch_add(p, detail::As<T>::to(v))); }
template <class T> PGAS_FN T fetch_and(T *p, T v) { return T(detail::As<T>::word::fetch_and(p, detail::As<T>::to(v))); }
template <class T> PGAS_FN T fetch_or(T *p, T v) { return T(detail::As<T>::word::fetch_or(p, detail::As<T>::to(v))); }
template <class T> PGAS_FN T fetch_xor(T *p, T v) { return T(detail::As<T>::word::fetch_xor(p, detail::As<T>::to(v))); }
template <class T> PGAS_FN T exchange(T *p, T v) {
  return detail::As<T>::from(detail::As<T>::word::exchange(p, detail::As<T>::to(v)));
}
// Returns whether *p was `expected` and became `desired`; otherwise `expected` holds what was seen.
template <class T> PGAS_FN bool compare_exchange(T *p, T &expected, T desired) {
  typedef detail::As<T> A;
  const typename A::bits want = A::to(expected), old = A::word::compare_swap(p, want, A::to(desired));
  if (old == want) return true;
  expected = A::from(old);
  return false;
}

// Orders everything before it against everything after it, for every observer.
PGAS_FN void fence_system() { asm volatile("fence.sc.sys;" ::: "memory"); }
// Orders earlier stores before later ones.
PGAS_FN void fence_release() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

PGAS_FN void sleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory"); }
PGAS_FN void pause() { sleep(32); }
PGAS_FN unsigned long long now_ns() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

// A value at any address. An aligned one is one access; the GPU has no others.
template <class T> PGAS_FN T load_plain(const void *p) {
  T v;
  if (reinterpret_cast<size_t>(p) % sizeof(T) == 0) memcpy(&v, __builtin_assume_aligned(p, sizeof(T)), sizeof(T));
  else memcpy(&v, p, sizeof(T));
  return v;
}
template <class T> PGAS_FN void store_plain(void *p, T v) {
  if (reinterpret_cast<size_t>(p) % sizeof(T) == 0) memcpy(__builtin_assume_aligned(p, sizeof(T)), &v, sizeof(T));
  else memcpy(p, &v, sizeof(T));
}

constexpr int reduce_block = 1; // threads share the elements one by one, so that neighbours read neighbours

// ---- the calling thread and its scope

PGAS_FN unsigned block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
PGAS_FN unsigned thread_number() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
PGAS_FN unsigned block_number() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

template <class S> PGAS_FN unsigned scope_rank() {
  if constexpr (is_same<S, warp>::value) return thread_number() & 31;
  else if constexpr (is_same<S, block>::value) return thread_number();
  else return 0;
}
template <class S> PGAS_FN unsigned scope_size() {
  if constexpr (is_same<S, warp>::value) {
    const unsigned left = block_threads() - (thread_number() & ~31u);
    return left < 32 ? left : 32;
  } else if constexpr (is_same<S, block>::value) return block_threads();
  else return 1;
}
template <class S> PGAS_FN void scope_sync() {
  if constexpr (is_same<S, warp>::value) __syncwarp();
  else if constexpr (is_same<S, block>::value) __syncthreads();
}
// Work that a scope shares: thread `work_rank` of `work_size`.
template <class S> PGAS_FN uint64_t work_rank() { return scope_rank<S>(); }
template <class S> PGAS_FN uint64_t work_size() { return scope_size<S>(); }

[[noreturn]] PGAS_FN void leave() {
  asm volatile("exit;");
  __builtin_unreachable();
}

PGAS_FN const State *bound_state() { return pgas_bound_state; }

} // namespace arch
} // namespace pgas

#include "cuda_copy.h"
#include "cuda_wait.h"
