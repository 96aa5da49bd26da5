// SPDX-License-Identifier: Apache-2.0
// What kernels leave for the host to read when a wait has to end early, and what makes them end it.
#pragma once

namespace pgas {

enum class EndReason : unsigned { none, limit, aborted, failed, argument };

// One thread's wait, as it stood when it ended. Numbers of blocks and threads are linear.
struct alignas(16) KernelRecord {
  unsigned complete; // written last; 0: not yet
  unsigned reason;   // an EndReason
  unsigned long long block;
  unsigned thread;
  int team;          // -1: not a team's
  int compare, width;
  unsigned long long address, expected, seen; // as many low bytes as `width` count
  unsigned long long waited_ns;
  char operation[64]; // what waited, or what was wrong
};

constexpr unsigned report_capacity = 64;

// In memory that host and kernels share. Threads take records in order; those beyond the capacity are only counted.
struct alignas(64) KernelReport {
  unsigned count;
  unsigned reserved[15];
  KernelRecord records[report_capacity];
};

// Where a wait looks, now and then, to learn that it has to end. Null pointers and a limit of 0: never.
struct WaitLimits {
  const unsigned long long *abort_word; // not 0: every kernel must end
  KernelReport *report;                 // once one thread has reported, all that wait do
  unsigned long long limit_ns;
};

} // namespace pgas
