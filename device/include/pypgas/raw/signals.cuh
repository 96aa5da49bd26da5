// SPDX-License-Identifier: Apache-2.0
// Signals, comparisons and waits. A wait polls through a policy W whose idle() runs between two looks; it returns
// false when the wait must end early (time limit, a failed PE, an interrupt), and the wait then returns false.
#pragma once

#include "copy.cuh"

namespace pgas {
namespace raw {

template <class T> PGAS_FN bool holds(T seen, Compare c, T value) {
  switch (c) {
  case Compare::eq: return seen == value;
  case Compare::ne: return seen != value;
  case Compare::gt: return seen > value;
  case Compare::ge: return seen >= value;
  case Compare::lt: return seen < value;
  case Compare::le: return seen <= value;
  default: return false;
  }
}

// The release makes this PE's earlier puts visible to whoever acquires the signal.
PGAS_FN void signal_update(u64 *signal, SignalOp op, u64 value) {
  if (op == SignalOp::add) arch::fetch_add(signal, value);
  else arch::store_release(signal, value);
}

// One look, as an acquire: what the writer did before is visible if the comparison holds.
template <class T> PGAS_FN bool test(const T *variable, Compare c, T value, T *seen = nullptr) {
  const T now = arch::load_acquire(variable);
  if (seen) *seen = now;
  return holds(now, c, value);
}

template <class T, class W> PGAS_FN bool wait_until(const T *variable, Compare c, T value, T *seen, W &wait) {
  while (!test(variable, c, value, seen))
    if (!wait.idle()) return false;
  return true;
}

} // namespace raw
} // namespace pgas
