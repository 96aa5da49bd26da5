// SPDX-License-Identifier: Apache-2.0
// Barriers and collectives in kernels. All PEs of the team call them, from one thread, warp or block each at a time.
// Kernels and the host count the same calls: a barrier of a kernel meets a barrier of another PE's host program.
#pragma once

#include "kernel_state.cuh"
#include "operations.cuh"
#include "raw/exchange.cuh"
#include "raw/reduce.cuh"

namespace pgas {

namespace detail {

PGAS_FN void require(raw::Gate result) {
  if (result == raw::Gate::passed) return;
  if (result == raw::Gate::mismatch) arch::failed("the PEs of the team made different collective calls");
  arch::leave();
}

// Operations of this PE are complete before it arrives: one thread speaks for its scope.
template <class S> PGAS_FN void complete() {
  arch::scope_sync<S>();
  if (arch::scope_rank<S>() == 0) raw::quiet();
}

template <class S> PGAS_FN void pass(Operation op, const char *name, team t) {
  KernelWait wait(name, int(t.handle->id));
  require(raw::enter_scope<S>(state(), *t.handle, {u32(op), 0, 0, 0, 0, 0, false}, wait).result);
}

template <class S, class T, class C>
PGAS_FN void collective(Operation op, raw::Collective kind, const char *name, team t, T *dst, size_t dst_count, const T *src,
                        size_t count, i64 root, i64 must_agree, bool lengths_differ, DType type, C combine) {
  const State &s = state();
  const u64 nbytes = count * sizeof(T);
  const char *from = reinterpret_cast<const char *>(src), *to = reinterpret_cast<const char *>(dst);
  const u64 offset = u64(from - s.heap());
  const bool apart = from >= to + dst_count * sizeof(T) || to >= from + nbytes;
  const bool in_place = offset + nbytes <= s.heap_bytes && (apart || kind == raw::Collective::broadcast);
  KernelWait wait(name, int(t.handle->id));
  // Nobody reads a broadcast's source but the root's, so the others need not expose theirs.
  const bool unread = kind == raw::Collective::broadcast && t.handle->me != root;
  const u64 source = in_place ? offset : unread ? 0 : source_staged;
  const raw::Arrival a = {u32(op), u32(type), lengths_differ ? 0 : nbytes, must_agree, source, nbytes, false};
  const raw::Result r = {kind, reinterpret_cast<char *>(dst), root, nbytes};
  complete<S>();
  require(raw::exchange<S>(s, *t.handle, a, src, lengths_differ, raw::blocks_of(kind, *t.handle), wait,
                           [&](const raw::Window &w) { raw::consume<S>(w, r, combine); }));
}

struct NoCombine {
  template <class F> PGAS_FN void operator()(char *, i64, F, u64) const {}
};
template <class S, class T, Reduction op> struct Combine {
  template <class F> PGAS_FN void operator()(char *dst, i64 members, F source, u64 bytes) const {
    raw::reduce_elements<S, T, op>(reinterpret_cast<T *>(dst), members, source, bytes / sizeof(T));
  }
};

// The host's code of an element type: signatures of a kernel's call and a host's call must be equal.
template <class T> PGAS_FN constexpr DType code_of() {
  if constexpr (is_same<T, half>::value) return DType::f16;
  else if constexpr (is_same<T, bfloat16>::value) return DType::bf16;
  else if constexpr (is_same<T, float>::value) return DType::f32;
  else if constexpr (is_same<T, double>::value) return DType::f64;
  else if constexpr (is_same<T, complex64>::value) return DType::c64;
  else if constexpr (is_same<T, complex128>::value) return DType::c128;
  else if constexpr (is_same<T, bool8>::value || is_same<T, bool>::value) return DType::b8;
  else if constexpr (T(-1) < T(0))
    return sizeof(T) == 1 ? DType::i8 : sizeof(T) == 2 ? DType::i16 : sizeof(T) == 4 ? DType::i32 : DType::i64;
  else return sizeof(T) == 1 ? DType::u8 : sizeof(T) == 2 ? DType::u16 : sizeof(T) == 4 ? DType::u32 : DType::u64;
}

} // namespace detail

// barrier completes this PE's puts and atomics, sync only its local stores.
template <class S = thread> PGAS_FN void barrier(team t) {
  detail::complete<S>();
  detail::pass<S>(Operation::barrier, "barrier", t);
}
template <class S = thread> PGAS_FN void barrier_all() {
  detail::complete<S>();
  detail::pass<S>(Operation::barrier, "barrier_all", world());
}
template <class S = thread> PGAS_FN void sync(team t) { detail::pass<S>(Operation::sync, "sync", t); }
template <class S = thread> PGAS_FN void sync_all() { detail::pass<S>(Operation::sync, "sync_all", world()); }

// n elements of the root's src to everybody's dst, the root's included.
template <class S = thread, class T> PGAS_FN void broadcast(team t, T *dst, const T *src, size_t n, int root) {
  if (t.handle->me == root && dst != src) {
    arch::scope_sync<S>();
    arch::copy_scope<S>(dst, src, n * sizeof(T));
  }
  detail::collective<S>(Operation::broadcast, raw::Collective::broadcast, "broadcast", t, dst, n, src, n, root, root, false,
                        detail::code_of<T>(), detail::NoCombine{});
}
// n elements of every PE, in team order.
template <class S = thread, class T> PGAS_FN void fcollect(team t, T *dst, const T *src, size_t n) {
  detail::collective<S>(Operation::fcollect, raw::Collective::fcollect, "fcollect", t, dst, n * size_t(t.n_pes()), src, n, 0, 0,
                        false, detail::code_of<T>(), detail::NoCombine{});
}
// As fcollect, but n may differ between PEs, and be 0; dst has room for `capacity` elements.
template <class S = thread, class T> PGAS_FN void collect(team t, T *dst, size_t capacity, const T *src, size_t n) {
  detail::collective<S>(Operation::collect, raw::Collective::collect, "collect", t, dst, capacity, src, n, 0, 0, true,
                        detail::code_of<T>(), detail::NoCombine{});
}
// Block i of n elements of src to PE i; block i of dst came from PE i.
template <class S = thread, class T> PGAS_FN void alltoall(team t, T *dst, const T *src, size_t n) {
  detail::collective<S>(Operation::alltoall, raw::Collective::alltoall, "alltoall", t, dst, n * size_t(t.n_pes()), src,
                        n * size_t(t.n_pes()), 0, 0, false, detail::code_of<T>(), detail::NoCombine{});
}

// Element by element over all PEs, in team order; dst may be src.
template <class S = thread, Reduction op = Reduction::sum, class T> PGAS_FN void reduce(team t, T *dst, const T *src, size_t n) {
  static_assert(raw::reduction_supported<T, op>(), "this element type has no such reduction");
  detail::collective<S>(Operation::reduce, raw::Collective::reduce, "reduce", t, dst, n, src, n, 0, i64(op), false,
                        detail::code_of<T>(), detail::Combine<S, T, op>{});
}
// n elements of the result to each PE: src has n for every PE of the team.
template <class S = thread, Reduction op = Reduction::sum, class T>
PGAS_FN void reduce_scatter(team t, T *dst, const T *src, size_t n) {
  static_assert(raw::reduction_supported<T, op>(), "this element type has no such reduction");
  detail::collective<S>(Operation::reduce_scatter, raw::Collective::reduce_scatter, "reduce_scatter", t, dst, n, src,
                        n * size_t(t.n_pes()), 0, i64(op), false, detail::code_of<T>(), detail::Combine<S, T, op>{});
}
// Over the PEs up to this one, or before it (then PE 0 gets zeros).
template <class S = thread, Reduction op = Reduction::sum, class T>
PGAS_FN void inclusive_scan(team t, T *dst, const T *src, size_t n) {
  static_assert(raw::reduction_supported<T, op>(), "this element type has no such reduction");
  detail::collective<S>(Operation::inclusive_scan, raw::Collective::inclusive_scan, "inclusive_scan", t, dst, n, src, n, 0, i64(op),
                        false, detail::code_of<T>(), detail::Combine<S, T, op>{});
}
template <class S = thread, Reduction op = Reduction::sum, class T>
PGAS_FN void exclusive_scan(team t, T *dst, const T *src, size_t n) {
  static_assert(raw::reduction_supported<T, op>(), "this element type has no such reduction");
  detail::collective<S>(Operation::exclusive_scan, raw::Collective::exclusive_scan, "exclusive_scan", t, dst, n, src, n, 0, i64(op),
                        false, detail::code_of<T>(), detail::Combine<S, T, op>{});
}

} // namespace pgas
