// SPDX-License-Identifier: Apache-2.0
// A fair lock at its home PE: tickets, served in order. A waiter that gives up leaves a mark that the next release
// steps over.
#pragma once

#include "../state.cuh"

namespace pgas {
namespace raw {

constexpr u64 lock_ring = 1024; // tickets that may be outstanding, given-up ones included

struct LockWords {
  alignas(64) u64 next;
  alignas(64) u64 serving;
  u32 ring[lock_ring]; // by ticket: 0 waiting, 1 granted, 2 given up
};

enum class LockResult { acquired, busy, abandoned, full };

PGAS_FN LockResult lock_test(LockWords *lock, u64 *ticket) {
  u64 serving = arch::load_acquire(&lock->serving), expected = serving;
  if (!arch::compare_exchange(&lock->next, expected, serving + 1)) return LockResult::busy;
  *ticket = serving;
  return LockResult::acquired;
}

template <class W> PGAS_FN LockResult lock_acquire(LockWords *lock, u64 *ticket, W &wait) {
  u64 next = arch::load_relaxed(&lock->next);
  do {
    // Signed: `next` may have been read before others moved `serving` past it.
    if (i64(next - arch::load_relaxed(&lock->serving)) >= i64(lock_ring)) return LockResult::full;
  } while (!arch::compare_exchange(&lock->next, next, next + 1));
  *ticket = next;
  u32 *mark = &lock->ring[next % lock_ring];
  for (;;) {
    if (arch::load_acquire(&lock->serving) == next) return LockResult::acquired;
    if (wait.idle()) continue;
    u32 waiting = 0;
    if (arch::compare_exchange(mark, waiting, u32(2))) return LockResult::abandoned;
    // A release chose this ticket already; its `serving` store follows.
    while (arch::load_acquire(&lock->serving) != next) arch::pause();
    return LockResult::acquired;
  }
}

PGAS_FN void lock_release(LockWords *lock, u64 ticket) {
  arch::store_relaxed(&lock->ring[ticket % lock_ring], u32(0));
  for (u64 t = ticket + 1;; t++) {
    u32 *mark = &lock->ring[t % lock_ring], seen = 0;
    // A ticket nobody has drawn yet is granted in advance: whoever draws it finds the lock free.
    if (arch::compare_exchange(mark, seen, u32(1))) {
      arch::store_release(&lock->serving, t);
      return;
    }
    arch::store_relaxed(mark, u32(0)); // given up
  }
}

} // namespace raw
} // namespace pgas
