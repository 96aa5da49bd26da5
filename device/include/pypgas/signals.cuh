// SPDX-License-Identifier: Apache-2.0
// Signals, waits and tests in kernels. Signals are releases, waits and tests acquires, at system scope.
#pragma once

#include "raw/signals.cuh"
#include "rma.cuh"

namespace pgas {

// put, then the update of a signal at the same PE: whoever sees the signal sees the data.
template <class S = thread, class T>
PGAS_FN void put_signal(T *dst, const T *src, size_t count, u64 *signal, u64 value, SignalOp op, int pe, context c = {}) {
  put<S>(dst, src, count, pe, c);
  if (arch::scope_rank<S>() == 0) {
    arch::fence_system(); // the other threads' stores, which this one knows of through the scope's synchronisation
    raw::signal_update(detail::remote(signal, detail::world_pe(pe, c)), op, value);
  }
}
template <class S = thread, class T>
PGAS_FN void put_signal_nbi(T *dst, const T *src, size_t count, u64 *signal, u64 value, SignalOp op, int pe, context c = {}) {
  put_signal<S>(dst, src, count, signal, value, op, pe, c);
}
PGAS_FN void signal_op(u64 *signal, u64 value, SignalOp op, int pe, context c = {}) {
  raw::signal_update(detail::remote(signal, detail::world_pe(pe, c)), op, value);
}
PGAS_FN void signal_set(u64 *signal, u64 value, int pe, context c = {}) { signal_op(signal, value, SignalOp::set, pe, c); }
PGAS_FN void signal_add(u64 *signal, u64 value, int pe, context c = {}) { signal_op(signal, value, SignalOp::add, pe, c); }
PGAS_FN u64 signal_fetch(const u64 *signal) { return arch::load_acquire(signal); }

namespace detail {
template <class T> PGAS_FN T wait(const char *operation, const T *variable, Compare compare, T value) {
  T seen;
  if (raw::test(variable, compare, value, &seen)) return seen;
  KernelWait w(operation);
  w.facts.address = variable;
  w.facts.compare = int(compare);
  w.facts.width = sizeof(T);
  memcpy(&w.facts.expected, &value, sizeof(T));
  for (;;) {
    memcpy(&w.facts.seen, &seen, sizeof(T));
    if (!w.idle()) arch::leave();
    if (raw::test(variable, compare, value, &seen)) return seen;
  }
}
} // namespace detail

// Returns the value that satisfied the comparison.
PGAS_FN u64 signal_wait_until(const u64 *signal, Compare compare, u64 value) {
  return detail::wait("signal_wait_until", signal, compare, value);
}
// Waits until the variable compares true with `value`, in its own type.
template <class T> PGAS_FN void wait_until(const T *variable, Compare compare, T value) {
  detail::wait("wait_until", variable, compare, value);
}
template <class T> PGAS_FN bool test(const T *variable, Compare compare, T value) {
  return raw::test(variable, compare, value);
}

namespace detail {
// values[i * step]: one value for all, or one for each.
template <class T>
PGAS_FN void wait_all(const T *ivars, size_t n, const int *status, Compare compare, const T *values, size_t step) {
  for (size_t i = 0; i < n; i++)
    if (!status || !status[i]) wait("wait_until_all", ivars + i, compare, values[i * step]);
}
template <class T>
PGAS_FN size_t find_any(const T *ivars, size_t n, const int *status, Compare compare, const T *values, size_t step, bool *empty) {
  *empty = true;
  for (size_t i = 0; i < n; i++) {
    if (status && status[i]) continue;
    *empty = false;
    if (raw::test(ivars + i, compare, values[i * step])) return i;
  }
  return ~size_t(0);
}
template <class T>
PGAS_FN size_t find_some(const T *ivars, size_t n, size_t *indices, const int *status, Compare compare, const T *values,
                         size_t step, bool *empty) {
  size_t found = 0;
  *empty = true;
  for (size_t i = 0; i < n; i++) {
    if (status && status[i]) continue;
    *empty = false;
    if (raw::test(ivars + i, compare, values[i * step])) indices[found++] = i;
  }
  return found;
}
template <class T>
PGAS_FN size_t wait_any(const T *ivars, size_t n, const int *status, Compare compare, const T *values, size_t step) {
  KernelWait w("wait_until_any");
  w.facts.address = ivars;
  bool empty;
  for (;;) {
    const size_t i = find_any(ivars, n, status, compare, values, step, &empty);
    if (i < n || empty) return i;
    if (!w.idle()) arch::leave();
  }
}
template <class T>
PGAS_FN size_t wait_some(const T *ivars, size_t n, size_t *indices, const int *status, Compare compare, const T *values, size_t step) {
  KernelWait w("wait_until_some");
  w.facts.address = ivars;
  bool empty;
  for (;;) {
    const size_t found = find_some(ivars, n, indices, status, compare, values, step, &empty);
    if (found || empty) return found;
    if (!w.idle()) arch::leave();
  }
}
template <class T>
PGAS_FN bool all_hold(const T *ivars, size_t n, const int *status, Compare compare, const T *values, size_t step) {
  for (size_t i = 0; i < n; i++)
    if ((!status || !status[i]) && !raw::test(ivars + i, compare, values[i * step])) return false;
  return true;
}
} // namespace detail

// Elements whose status is not zero are left out; status may be null. `any` gives SIZE_MAX, `some` 0, and `all` is
// true at once, where there is nothing to look at.
template <class T> PGAS_FN void wait_until_all(const T *ivars, size_t n, const int *status, Compare c, T value) {
  detail::wait_all(ivars, n, status, c, &value, 0);
}
template <class T> PGAS_FN size_t wait_until_any(const T *ivars, size_t n, const int *status, Compare c, T value) {
  return detail::wait_any(ivars, n, status, c, &value, 0);
}
template <class T>
PGAS_FN size_t wait_until_some(const T *ivars, size_t n, size_t *indices, const int *status, Compare c, T value) {
  return detail::wait_some(ivars, n, indices, status, c, &value, 0);
}
template <class T> PGAS_FN bool test_all(const T *ivars, size_t n, const int *status, Compare c, T value) {
  return detail::all_hold(ivars, n, status, c, &value, 0);
}
template <class T> PGAS_FN size_t test_any(const T *ivars, size_t n, const int *status, Compare c, T value) {
  bool empty;
  return detail::find_any(ivars, n, status, c, &value, 0, &empty);
}
template <class T>
PGAS_FN size_t test_some(const T *ivars, size_t n, size_t *indices, const int *status, Compare c, T value) {
  bool empty;
  return detail::find_some(ivars, n, indices, status, c, &value, 0, &empty);
}
// The same with one value for each element.
template <class T> PGAS_FN void wait_until_all_vector(const T *ivars, size_t n, const int *status, Compare c, const T *values) {
  detail::wait_all(ivars, n, status, c, values, 1);
}
template <class T> PGAS_FN size_t wait_until_any_vector(const T *ivars, size_t n, const int *status, Compare c, const T *values) {
  return detail::wait_any(ivars, n, status, c, values, 1);
}
template <class T>
PGAS_FN size_t wait_until_some_vector(const T *ivars, size_t n, size_t *indices, const int *status, Compare c, const T *values) {
  return detail::wait_some(ivars, n, indices, status, c, values, 1);
}
template <class T> PGAS_FN bool test_all_vector(const T *ivars, size_t n, const int *status, Compare c, const T *values) {
  return detail::all_hold(ivars, n, status, c, values, 1);
}
template <class T> PGAS_FN size_t test_any_vector(const T *ivars, size_t n, const int *status, Compare c, const T *values) {
  bool empty;
  return detail::find_any(ivars, n, status, c, values, 1, &empty);
}
template <class T>
PGAS_FN size_t test_some_vector(const T *ivars, size_t n, size_t *indices, const int *status, Compare c, const T *values) {
  bool empty;
  return detail::find_some(ivars, n, indices, status, c, values, 1, &empty);
}

} // namespace pgas
