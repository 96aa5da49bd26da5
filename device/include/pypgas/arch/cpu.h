// SPDX-License-Identifier: Apache-2.0
// The CPU's side of the architecture layer: everything the library needs that a compiler builtin or one
// instruction provides. The headers above this one are the same for every processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../scopes.cuh"
#include "../traits.cuh"

#define PGAS_FN inline
#define PGAS_CALL inline // for what a GPU should rather call than hold many copies of
#define PGAS_GLOBAL static
#ifdef PGAS_CPU_MODE
#include "../cpu/abi.h"
#endif

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

// A value at any address.
template <class T> PGAS_FN T load_plain(const void *p) { T v; memcpy(&v, p, sizeof v); return v; }
template <class T> PGAS_FN void store_plain(void *p, T v) { memcpy(p, &v, sizeof v); }

// Brings a line here to be changed. The compiler's own builtin only brings a copy to read unless told of the processor,
// and the change then has to ask a second time.
PGAS_FN void prefetch_for_write(const void *p) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char *>(p)));
#else
  __builtin_prefetch(p, 1);
#endif
}

// The C library's copy uses the widest access the processor has; regions may overlap.
PGAS_FN void copy_bytes(void *dst, const void *src, size_t n) { memmove(dst, src, n); }

constexpr int reduce_block = 1024; // elements a thread combines at a time: enough to vectorise

#ifdef PGAS_CPU_MODE
// Threads of a kernel are fibers that take turns, so the first of a scope does the scope's copying alone.
template <class S> PGAS_FN unsigned scope_rank() {
  if constexpr (is_same<S, warp>::value) return cpu::self->lane;
  else if constexpr (is_same<S, block>::value) return cpu::self->rank;
  else return 0;
}
template <class S> PGAS_FN unsigned scope_size() {
  const unsigned all = cpu::self->launch->threads, first = cpu::self->rank - cpu::self->lane;
  if constexpr (is_same<S, warp>::value) return all - first < 32 ? all - first : 32;
  else if constexpr (is_same<S, block>::value) return all;
  else return 1;
}
template <class S> PGAS_FN void scope_sync() {
  if constexpr (is_same<S, warp>::value) cpu::api->sync_warp(scope_size<warp>() < 32 ? (1u << scope_size<warp>()) - 1 : ~0u);
  else if constexpr (is_same<S, block>::value) cpu::api->sync_block();
}
[[noreturn]] PGAS_FN void leave() { cpu::api->leave(); __builtin_unreachable(); }
PGAS_FN unsigned block_number() { return cpu::self->block_number; }

// Between two looks at a variable: other threads run. False when the wait must end.
struct Idle {
  PGAS_FN bool operator()(WaitFacts &facts) { return cpu::api->idle(&facts); }
};
// The state that the host bound when it loaded the module.
PGAS_FN const State *bound_state() { return cpu::module_state; }
// Argument checks are cheap here, and a wrong address would corrupt another process.
PGAS_FN void check(bool holds, const char *what) {
  if (__builtin_expect(!holds, 0)) cpu::api->fail("argument", what, nullptr, 0);
}
PGAS_FN void failed(const char *what) { cpu::api->fail("operation", what, nullptr, 0); }
#else
template <class S> PGAS_FN unsigned scope_rank() { return 0; }
template <class S> PGAS_FN void scope_sync() {}
#endif
template <class S> PGAS_FN uint64_t work_rank() { return scope_rank<S>() == 0 ? 0 : uint64_t(1) << 48; }
template <class S> PGAS_FN uint64_t work_size() { return 1; }
template <class S> PGAS_FN void copy_scope(void *dst, const void *src, size_t n) {
  if (scope_rank<S>() == 0 && n) memmove(dst, src, n);
}

} // namespace arch
} // namespace pgas
