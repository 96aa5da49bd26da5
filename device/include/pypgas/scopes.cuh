// SPDX-License-Identifier: Apache-2.0
// Who takes part in an operation: one thread, a warp or a block. All threads of the scope call it together.
#pragma once

namespace pgas {

struct thread {};
struct warp {};
struct block {};

// What a wait inside a kernel is about, for the report when it has to end early.
struct WaitFacts {
  const char *operation;
  const void *address;
  unsigned long long expected, seen; // as many low bytes as `width`
  int compare, width;                // Compare as a number
  int team;                          // -1: not a team's
  unsigned long long started;        // when the wait began to wait, in nanoseconds; 0 before
};

struct State;

} // namespace pgas
