// SPDX-License-Identifier: Apache-2.0
// The gate: the one synchronisation under barriers and collectives. Every PE of a team adds itself to a counter in
// the team's PE 0; the last to arrive releases all. Signatures of the calls are summed in the same word, so that
// PEs that called different things find out at no further cost.
#pragma once

#include "../state.cuh"

namespace pgas {
namespace raw {

enum class Gate { passed, mismatch, abandoned };

struct Arrival {
  u32 operation, dtype;
  u64 nbytes;
  i64 detail;
  u64 source, extra;
  bool garbage;
};

struct Passage {
  Gate result;
  u64 epoch;
  bool all_garbage;
};

namespace detail {
constexpr u64 one_garbage = u64(1) << 16, count_mask = 0xffff, signature_mask = (u64(1) << 28) - 1;
constexpr u64 patience = u64(1) << 27; // looks at a release that is already on its way: seconds
constexpr int epoch_shift = 32, signature_shift = 36;

PGAS_FN u64 mix(u64 x) { // a bijective scrambler, so that small differences reach every bit
  x ^= x >> 31; x *= 0x7fb5d329728ea185ull;
  x ^= x >> 27; x *= 0x81dadef4bc2dd44dull;
  return x ^ (x >> 33);
}
PGAS_FN u64 signature(const Arrival &a) {
  return mix(mix(mix(a.operation + 1) ^ a.nbytes) ^ (u64(a.detail) * 31 + a.dtype)) & signature_mask;
}
} // namespace detail

// The slot that the next call of this PE on the team will use: its payload may be filled before enter().
PGAS_FN Slot *next_slot(const State &s, const Team &team) {
  TeamSync *own = s.sync(s.pe, team.id);
  return &own->slots[(own->epoch + 1) & 1];
}

// Passes when all PEs of the team have entered with the same signature. A wait that ends early takes this PE's
// arrival back, so that the team is as if it had not called.
template <class W> PGAS_CALL Passage enter(const State &s, const Team &team, const Arrival &a, W &wait) {
  using namespace detail;
  TeamSync *own = s.sync(s.pe, team.id);
  const u64 epoch = own->epoch + 1, sign = signature(a), n = u64(team.size);
  Slot *slot = &own->slots[epoch & 1];
  slot->operation = a.operation;
  slot->dtype = a.dtype;
  slot->nbytes = a.nbytes;
  slot->detail = a.detail;
  slot->source = a.source;
  slot->extra = a.extra;
  arch::store_relaxed(&slot->epoch, epoch); // for who looks into a call that hangs; arriving is the release
  if (n == 1) {
    own->epoch = epoch;
    arch::fence_system();
    return {Gate::passed, epoch, a.garbage};
  }
  u64 *arrive = &s.sync(team.members[0], team.id)->arrive;
  const u64 mine = 1 | (a.garbage ? one_garbage : 0) | (sign << signature_shift);
  const u64 now = arch::fetch_add(arrive, mine) + mine;
  if ((now & count_mask) == n) {
    const u64 mismatch = (now >> signature_shift) != ((sign * n) & signature_mask);
    const u64 all_garbage = ((now >> 16) & count_mask) == n;
    const u64 word = epoch << 2 | all_garbage << 1 | mismatch;
    arch::store_release(arrive, ((epoch + 1) & 15) << epoch_shift);
    arch::fence_release(); // one for all: every store below is a release
    for (i64 i = 0; i < team.size; i++) arch::store_relaxed(&s.sync(team.members[i], team.id)->release, word);
    own->epoch = epoch;
    return {mismatch ? Gate::mismatch : Gate::passed, epoch, all_garbage != 0};
  }
  for (;;) {
    const u64 word = arch::load_acquire(&own->release);
    if (word >> 2 == epoch) {
      own->epoch = epoch;
      return {word & 1 ? Gate::mismatch : Gate::passed, epoch, (word & 2) != 0};
    }
    if (!wait.idle()) break;
  }
  // Withdraw. If everybody has arrived, or the counter has moved on, the call is complete and its release on the way.
  u64 seen = arch::load_acquire(arrive);
  while (((seen >> epoch_shift) & 15) == (epoch & 15) && (seen & count_mask) != n) {
    if (arch::compare_exchange(arrive, seen, seen - mine)) {
      arch::store_release(&slot->epoch, u64(0));
      return {Gate::abandoned, epoch, false};
    }
  }
  u64 word = 0;
  for (u64 looks = 0; (word = arch::load_acquire(&own->release)) >> 2 != epoch; looks++) {
    if (looks > patience) return {Gate::abandoned, epoch, false}; // who had to release us has died on the way
    arch::pause();
  }
  own->epoch = epoch;
  return {word & 1 ? Gate::mismatch : Gate::passed, epoch, (word & 2) != 0};
}

// enter(), called by all threads of a scope: one of them enters, all learn the outcome, and everything the scope did
// before is ordered before what other PEs do after.
template <class S, class W> PGAS_FN Passage enter_scope(const State &s, const Team &team, const Arrival &a, W &wait) {
  if constexpr (is_same<S, thread>::value) return enter(s, team, a, wait);
  else {
    TeamSync *own = s.sync(s.pe, team.id);
    arch::scope_sync<S>();
    if (arch::scope_rank<S>() == 0) own->outcome = u64(enter(s, team, a, wait).result);
    arch::scope_sync<S>();
    const Passage p = {Gate(arch::load_relaxed(&own->outcome)), arch::load_relaxed(&own->epoch), false};
    arch::scope_sync<S>(); // nobody may enter again before all have read the outcome
    return p;
  }
}

// Prepares a team id for a new team. Every member calls it before any of them can enter.
PGAS_FN void reset_sync(const State &s, u32 team) {
  TeamSync *own = s.sync(s.pe, team);
  own->epoch = 0;
  own->slots[0].epoch = own->slots[1].epoch = 0;
  arch::store_relaxed(&own->release, u64(0));
  arch::store_release(&own->arrive, u64(1) << detail::epoch_shift);
}

} // namespace raw
} // namespace pgas
