// SPDX-License-Identifier: Apache-2.0
// The CPU's side of the architecture layer: everything the library needs that a compiler builtin or one
// instruction provides. The headers above this one are the same for every processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define PGAS_FN inline
#define PGAS_RESTRICT __restrict__

namespace pgas {
namespace arch {

// Memory shared between processes of a node is coherent, so "system scope" is the builtin's own scope.
template <class T> PGAS_FN T load_relaxed(const T *p) { T v; __atomic_load(p, &v, __ATOMIC_RELAXED); return v; }
template <class T> PGAS_FN T load_acquire(const T *p) { T v; __atomic_load(p, &v, __ATOMIC_ACQUIRE); return v; }
template <class T> PGAS_FN void store_relaxed(T *p, T v) { __atomic_store(p, &v, __ATOMIC_RELAXED); }
template <class T> PGAS_FN void store_release(T *p, T v) { __atomic_store(p, &v, __ATOMIC_RELEASE); }

template <class T> PGAS_FN T fetch_add(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }
template <class T> PGAS_FN T fetch_and(T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_ACQ_REL); }
template <class T> PGAS_FN T fetch_or(T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL); }
template <class T> PGAS_FN T fetch_xor(T *p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_ACQ_REL); }
template <class T> PGAS_FN T exchange(T *p, T v) {
  T old;
  __atomic_exchange(p, &v, &old, __ATOMIC_ACQ_REL);
  return old;
}
// Returns whether *p was `expected` and became `desired`; otherwise `expected` holds what was seen.
template <class T> PGAS_FN bool compare_exchange(T *p, T &expected, T desired) {
  return __atomic_compare_exchange(p, &expected, &desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// Orders everything before it against everything after it, for every observer.
PGAS_FN void fence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
// Orders earlier stores before later ones.
PGAS_FN void fence_release() { __atomic_thread_fence(__ATOMIC_RELEASE); }

PGAS_FN void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// The C library's copy uses the widest access the processor has; regions may overlap.
PGAS_FN void copy_bytes(void *dst, const void *src, size_t n) { memmove(dst, src, n); }

} // namespace arch
} // namespace pgas
