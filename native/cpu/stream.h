// SPDX-License-Identifier: Apache-2.0
// Streams of the CPU device: operations that run in order, on the pool's workers, while Python goes on.
#pragma once

#include <functional>

#include "pool.h"

namespace native {
namespace cpu {

class Stream;

struct Event {
  std::mutex mutex;
  unsigned long long recorded = 0, completed = 0; // how often
  double time = 0;                                // of the last completion, in seconds
  std::condition_variable changed;
  std::vector<std::function<void()>> waiters;
};

class Stream : public std::enable_shared_from_this<Stream> {
public:
  // An operation: a launch, or a function that returns false after a failure it has described.
  struct Operation {
    std::shared_ptr<Launch> launch;
    std::function<bool(Worker &, Failure *)> function;
    std::shared_ptr<Event> record, wait;
    unsigned long long turn = 0; // of the event
    void *keep = nullptr;        // a Python object to release when the operation is over
  };
  void enqueue(Operation operation);
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // Waits until everything enqueued so far is over, at most `seconds`. False: it isn't.
  bool wait(double seconds);
  // The first failure since the last call, if any. Operations after a failure are skipped until it is taken.
  bool take_failure(Failure *out);
  // Ends the launch under way, as one that took more than `limit` seconds.
  void interrupt(double limit);
  const std::atomic<unsigned long long> *pending() const { return &pending_; }

private:
  void next(std::unique_lock<std::mutex> &lock);
  void over(const Failure *failure);
  void finish();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> queue_;
  bool running_ = false;
  std::shared_ptr<Launch> current_;
  std::atomic<unsigned long long> pending_{0};
  unsigned long long enqueued_ = 0, finished_ = 0;
  bool failed_ = false;
  Failure failure_;
};

// Python objects whose last use was on a worker; to be released by a thread that holds the interpreter lock.
void discard(void *object);
std::vector<void *> take_discarded();

} // namespace cpu
} // namespace native
