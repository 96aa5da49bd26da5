// SPDX-License-Identifier: Apache-2.0
#include "pool.h"

#include <csignal>
#include <sched.h>
#include <thread>

#include "sanitizer.h"

namespace native {
namespace cpu {

namespace {
constexpr size_t most_workers = 2048;

unsigned processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? unsigned(CPU_COUNT(&set)) : std::thread::hardware_concurrency();
}
} // namespace

Pool &pool() {
  static Pool *one = new Pool;
  return *one;
}

void Pool::submit(std::shared_ptr<Job> job) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!processors_) {
    processors_ = processors();
    find_sanitizer();
    install_crash_handlers();
  }
  // All blocks of a cooperative launch must be able to run at the same time.
  if (job->launch && job->launch->cooperative) resident_ += unsigned(job->launch->blocks);
  jobs_.push_back(std::move(job));
  start_workers(lock);
}

// Wakes or starts as many workers as there are free processors and blocks to run.
void Pool::start_workers(std::unique_lock<std::mutex> &lock) {
  unsigned long long pending = 0;
  for (const auto &job : jobs_) {
    pending += job->launch ? job->launch->blocks - job->launch->next.load(std::memory_order_relaxed) : 1;
    if (pending > most_workers) break;
  }
  const unsigned active = busy_ - waiting_, limit = processors_ + resident_;
  unsigned wanted = active < limit ? unsigned(std::min<unsigned long long>(pending, limit - active)) : 0;
  const unsigned woken = std::min(wanted, idle_);
  for (unsigned i = 0; i < woken; i++) wake_.notify_one();
  wanted -= woken;
  while (wanted-- && workers_.size() < most_workers) {
    workers_.emplace_back(new Worker);
    Worker *worker = workers_.back().get();
    idle_++;
    lock.unlock();
    // Signals of the process are for Python's threads; a worker handles only its own faults.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this, worker] { work(*worker); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    lock.lock();
  }
}

// The next block to run. Called with the mutex held.
bool Pool::take(std::shared_ptr<Job> *job, unsigned long long *block) {
  if (jobs_.empty() || busy_ - waiting_ >= processors_ + resident_) return false;
  *job = jobs_.front();
  Launch *launch = (*job)->launch.get();
  *block = launch ? launch->next.fetch_add(1, std::memory_order_relaxed) : 0;
  if (!launch || *block + 1 >= launch->blocks) jobs_.pop_front();
  return true;
}

void Pool::work(Worker &worker) {
  worker.thread_id = pthread_self();
  protect_worker();
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    std::shared_ptr<Job> job;
    unsigned long long block;
    while (!take(&job, &block)) wake_.wait(lock);
    idle_--;
    busy_++;
    lock.unlock();
    bool last = true;
    if (job->launch) {
      Launch &launch = *job->launch;
      if (!launch.aborted.load(std::memory_order_acquire)) Block(worker, launch, block).run();
      if (worker.waiting) stop_waiting(worker);
      last = launch.finished.fetch_add(1, std::memory_order_acq_rel) + 1 == launch.blocks;
    } else {
      job->function(worker);
      if (worker.waiting) stop_waiting(worker);
    }
    if (last && job->launch && job->launch->cooperative) {
      lock.lock();
      resident_ -= unsigned(job->launch->blocks);
      lock.unlock();
    }
    if (last) job->done();
    job.reset();
    lock.lock();
    busy_--;
    idle_++;
  }
}

void Pool::start_waiting(Worker &worker) {
  std::unique_lock<std::mutex> lock(mutex_);
  worker.waiting = true;
  waiting_++;
  if (!jobs_.empty()) start_workers(lock);
}

void Pool::stop_waiting(Worker &worker) {
  std::lock_guard<std::mutex> lock(mutex_);
  worker.waiting = false;
  waiting_--;
}

std::string Pool::describe(const Launch &launch) {
  std::string text;
  std::lock_guard<std::mutex> lock(mutex_);
  int listed = 0;
  for (const auto &worker : workers_) {
    Block *block = worker->block.load(std::memory_order_acquire);
    if (!block || &block->launch() != &launch) continue;
    if (listed++ < 8) {
      const Failure f = block->failure_here("", "");
      text += (text.empty() ? "block (" : "; block (") + std::to_string(f.block[0]) + ", " + std::to_string(f.block[1]) + ", " +
              std::to_string(f.block[2]) + "): " + block->describe();
    }
  }
  if (listed > 8) text += "; and " + std::to_string(listed - 8) + " more blocks";
  return text;
}

void Pool::interrupt(const Launch &launch) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto &worker : workers_) {
    Block *block = worker->block.load(std::memory_order_acquire);
    if (block && &block->launch() == &launch) pthread_kill(pthread_t(worker->thread_id), SIGRTMIN + interrupt_signal_offset);
  }
}

} // namespace cpu
} // namespace native
