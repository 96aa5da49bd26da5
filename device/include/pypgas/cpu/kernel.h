// SPDX-License-Identifier: Apache-2.0
// CUDA C++ as the host's compiler sees it: included before a user's kernel source when that is compiled for the CPU.
// A block's threads are fibers on one operating-system thread, so per-block memory is that thread's own memory.
#pragma once

#define PGAS_CPU_MODE 1

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <typeinfo>

#include "abi.h"
#include "vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static thread_local
#ifndef __restrict__
#define __restrict__ __restrict
#endif

#define threadIdx (::pgas::cpu::self->thread_idx)
#define blockIdx (::pgas::cpu::self->block_idx)
#define blockDim (::pgas::cpu::self->launch->block)
#define gridDim (::pgas::cpu::self->launch->grid)
constexpr int warpSize = 32;

#undef assert
#define assert(condition)                                                                                             \
  (__builtin_expect(!(condition), 0) ? ::pgas::cpu::api->fail("assert", #condition, __FILE__, __LINE__) : (void)0)
inline void __trap() { pgas::cpu::api->fail("trap", "__trap()", nullptr, 0); }

namespace pgas {
namespace cpu {

inline char *dynamic_shared() { return self->shared; }

template <class F, F f> struct Call;
template <class... P, void (*f)(P...)> struct Call<void (*)(P...), f> {
  template <size_t... i> static void with(void **arguments, Indices<i...>) {
    f(*static_cast<typename Plain<P>::type *>(arguments[i])...);
  }
  static void run(void **arguments) { with(arguments, typename Count<sizeof...(P)>::type{}); }
};

} // namespace cpu
} // namespace pgas

#define PGAS_CPU_KERNEL(...)                                                                                    \
  {typeid(decltype(&__VA_ARGS__)).name(), &::pgas::cpu::Call<decltype(&__VA_ARGS__), &__VA_ARGS__>::run}

// ---- synchronisation

inline void __syncthreads() { pgas::cpu::api->sync_block(); }
inline int __syncthreads_count(int predicate) { return pgas::cpu::api->vote_block(predicate != 0); }
inline int __syncthreads_and(int predicate) {
  return pgas::cpu::api->vote_block(predicate == 0) == 0;
}
inline int __syncthreads_or(int predicate) { return pgas::cpu::api->vote_block(predicate != 0) != 0; }
inline void __syncwarp(unsigned mask = 0xffffffffu) { pgas::cpu::api->sync_warp(mask); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { pgas::cpu::api->yield(); }
inline unsigned __activemask() { return pgas::cpu::api->active_mask(); }

#include "warp.h"
#include "atomics.h"
#include "intrinsics.h"

// ---- the module's table, at the end of the compiled source

#define PGAS_CPU_MODULE(...)                                                                                          \
  namespace {                                                                                                         \
  struct PgasEntry { const char *type; void (*call)(void **); };                                                      \
  const PgasEntry pgas_entries[] = {__VA_ARGS__};                                                                     \
  constexpr int pgas_count = sizeof pgas_entries / sizeof pgas_entries[0];                                            \
  const char *pgas_types[pgas_count];                                                                                 \
  void (*pgas_calls[pgas_count])(void **);                                                                            \
  ::pgas::cpu::Thread **pgas_self() { return &::pgas::cpu::self; }                                                    \
  void pgas_bind(const ::pgas::State *state, const ::pgas::cpu::Api *api) {                                           \
    for (int i = 0; i < pgas_count; i++) {                                                                            \
      pgas_types[i] = pgas_entries[i].type;                                                                           \
      pgas_calls[i] = pgas_entries[i].call;                                                                           \
    }                                                                                                                 \
    ::pgas::cpu::api = api;                                                                                           \
    ::pgas::cpu::bind_state(state);                                                                                   \
  }                                                                                                                   \
  }                                                                                                                   \
  extern "C" __attribute__((visibility("default"))) const ::pgas::cpu::ModuleTable pgas_module;                       \
  const ::pgas::cpu::ModuleTable pgas_module = {::pgas::cpu::abi_version, pgas_count, pgas_types, pgas_calls,         \
                                                pgas_self, pgas_bind};
