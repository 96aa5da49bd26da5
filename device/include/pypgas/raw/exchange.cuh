// SPDX-License-Identifier: Apache-2.0
// Collectives on data. Every PE exposes its source and reads what it needs from the others' sources; results are
// written locally. Sources in the heap are read in place; others are staged, chunk by chunk; small ones travel in
// the gate's slot and cost one gate.
#pragma once

#include "copy.cuh"
#include "gate.cuh"

namespace pgas {
namespace raw {

// What a step of the exchange makes readable: bytes [begin, end) of every PE's source.
struct Window {
  const State *state;
  const Team *team;
  u64 epoch, chunk, begin, end;
  bool inlined, lengths_differ;
  u64 common_length;

  PGAS_FN const Slot *slot(i64 member) const {
    return &state->sync(team->members[member], team->id)->slots[epoch & 1];
  }
  PGAS_FN u64 length(i64 member) const { return lengths_differ ? slot(member)->extra : common_length; }
  // Address of byte `offset` (inside the window) of a member's source.
  PGAS_FN const char *at(i64 member, u64 offset) const {
    if (inlined) return reinterpret_cast<const char *>(slot(member)->payload) + offset;
    const u64 source = slot(member)->source;
    const i64 pe = team->members[member];
    if (source == source_staged) return state->staging(pe, chunk) + (offset - begin);
    return state->heaps[pe] + source + offset;
  }
};

// The steps of an exchange of `a.nbytes` bytes from `src` (a.source says whether they are in the heap), on every PE the
// same number unless `lengths_differ` (then a.extra carries this PE's length, and a.nbytes only what must agree).
template <class S> struct Exchange {
  const State &s;
  const Team &team;
  Arrival a;
  const char *bytes;
  Window w;
  u64 length, longest, step;
  Gate result;

  PGAS_FN Exchange(const State &state, const Team &t, const Arrival &arrival, const void *src, bool lengths_differ)
      : s(state), team(t), a(arrival), bytes(static_cast<const char *>(src)),
        w{&state, &t, 0, 0, 0, 0, false, lengths_differ, 0}, longest(0), step(0), result(Gate::passed) {
    length = lengths_differ ? a.extra : a.nbytes;
    a.extra = length;
    w.inlined = !lengths_differ && length <= inline_bytes;
    w.common_length = length;
  }

  // Whether all PEs have entered; then the first window can be read.
  template <class W> PGAS_CALL bool begin(W &wait) {
    arch::scope_sync<S>(); // the source may be the work of all threads of the scope
    if (w.inlined) {
      a.source = source_staged;
      arch::copy_scope<S>(next_slot(s, team)->payload, bytes, length);
    } else if (a.source == source_staged) {
      arch::copy_scope<S>(s.staging(s.pe, 0), bytes, length < s.staging_bytes ? length : s.staging_bytes);
    }
    if (!enter(a, wait)) return false;
    u64 longest_staged = 0;
    for (i64 i = 0; i < team.size; i++) {
      const u64 n = w.length(i);
      if (n > longest) longest = n;
      if (w.slot(i)->source == source_staged && n > longest_staged) longest_staged = n;
    }
    // Everybody computes the same windows: one if nothing needs more than one staging buffer.
    step = longest_staged > s.staging_bytes ? s.staging_bytes : longest;
    w.end = step < longest ? step : longest;
    return true;
  }

  // Moves on to the next window. False if there is none, or not all PEs came along.
  template <class W> PGAS_CALL bool next(W &wait) {
    if (w.inlined) { // the slot is not reused before everybody has entered the next call
      arch::scope_sync<S>();
      return false;
    }
    if (w.end >= longest) { // sources belong to their owners again only when everybody has read them
      enter({a.operation, a.dtype, longest, -3, a.source, a.extra, false}, wait);
      return false;
    }
    w.begin = w.end;
    w.chunk++;
    if (a.source == source_staged && w.begin < length) {
      const u64 rest = length - w.begin;
      arch::copy_scope<S>(s.staging(s.pe, w.chunk), bytes + w.begin, rest < step ? rest : step);
    }
    // Later steps carry the source again, because slots are reused every second call.
    if (!enter({a.operation, a.dtype, w.begin, -2, a.source, a.extra, false}, wait)) return false;
    w.end = w.begin + step < longest ? w.begin + step : longest;
    return true;
  }

  template <class W> PGAS_FN bool enter(const Arrival &arrival, W &wait) {
    const Passage p = enter_scope<S>(s, team, arrival, wait);
    result = p.result;
    w.epoch = p.epoch;
    return result == Gate::passed;
  }
};

// Runs an exchange (see above). consume(window) is called by every thread of the scope S, on each window in order.
template <class S, class W, class F>
PGAS_FN Gate exchange(const State &s, const Team &team, const Arrival &a, const void *src, bool lengths_differ, W &wait,
                      F consume) {
  Exchange<S> e(s, team, a, src, lengths_differ);
  if (e.begin(wait)) {
    do {
      consume(static_cast<const Window &>(e.w));
    } while (e.next(wait));
  }
  return e.result;
}

enum class Collective { broadcast, fcollect, collect, gather, alltoall, reduce, reduce_scatter, inclusive_scan, exclusive_scan };

// Where a PE's result goes. Sizes in bytes; `nbytes` is this PE's source.
struct Result {
  Collective kind;
  char *dst;
  i64 root;
  u64 nbytes;
};

// Takes from a window what this PE's result needs. combine(dst, members, source, begin, end) reduces bytes
// [begin, end) of the first `members` sources into dst, where source(k) is the address of member k's byte `begin`.
template <class S, class C> PGAS_FN void consume(const Window &w, const Result &r, C combine) {
  const i64 me = w.team->me, size = w.team->size;
  const u64 block = r.nbytes / u64(size), first = u64(me) * block;
  const u64 low = first > w.begin ? first : w.begin, high = first + block < w.end ? first + block : w.end;
  const auto from = [&w](u64 offset) { return [&w, offset](i64 k) { return w.at(k, offset); }; };
  switch (r.kind) {
  case Collective::broadcast:
    if (me != r.root) arch::copy_scope<S>(r.dst + w.begin, w.at(r.root, w.begin), w.end - w.begin);
    return;
  case Collective::fcollect:
    for (i64 i = 0; i < size; i++)
      arch::copy_scope<S>(r.dst + u64(i) * r.nbytes + w.begin, w.at(i, w.begin), w.end - w.begin);
    return;
  case Collective::gather:
  case Collective::collect: {
    u64 base = 0;
    if (r.kind == Collective::gather && me != r.root) return;
    for (i64 i = 0; i < size; i++) {
      const u64 length = w.length(i), end = length < w.end ? length : w.end;
      if (w.begin < end) arch::copy_scope<S>(r.dst + base + w.begin, w.at(i, w.begin), end - w.begin);
      base += length;
    }
    return;
  }
  case Collective::alltoall:
    for (i64 i = 0; low < high && i < size; i++)
      arch::copy_scope<S>(r.dst + u64(i) * block + (low - first), w.at(i, low), high - low);
    return;
  case Collective::reduce: combine(r.dst + w.begin, size, from(w.begin), w.end - w.begin); return;
  case Collective::reduce_scatter:
    if (low < high) combine(r.dst + (low - first), size, from(low), high - low);
    return;
  case Collective::inclusive_scan: combine(r.dst + w.begin, me + 1, from(w.begin), w.end - w.begin); return;
  case Collective::exclusive_scan: combine(r.dst + w.begin, me, from(w.begin), w.end - w.begin); return;
  }
}

} // namespace raw
} // namespace pgas
