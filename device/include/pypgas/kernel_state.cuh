// SPDX-License-Identifier: Apache-2.0
// What device code stands on: the state that was bound when its module was loaded, and waiting.
#pragma once

#include "raw/copy.cuh"

namespace pgas {

namespace detail {

// Bound by the host when it loads the module; there is nothing for kernels to initialise.
PGAS_FN const State &state() { return *arch::bound_state(); }

PGAS_FN const Team &team_of(const context &c) { return c.team ? *c.team : *state().world; }

// World number of a PE of the context's team.
PGAS_FN i64 world_pe(int pe, const context &c) {
  const Team &t = team_of(c);
  arch::check(pe >= 0 && pe < t.size, "pe is not a number of the team");
  return t.members[pe];
}

// Where `local`, symmetric memory of this PE, is in a peer's mapped heap.
template <class T> PGAS_FN T *remote(T *local, i64 pe) {
  const State &s = state();
  arch::check(u64(reinterpret_cast<const char *>(local) - s.heap()) < s.heap_bytes, "address is not symmetric memory");
  arch::check(s.heaps[pe] != nullptr, "the PE's memory is not mapped here");
  return peer(s, local, pe);
}

// A wait of a kernel, for raw::enter and raw::wait_until.
struct KernelWait {
  WaitFacts facts;
  arch::Idle patience;
  PGAS_FN explicit KernelWait(const char *operation, int team = -1) : facts{operation, nullptr, 0, 0, 0, 0, team, 0} {}
  PGAS_FN bool idle() { return patience(facts); }
};

} // namespace detail

PGAS_FN int my_pe() { return int(detail::state().pe); }
PGAS_FN int n_pes() { return int(detail::state().n_pes); }
PGAS_FN team world() { return team{detail::state().world}; }

// `symmetric` as PE `pe` has it, for plain loads and stores; null if its memory is not mapped here.
template <class T> PGAS_FN T *ptr(T *symmetric, int pe) {
  const State &s = detail::state();
  const u64 offset = u64(reinterpret_cast<const char *>(symmetric) - s.heap());
  if (offset >= s.heap_bytes || pe < 0 || pe >= s.n_pes || !s.heaps[pe]) return nullptr;
  return peer(s, symmetric, pe);
}

} // namespace pgas
