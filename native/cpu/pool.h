// SPDX-License-Identifier: Apache-2.0
// The workers that run blocks and stream operations: as many at a time as there are processors, more while some wait.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>

#include "block.h"

namespace native {
namespace cpu {

// Work for the pool: the blocks of a launch, or one function.
struct Job {
  std::shared_ptr<Launch> launch;      // null: run `function` once
  std::function<void(Worker &)> function;
  std::function<void()> done;          // after the last block
};

class Pool {
public:
  void submit(std::shared_ptr<Job> job);
  void start_waiting(Worker &worker); // the worker's block only polls memory: its core is free
  void stop_waiting(Worker &worker);
  std::string describe(const Launch &launch); // where each of its running blocks is
  void interrupt(const Launch &launch);       // workers that still run it give up their blocks

private:
  void start_workers(std::unique_lock<std::mutex> &lock);
  void work(Worker &worker);
  bool take(std::shared_ptr<Job> *job, unsigned long long *block);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::vector<std::unique_ptr<Worker>> workers_;
  unsigned idle_ = 0, busy_ = 0, waiting_ = 0, resident_ = 0; // resident_: blocks of cooperative launches under way
  unsigned processors_ = 0;
};

// Lives as long as the process: workers may be inside it when the interpreter ends.
Pool &pool();

void install_crash_handlers();
void protect_worker(); // the calling thread's alternative signal stack and signal mask
constexpr int interrupt_signal_offset = 5; // SIGRTMIN + this

} // namespace cpu
} // namespace native
