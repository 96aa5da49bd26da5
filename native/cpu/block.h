// SPDX-License-Identifier: Apache-2.0
// Running one block of a kernel on the calling worker: its threads are fibers that take turns.
#pragma once

#include <memory>

#include "fiber.h"
#include "launch.h"

namespace native {
namespace cpu {

struct Fiber {
  void *sp = nullptr;
  Fiber *previous = nullptr, *next = nullptr; // the ring of those that can run
  pgas::cpu::Thread self{};
  pgas::WaitFacts *wait = nullptr; // while it waits for memory
  enum { ready, at_block, at_warp, done } state = ready;
  unsigned mask = 0;                    // at_warp
  pgas::cpu::WarpCall *call = nullptr;  // at_warp; null for a plain synchronisation
};

// A worker's own part: what it keeps from block to block.
struct Worker {
  Stacks stacks;
  std::vector<char> shared;
  std::unique_ptr<Fiber[]> fibers;
  size_t fiber_count = 0;
  bool waiting = false;         // counted by the pool as not using its core
  unsigned long thread_id = 0;  // pthread_t
  std::atomic<class Block *> block{nullptr};
};

class Block {
public:
  Block(Worker &worker, Launch &launch, unsigned long long number);
  void run();

  // Called from fibers.
  bool idle(pgas::WaitFacts *facts);
  void yield();
  int sync_block(int predicate);
  void sync_warp(unsigned mask, pgas::cpu::WarpCall *call);
  unsigned active_mask() const;
  void sync_grid();
  [[noreturn]] void fail(const char *kind, std::string text);
  [[noreturn]] void leave();
  void finish_fiber();
  // Called from a signal handler: where the fiber that crashed goes on.
  void crashed(const char *kind, const char *text);

  static Block *current();
  static const pgas::cpu::Api *api();
  std::string describe() const; // what its threads are doing; may be read from another thread
  Fiber *running() const { return running_; }
  const Stacks &stacks() const { return worker_.stacks; }
  Launch &launch() { return launch_; }
  Failure failure_here(const char *kind, std::string text) const;

private:
  void make_fiber(unsigned i);
  void link(Fiber *f);
  void unlink(Fiber *f);
  void switch_to(Fiber *f);
  void block_current();
  void release_block();
  bool complete_lanes(unsigned first, unsigned mask);
  void complete_warp(unsigned warp);
  void rest();
  void progress();

  Worker &worker_;
  Launch &launch_;
  unsigned long long number_;
  Fiber *fibers_;
  Fiber *running_ = nullptr;
  pgas::cpu::Thread **self_;
  void *scheduler_ = nullptr;
  unsigned live_ = 0, in_ring_ = 0, arrived_ = 0;
  int votes_ = 0, vote_result_ = 0;
  unsigned polls_ = 0, streak_ = 0;
  unsigned long long streak_start_ = 0, next_check_ = 0;
  long sleep_ns_ = 0;
  bool abandoned_ = false;
};

} // namespace cpu
} // namespace native
