// SPDX-License-Identifier: Apache-2.0
// Collectives on data. Every PE exposes its source and reads what it needs from the others' sources; results are
// written locally. Sources in the heap are read in place; others are staged, chunk by chunk; small ones travel in
// the gate's slot and cost one gate.
#pragma once

#include "rma.cuh"
#include "sync.cuh"

namespace pgas {

// What a chunk of the exchange makes readable: bytes [begin, end) of every PE's source.
struct Window {
  const State *state;
  const Team *team;
  u64 epoch, chunk, begin, end;
  bool inlined;

  PGAS_FN Slot *slot(i64 member) const { return &state->sync(team->members[member], team->id)->slots[epoch & 1]; }
};

// One PE's source during an exchange.
struct Exposed {
  u64 source, nbytes;
};

// Address of byte `offset` (inside the window) of a member's source.
PGAS_FN const char *at(const Window &w, const Exposed &e, i64 member, u64 offset) {
  const i64 pe = w.team->members[member];
  if (w.inlined) return reinterpret_cast<const char *>(w.slot(member)->payload) + offset;
  if (e.source == source_staged) return w.state->staging(pe, w.chunk) + (offset - w.begin);
  return w.state->heaps[pe] + e.source + offset;
}

// Runs an exchange: `a.nbytes` bytes from `src` (a.source says whether they are in the heap), on every PE the same
// unless `lengths_differ` (then a.extra carries this PE's length and a.nbytes only what must agree).
// consume(window, exposed[]) is called on each window in order. `exposed` needs room for team.size entries.
template <class W, class F>
PGAS_FN Gate exchange(const State &s, const Team &team, Arrival a, const void *src, bool lengths_differ,
                      Exposed *exposed, W &wait, F consume) {
  const u64 length = lengths_differ ? a.extra : a.nbytes;
  const bool inlined = !lengths_differ && length <= inline_bytes;
  if (inlined) {
    a.source = source_staged;
    copy(next_slot(s, team)->payload, src, length);
  } else if (a.source == source_staged) {
    copy(s.staging(s.pe, 0), src, length < s.staging_bytes ? length : s.staging_bytes);
  }
  Passage p = enter(s, team, a, wait);
  if (p.result != Gate::passed) return p.result;

  Window w = {&s, &team, p.epoch, 0, 0, 0, inlined};
  u64 longest = 0, longest_staged = 0;
  for (i64 i = 0; i < team.size; i++) {
    const Slot *slot = w.slot(i);
    exposed[i].source = slot->source;
    exposed[i].nbytes = lengths_differ ? slot->extra : length;
    if (exposed[i].nbytes > longest) longest = exposed[i].nbytes;
    if (exposed[i].source == source_staged && exposed[i].nbytes > longest_staged) longest_staged = exposed[i].nbytes;
  }
  // Everybody computes the same windows: one if nothing needs more than one staging buffer.
  const u64 step = longest_staged > s.staging_bytes ? s.staging_bytes : longest;
  for (;; w.chunk++) {
    w.end = w.begin + step < longest ? w.begin + step : longest;
    consume(w, static_cast<const Exposed *>(exposed));
    if (inlined) return Gate::passed; // the slot is not reused before everybody has entered the next call
    if (w.end >= longest) break;
    w.begin = w.end;
    if (a.source == source_staged && w.begin < length) {
      const u64 rest = length - w.begin;
      copy(s.staging(s.pe, w.chunk + 1), static_cast<const char *>(src) + w.begin, rest < step ? rest : step);
    }
    Arrival next = {a.operation, 0, w.begin, -2, 0, 0, false};
    p = enter(s, team, next, wait);
    if (p.result != Gate::passed) return p.result;
  }
  // Sources belong to their owners again only when everybody has read them.
  Arrival last = {a.operation, 0, longest, -3, 0, 0, false};
  return enter(s, team, last, wait).result;
}

enum class Reduction : int { sum, prod, min, max, and_, or_, xor_, count };

namespace detail {
template <class A> PGAS_FN bool is_nan(A a) {
  if constexpr (std::is_floating_point<A>::value) return a != a;
  else return false;
}
template <Reduction op, class A> PGAS_FN A combine(A a, A b) {
  if constexpr (op == Reduction::sum) return A(a + b);
  else if constexpr (op == Reduction::prod) return A(a * b);
  else if constexpr (op == Reduction::min) return (a < b || is_nan(a)) ? a : b; // NaN wins, as in numpy.minimum
  else if constexpr (op == Reduction::max) return (a > b || is_nan(a)) ? a : b;
  else if constexpr (op == Reduction::and_) return A(a & b);
  else if constexpr (op == Reduction::or_) return A(a | b);
  else return A(a ^ b);
}
template <class T> PGAS_FN T identity(Reduction op) { // of an exclusive scan's first PE: OpenSHMEM 1.6 gives 0
  (void)op;
  T zero;
  memset(&zero, 0, sizeof zero);
  return zero;
}
} // namespace detail

template <class T, Reduction op> constexpr bool reduction_supported() {
  constexpr bool bits = op == Reduction::and_ || op == Reduction::or_ || op == Reduction::xor_;
  constexpr bool order = op == Reduction::min || op == Reduction::max;
  if (std::is_same<T, bool8>::value) return bits;
  if (IsComplex<T>::value) return !bits && !order;
  if (bits) return std::is_integral<T>::value;
  return true;
}

// dst[i] = src[0][i] op src[1][i] op ... in team order, for `n` elements: the same bits on every PE.
// `source(member)` gives the address of the member's first element.
template <class T, Reduction op, class S>
PGAS_FN void reduce_elements(T *dst, i64 members, S source, u64 n) {
  typedef typename Wide<T>::type A;
  constexpr u64 block = 256;
  A acc[block];
  for (u64 begin = 0; begin < n; begin += block) {
    const u64 m = n - begin < block ? n - begin : block;
    if (members == 0) {
      for (u64 i = 0; i < m; i++) dst[begin + i] = detail::identity<T>(op);
      continue;
    }
    for (i64 k = 0; k < members; k++) {
      const char *bytes = source(k) + begin * sizeof(T);
      T in[block];
      memcpy(in, bytes, m * sizeof(T)); // plain arrays may start at any address
      if (k == 0) for (u64 i = 0; i < m; i++) acc[i] = A(in[i]);
      else for (u64 i = 0; i < m; i++) acc[i] = detail::combine<op>(acc[i], A(in[i]));
    }
    T out[block];
    for (u64 i = 0; i < m; i++) out[i] = T(acc[i]);
    memcpy(reinterpret_cast<char *>(dst) + begin * sizeof(T), out, m * sizeof(T));
  }
}

} // namespace pgas
