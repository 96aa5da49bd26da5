// SPDX-License-Identifier: Apache-2.0
// put and get in kernels. Counts are in elements. With a scope, all its threads call with equal arguments; the
// scope is synchronised on entry and on return.
#pragma once

#include "kernel_state.cuh"

namespace pgas {

// Copies `count` elements to PE `pe`. The source may be reused on return; delivery is complete after quiet().
template <class S = thread, class T>
PGAS_FN void put(T *dst, const T *src, size_t count, int pe, context c = {}) {
  T *to = count ? detail::remote(dst, detail::world_pe(pe, c)) : dst;
  arch::scope_sync<S>();
  if constexpr (is_same<S, thread>::value) raw::copy(to, src, count * sizeof(T));
  else arch::copy_scope<S>(to, src, count * sizeof(T));
  arch::scope_sync<S>();
}
// As put, but the source must not change before quiet().
template <class S = thread, class T>
PGAS_FN void put_nbi(T *dst, const T *src, size_t count, int pe, context c = {}) { put<S>(dst, src, count, pe, c); }

// Copies `count` elements from PE `pe`.
template <class S = thread, class T>
PGAS_FN void get(T *dst, const T *src, size_t count, int pe, context c = {}) {
  const T *from = count ? detail::remote(src, detail::world_pe(pe, c)) : src;
  arch::scope_sync<S>();
  if constexpr (is_same<S, thread>::value) raw::fetch(dst, from, count * sizeof(T));
  else arch::copy_scope<S>(dst, from, count * sizeof(T));
  arch::scope_sync<S>();
}
// As get, but the data is there only after quiet().
template <class S = thread, class T>
PGAS_FN void get_nbi(T *dst, const T *src, size_t count, int pe, context c = {}) { get<S>(dst, src, count, pe, c); }

// One element. An aligned store, never torn.
template <class T> PGAS_FN void p(T *dst, T value, int pe, context c = {}) {
  raw::store_element(detail::remote(dst, detail::world_pe(pe, c)), value);
}
template <class T> PGAS_FN T g(const T *src, int pe, context c = {}) {
  return raw::load_element(detail::remote(src, detail::world_pe(pe, c)));
}

// Every `sst`-th element of src to every `tst`-th of dst, n in all; strides in elements, at least 1.
template <class S = thread, class T>
PGAS_FN void iput(T *dst, const T *src, ptrdiff_t tst, ptrdiff_t sst, size_t n, int pe, context c = {}) {
  T *to = n ? detail::remote(dst, detail::world_pe(pe, c)) : dst;
  arch::scope_sync<S>();
  for (size_t i = arch::scope_rank<S>(); i < n; i += arch::scope_size<S>()) to[ptrdiff_t(i) * tst] = src[ptrdiff_t(i) * sst];
  arch::scope_sync<S>();
}
template <class S = thread, class T>
PGAS_FN void iget(T *dst, const T *src, ptrdiff_t tst, ptrdiff_t sst, size_t n, int pe, context c = {}) {
  const T *from = n ? detail::remote(src, detail::world_pe(pe, c)) : src;
  arch::scope_sync<S>();
  for (size_t i = arch::scope_rank<S>(); i < n; i += arch::scope_size<S>()) dst[ptrdiff_t(i) * tst] = from[ptrdiff_t(i) * sst];
  arch::scope_sync<S>();
}

// Orders this PE's earlier puts, atomics and signals before its later ones, for each target PE.
PGAS_FN void fence(context = {}) { raw::fence(); }
// Completes this thread's operations: they are visible to every PE.
PGAS_FN void quiet(context = {}) { raw::quiet(); }

} // namespace pgas
