// SPDX-License-Identifier: Apache-2.0
// Collectives on data. Every PE exposes its source and reads what it needs from the others' sources; results are
// written locally. Sources in the heap are read in place; others are staged, chunk by chunk; small ones travel in
// the gate's slot and cost one gate.
#pragma once

#include "copy.cuh"
#include "gate.cuh"

namespace pgas {
namespace raw {

// What a step of the exchange makes readable: bytes [begin, end) of every block of every PE's source.
struct Window {
  const State *state;
  const Team *team;
  u64 epoch, chunk, begin, end;
  bool inlined, lengths_differ;
  u64 length_of_block, step; // block i of a staged source lies at i * step
  u64 blocks;

  PGAS_FN const Slot *slot(i64 member) const {
    return &state->sync(team->members[member], team->id)->slots[epoch & 1];
  }
  PGAS_FN u64 length(i64 member) const { return lengths_differ ? slot(member)->extra : length_of_block; }
  // Address of byte `offset` (inside the window) of a block of a member's source.
  PGAS_FN const char *at(i64 member, u64 block, u64 offset) const {
    if (inlined) return reinterpret_cast<const char *>(slot(member)->payload) + block * length_of_block + offset;
    const u64 source = slot(member)->source;
    const i64 pe = team->members[member];
    if (source == source_staged) return state->staging(pe, chunk) + block * step + (offset - begin);
    return state->heaps[pe] + source + block * length_of_block + offset;
  }
};

// Runs an exchange of `a.nbytes` bytes from `src` (a.source says whether they are in the heap), on every PE the same
// number unless `lengths_differ` (then a.extra carries this PE's length, and a.nbytes only what must agree). A source
// of several equal blocks, one for each PE, is passed in slices of all blocks, so that no PE waits for its turn.
// consume(window) is called by every thread of the scope S, on each window in order.
template <class S, class W, class F>
PGAS_FN Gate exchange(const State &s, const Team &team, Arrival a, const void *src, bool lengths_differ, u64 blocks,
                      W &wait, F consume) {
  const u64 length = lengths_differ ? a.extra : a.nbytes, block = length / blocks;
  if (!lengths_differ) a.extra = length;
  const bool inlined = !lengths_differ && length <= inline_bytes;
  const u64 room = blocks == 1 ? s.staging_bytes : s.staging_bytes / blocks / 16 * 16; // of a block in the buffer
  const char *bytes = static_cast<const char *>(src);
  const auto stage = [&](u64 chunk, u64 begin) {
    const u64 rest = block - begin, n = rest < room ? rest : room;
    for (u64 i = 0; i < blocks; i++) arch::copy_scope<S>(s.staging(s.pe, chunk) + i * room, bytes + i * block + begin, n);
  };
  arch::scope_sync<S>(); // the source may be the work of all threads of the scope
  if (inlined) {
    a.source = source_staged;
    arch::copy_scope<S>(next_slot(s, team)->payload, bytes, length);
  } else if (a.source == source_staged) {
    stage(0, 0);
  }
  Passage p = enter_scope<S>(s, team, a, wait);
  if (p.result != Gate::passed) return p.result;

  Window w = {&s, &team, p.epoch, 0, 0, 0, inlined, lengths_differ, block, room, blocks};
  u64 longest = 0, longest_staged = 0;
  for (i64 i = 0; i < team.size; i++) {
    const u64 n = w.length(i);
    if (n > longest) longest = n;
    if (w.slot(i)->source == source_staged && n > longest_staged) longest_staged = n;
  }
  // Everybody computes the same windows: one if nothing needs more than one staging buffer.
  const u64 step = !inlined && longest_staged > room ? room : longest;
  for (;; w.chunk++) {
    w.end = w.begin + step < longest ? w.begin + step : longest;
    consume(static_cast<const Window &>(w));
    if (inlined) { // the slot is not reused before everybody has entered the next call
      arch::scope_sync<S>();
      return Gate::passed;
    }
    if (w.end >= longest) break;
    w.begin = w.end;
    if (a.source == source_staged && w.begin < block) stage(w.chunk + 1, w.begin);
    // Later steps carry the source again, because slots are reused every second call.
    Arrival next = {a.operation, a.dtype, w.begin, -2, a.source, a.extra, false};
    p = enter_scope<S>(s, team, next, wait);
    if (p.result != Gate::passed) return p.result;
    w.epoch = p.epoch;
  }
  // Sources belong to their owners again only when everybody has read them.
  Arrival last = {a.operation, a.dtype, longest, -3, a.source, a.extra, false};
  return enter_scope<S>(s, team, last, wait).result;
}

enum class Collective { broadcast, fcollect, collect, gather, alltoall, reduce, reduce_scatter, inclusive_scan, exclusive_scan };

// Of how many blocks a source consists.
PGAS_FN u64 blocks_of(Collective kind, const Team &team) {
  return kind == Collective::alltoall || kind == Collective::reduce_scatter ? u64(team.size) : 1;
}

// Where a PE's result goes. Sizes in bytes; `nbytes` is this PE's source.
struct Result {
  Collective kind;
  char *dst;
  i64 root;
  u64 nbytes;
};

// Takes from a window what this PE's result needs. combine(dst, members, source, bytes) reduces that many bytes of the
// first `members` sources into dst, where source(k) is the address of member k's first.
template <class S, class C> PGAS_FN void consume(const Window &w, const Result &r, C combine) {
  const i64 me = w.team->me, size = w.team->size;
  const u64 n = w.end - w.begin;
  const auto from = [&w](u64 block) { return [&w, block](i64 k) { return w.at(k, block, w.begin); }; };
  switch (r.kind) {
  case Collective::broadcast:
    if (me != r.root) arch::copy_scope<S>(r.dst + w.begin, w.at(r.root, 0, w.begin), n);
    return;
  case Collective::fcollect:
    for (i64 i = 0; i < size; i++) arch::copy_scope<S>(r.dst + u64(i) * r.nbytes + w.begin, w.at(i, 0, w.begin), n);
    return;
  case Collective::gather:
  case Collective::collect: {
    u64 base = 0;
    if (r.kind == Collective::gather && me != r.root) return;
    for (i64 i = 0; i < size; i++) {
      const u64 length = w.length(i), end = length < w.end ? length : w.end;
      if (w.begin < end) arch::copy_scope<S>(r.dst + base + w.begin, w.at(i, 0, w.begin), end - w.begin);
      base += length;
    }
    return;
  }
  case Collective::alltoall:
    for (i64 i = 0; i < size; i++)
      arch::copy_scope<S>(r.dst + u64(i) * w.length_of_block + w.begin, w.at(i, u64(me), w.begin), n);
    return;
  case Collective::reduce: combine(r.dst + w.begin, size, from(0), n); return;
  case Collective::reduce_scatter: combine(r.dst + w.begin, size, from(u64(me)), n); return;
  case Collective::inclusive_scan: combine(r.dst + w.begin, me + 1, from(0), n); return;
  case Collective::exclusive_scan: combine(r.dst + w.begin, me, from(0), n); return;
  }
}

} // namespace raw
} // namespace pgas
