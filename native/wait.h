// SPDX-License-Identifier: Apache-2.0
// How a host wait passes its time: spin, yield, sleep; and how it ends early: time limit, dead peer, Ctrl-C.
#pragma once

#include "runtime.h"

namespace native {

// What a wait is about, for reports.
struct WaitFacts {
  const char *operation;
  const TeamObject *team = nullptr; // whose members are waited for; null: anyone
  bool gate = false;                // members that have not entered the team's next call are missing
  const void *variable = nullptr;
  DType type = DType::count;
  int compare = -1;
  const void *expected = nullptr;
  i64 holder = -1;                  // of a lock
};

class HostWait {
public:
  HostWait(const WaitFacts &facts, double timeout) : facts_(facts), timeout_(timeout) {}
  HostWait(const HostWait &) = delete;
  ~HostWait() { resume(); }

  bool idle() {
    if (__builtin_expect(spins_ < g.spins, 1)) {
      spins_++;
      pgas::arch::pause();
      return true;
    }
    return slow();
  }
  // The others came along: what comes next is a wait of its own, with its own time limit, and spins and yields first.
  void restart() {
    spins_ = 0;
    start_ = 0;
    sleep_ns_ = first_sleep;
  }
  // Gives the interpreter lock up at once, for work that will take long.
  void unlock() {
    if (!saved_) saved_ = PyEval_SaveThread();
  }
  // Takes the interpreter lock back, if it was given up. Call before touching Python.
  void resume();
  // After idle() returned false: raises. Always returns null.
  PyObject *raise();
  WaitFacts &facts() { return facts_; }
  // Whether Python raised while the wait was on, even if what was waited for came after all.
  bool interrupted() const { return outcome_ == Outcome::python; }

private:
  static constexpr u64 first_sleep = 50000;
  enum class Outcome { waiting, timeout, failed, python };
  bool slow();
  bool housekeeping(u64 now);
  bool call(PyObject *function, const char *outcome, Ref *result);

  WaitFacts facts_;
  double timeout_;
  unsigned spins_ = 0;
  u64 start_ = 0, next_check_ = 0, next_poll_ = 0, sleep_ns_ = first_sleep;
  double next_report_ = 0;
  bool published_ = false;
  PyThreadState *saved_ = nullptr;
  Outcome outcome_ = Outcome::waiting;
};

extern PyMethodDef wait_methods[];

} // namespace native
