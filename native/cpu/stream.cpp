// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <chrono>

#include "../patience.h"

namespace native {
namespace cpu {

namespace {
std::mutex discarded_mutex;
std::vector<void *> discarded;
std::atomic<bool> any_discarded{false};

void complete(Event &event, unsigned long long turn) {
  std::vector<std::function<void()>> waiters;
  {
    std::lock_guard<std::mutex> lock(event.mutex);
    event.completed = std::max(event.completed, turn);
    event.time = double(now_ns()) * 1e-9;
    waiters.swap(event.waiters);
    event.changed.notify_all();
  }
  for (auto &waiter : waiters) waiter();
}
} // namespace

void discard(void *object) {
  if (!object) return;
  std::lock_guard<std::mutex> lock(discarded_mutex);
  discarded.push_back(object);
  any_discarded.store(true, std::memory_order_release);
}

std::vector<void *> take_discarded() {
  std::vector<void *> taken;
  if (!any_discarded.load(std::memory_order_acquire)) return taken;
  std::lock_guard<std::mutex> lock(discarded_mutex);
  taken.swap(discarded);
  any_discarded.store(false, std::memory_order_release);
  return taken;
}

void Stream::enqueue(Operation operation) {
  std::unique_lock<std::mutex> lock(mutex_);
  enqueued_++;
  pending_.fetch_add(1, std::memory_order_acq_rel);
  queue_.push_back(std::move(operation));
  if (!running_) next(lock);
}

// Starts the operation at the head of the queue. Called with the mutex held and nothing running.
void Stream::next(std::unique_lock<std::mutex> &lock) {
  while (!running_ && !queue_.empty()) {
    Operation op = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    const bool skip = failed_;
    bool finished = false;
    lock.unlock();
    const auto self = shared_from_this();
    if (op.record) {
      // Recorded even after a failure: whoever waits for the event must not wait for ever.
      complete(*op.record, op.turn);
      finished = true;
    } else if (op.wait) {
      std::lock_guard<std::mutex> event(op.wait->mutex);
      finished = op.wait->completed >= op.turn;
      if (!finished) op.wait->waiters.push_back([self] { self->over(nullptr); });
    } else if (skip) {
      discard(op.keep);
      finished = true;
    } else {
      auto job = std::make_shared<Job>();
      void *keep = op.keep;
      if (op.launch) {
        lock.lock();
        current_ = op.launch;
        lock.unlock();
        job->launch = op.launch;
        Launch *launch = op.launch.get();
        job->done = [self, launch, keep] {
          discard(keep);
          self->over(launch->failed ? &launch->failure : nullptr);
        };
      } else {
        auto failure = std::make_shared<Failure>();
        auto ok = std::make_shared<bool>(true);
        job->function = [function = std::move(op.function), failure, ok](Worker &worker) { *ok = function(worker, failure.get()); };
        job->done = [self, failure, ok, keep] {
          discard(keep);
          self->over(*ok ? nullptr : failure.get());
        };
      }
      pool().submit(std::move(job));
    }
    lock.lock();
    if (finished) finish();
  }
}

void Stream::over(const Failure *failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (failure && !failed_) {
    failed_ = true;
    failure_ = *failure;
  }
  current_.reset();
  finish();
  next(lock);
}

// Called with the mutex held.
void Stream::finish() {
  running_ = false;
  finished_++;
  pending_.fetch_sub(1, std::memory_order_acq_rel);
  changed_.notify_all();
}

bool Stream::wait(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  const unsigned long long target = enqueued_;
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return finished_ >= target; });
}

bool Stream::take_failure(Failure *out) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_) return false;
  failed_ = false;
  *out = std::move(failure_);
  failure_ = Failure();
  return true;
}

void Stream::interrupt(double limit) {
  std::shared_ptr<Launch> launch;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    launch = current_;
  }
  if (!launch) return;
  Failure failure;
  failure.kind = "endless";
  failure.text = "has not ended in " + std::to_string(limit) + " s; " + pool().describe(*launch);
  launch->fail(std::move(failure));
  pool().interrupt(*launch);
}

} // namespace cpu
} // namespace native
