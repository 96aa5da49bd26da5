// SPDX-License-Identifier: Apache-2.0
#include "block.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "../patience.h"
#include "pool.h"
#include "sanitizer.h"

namespace native {
namespace cpu {

namespace {

thread_local Block *current_block = nullptr;

constexpr unsigned long long yield_for_ns = 200000; // then sleep
constexpr unsigned long long waiting_after_ns = 20000;
constexpr unsigned long long check_every_ns = 20000000;
constexpr long first_sleep_ns = 20000, longest_sleep_ns = 1000000;

void fiber_entry() {
  Block *block = Block::current();
  finish_switch(nullptr);
  Launch &launch = block->launch();
  launch.call(launch.arguments.data());
  block->finish_fiber();
  __builtin_unreachable();
}

void abandon_entry() { Block::current()->leave(); }

// The table that modules call.
bool api_idle(pgas::WaitFacts *facts) { return Block::current()->idle(facts); }
void api_yield() { Block::current()->yield(); }
void api_sync_block() { Block::current()->sync_block(0); }
int api_vote_block(int predicate) { return Block::current()->sync_block(predicate); }
void api_sync_warp(unsigned mask) { Block::current()->sync_warp(mask, nullptr); }
void api_warp(pgas::cpu::WarpCall *call) { Block::current()->sync_warp(call->mask, call); }
unsigned api_active_mask() { return Block::current()->active_mask(); }
void api_sync_grid() { Block::current()->sync_grid(); }
void api_fail(const char *kind, const char *text, const char *file, int line) {
  std::string message = text;
  if (file) message = std::string(file) + ":" + std::to_string(line) + ": " + message;
  Block::current()->fail(kind, message);
}
void api_leave() { Block::current()->leave(); }

const pgas::cpu::Api table = {pgas::cpu::abi_version, api_idle, api_yield, api_sync_block, api_vote_block, api_sync_warp,
                              api_warp, api_active_mask, api_sync_grid, api_fail, api_leave};

unsigned long long reduce(pgas::cpu::Warp kind, bool is_signed, unsigned long long a, unsigned long long b) {
  using pgas::cpu::Warp;
  const bool less = is_signed ? (long long)a < (long long)b : a < b;
  switch (kind) {
  case Warp::add: return a + b;
  case Warp::min: return less ? a : b;
  case Warp::max: return less ? b : a;
  case Warp::and_: return a & b;
  case Warp::or_: return a | b;
  default: return a ^ b;
  }
}

} // namespace

const pgas::cpu::Api *Block::api() { return &table; }
Block *Block::current() { return current_block; }

Block::Block(Worker &worker, Launch &launch, unsigned long long number)
    : worker_(worker), launch_(launch), number_(number), self_(launch.self()) {
  if (worker.fiber_count < launch.shape.threads) {
    worker.fibers.reset(new Fiber[launch.shape.threads]);
    worker.fiber_count = launch.shape.threads;
  }
  fibers_ = worker.fibers.get();
  if (worker.shared.size() < launch.shared_bytes + 128) worker.shared.resize(launch.shared_bytes + 128);
}

void Block::make_fiber(unsigned i) {
  Fiber &f = fibers_[i];
  f = Fiber();
  const pgas::cpu::Dim3 b = launch_.shape.block, g = launch_.shape.grid;
  f.self.thread_idx = {i % b.x, i / b.x % b.y, i / b.x / b.y};
  const unsigned long long n = number_;
  f.self.block_idx = {unsigned(n % g.x), unsigned(n / g.x % g.y), unsigned(n / g.x / g.y)};
  f.self.rank = i;
  f.self.lane = i % 32;
  f.self.block_number = unsigned(n);
  f.self.launch = &launch_.shape;
  const uintptr_t shared = (reinterpret_cast<uintptr_t>(worker_.shared.data()) + 127) & ~uintptr_t(127);
  f.self.shared = reinterpret_cast<char *>(shared);
  f.sp = prepare_stack(worker_.stacks.top(i), fiber_entry);
  link(&f);
}

void Block::run() {
  if (!worker_.stacks.reserve(launch_.shape.threads)) {
    launch_.fail(failure_here("memory", "no memory for the stacks of a block"));
    return;
  }
  current_block = this;
  worker_.block.store(this, std::memory_order_release);
  live_ = launch_.shape.threads;
  for (unsigned i = 0; i < live_; i++) make_fiber(i);
  Fiber *first = &fibers_[0];
  running_ = first;
  *self_ = &first->self;
  start_switch(&first->sp, worker_.stacks.bottom(0), stack_bytes);
  pypgas_switch_stack(&scheduler_, first->sp);
  finish_switch(nullptr);
  worker_.block.store(nullptr, std::memory_order_release);
  *self_ = nullptr;
  current_block = nullptr;
  progress();
}

void Block::link(Fiber *f) {
  if (in_ring_++ == 0) {
    f->next = f->previous = f;
    running_ = f;
    return;
  }
  f->previous = running_->previous; // last to get its turn
  f->next = running_;
  f->previous->next = f;
  running_->previous = f;
}

void Block::unlink(Fiber *f) {
  in_ring_--;
  f->previous->next = f->next;
  f->next->previous = f->previous;
}

void Block::switch_to(Fiber *f) {
  Fiber *from = running_;
  if (from == f) return;
  running_ = f;
  *self_ = &f->self;
  start_switch(&from->sp, worker_.stacks.bottom(f->self.rank), stack_bytes);
  pypgas_switch_stack(&from->sp, f->sp);
  finish_switch(nullptr);
  if (__builtin_expect(launch_.aborted.load(std::memory_order_relaxed), 0)) leave();
}

// Takes the running fiber out of the ring until somebody links it again.
void Block::block_current() {
  Fiber *f = running_;
  if (in_ring_ == 1)
    fail("deadlock", "every thread of the block waits for another: " + describe());
  Fiber *next = f->next;
  unlink(f);
  switch_to(next);
}

void Block::progress() {
  polls_ = 0;
  streak_ = 0;
  if (worker_.waiting) pool().stop_waiting(worker_);
}

void Block::release_block() {
  vote_result_ = votes_;
  votes_ = 0;
  arrived_ = 0;
  for (unsigned i = 0; i < launch_.shape.threads; i++) {
    Fiber &f = fibers_[i];
    if (f.state != Fiber::at_block) continue;
    f.state = Fiber::ready;
    link(&f);
  }
}

int Block::sync_block(int predicate) {
  votes_ += predicate;
  if (++arrived_ == live_) {
    // The running fiber is not among those at the barrier.
    release_block();
    progress();
    if (__builtin_expect(launch_.aborted.load(std::memory_order_relaxed), 0)) leave();
    return vote_result_;
  }
  running_->state = Fiber::at_block;
  block_current();
  return vote_result_;
}

unsigned Block::active_mask() const {
  const unsigned first = running_->self.rank - running_->self.lane;
  unsigned mask = 0;
  for (unsigned lane = 0; lane < 32 && first + lane < launch_.shape.threads; lane++)
    if (fibers_[first + lane].state != Fiber::done) mask |= 1u << lane;
  return mask;
}

// Completes the operation of the lanes of `mask` that wait together, if all of them have come. Returns whether it did.
bool Block::complete_lanes(unsigned first, unsigned mask) {
  const unsigned threads = launch_.shape.threads;
  unsigned present = 0;
  for (unsigned l = 32; l-- > 0;) { // from the last lane, which is the likeliest to be missing
    if (!(mask >> l & 1) || first + l >= threads) continue;
    const Fiber &other = fibers_[first + l];
    if (other.state == Fiber::done) continue;
    if (other.state != Fiber::at_warp || other.mask != mask) return false;
    present |= 1u << l;
  }
  // Results first, from all values, then everybody goes on.
  for (unsigned l = 0; l < 32; l++) {
    if (!(present >> l & 1) || !fibers_[first + l].call) continue;
    pgas::cpu::WarpCall &call = *fibers_[first + l].call;
    const auto value = [&](unsigned k) { return fibers_[first + k].call ? fibers_[first + k].call->value : 0; };
    if (call.kind == pgas::cpu::Warp::shuffle) {
      call.result = call.source >= 0 && call.source < 32 && (present >> call.source & 1) ? value(unsigned(call.source)) : call.value;
    } else if (call.kind == pgas::cpu::Warp::ballot || call.kind == pgas::cpu::Warp::match) {
      call.result = 0;
      for (unsigned k = 0; k < 32; k++)
        if ((present >> k & 1) && (call.kind == pgas::cpu::Warp::ballot ? value(k) != 0 : value(k) == call.value))
          call.result |= 1ull << k;
    } else {
      bool started = false;
      for (unsigned k = 0; k < 32; k++) {
        if (!(present >> k & 1)) continue;
        call.result = started ? reduce(call.kind, call.is_signed, call.result, value(k)) : value(k);
        started = true;
      }
    }
  }
  for (unsigned l = 0; l < 32; l++) {
    if (!(present >> l & 1)) continue;
    Fiber &g = fibers_[first + l];
    g.state = Fiber::ready;
    if (&g != running_) link(&g);
  }
  return true;
}

// After a lane has ended: completes what only waited for it.
void Block::complete_warp(unsigned warp) {
  const unsigned first = warp * 32, threads = launch_.shape.threads;
  for (unsigned lane = 0; lane < 32 && first + lane < threads; lane++)
    if (fibers_[first + lane].state == Fiber::at_warp) complete_lanes(first, fibers_[first + lane].mask);
}

void Block::sync_warp(unsigned mask, pgas::cpu::WarpCall *call) {
  Fiber *f = running_;
  if (!(mask >> f->self.lane & 1)) fail("warp", "a warp operation's mask does not name the calling lane");
  f->mask = mask;
  f->call = call;
  f->state = Fiber::at_warp;
  if (complete_lanes(f->self.rank - f->self.lane, mask)) progress();
  else block_current();
}

void Block::finish_fiber() {
  Fiber *f = running_;
  f->state = Fiber::done;
  live_--;
  progress();
  if (live_ == 0) {
    void *ignored;
    start_switch(nullptr, nullptr, 0);
    pypgas_switch_stack(&ignored, scheduler_);
  }
  // Those that only wait for this thread go on: a thread that has ended counts as arrived.
  if (arrived_ && arrived_ == live_) release_block();
  complete_warp(f->self.rank / 32);
  if (in_ring_ == 1) fail("deadlock", "every remaining thread of the block waits for another: " + describe());
  Fiber *next = f->next;
  unlink(f);
  running_ = next;
  *self_ = &next->self;
  void *ignored;
  start_switch(nullptr, worker_.stacks.bottom(next->self.rank), stack_bytes);
  pypgas_switch_stack(&ignored, next->sp);
  __builtin_unreachable();
}

void Block::yield() {
  if (__builtin_expect(launch_.aborted.load(std::memory_order_relaxed), 0)) leave();
  if (in_ring_ > 1) switch_to(running_->next);
  else if (++polls_ % 64 == 0) sched_yield();
}

bool Block::idle(pgas::WaitFacts *facts) {
  if (launch_.aborted.load(std::memory_order_relaxed)) return false;
  if (!facts->started) { // a wait that has just begun: whatever was waited for before has come
    facts->started = now_ns();
    progress();
  }
  running_->wait = facts;
  // When every thread that could run has looked in vain, so has the block.
  if (++polls_ >= in_ring_) {
    polls_ = 0;
    rest();
    if (launch_.aborted.load(std::memory_order_relaxed)) return false;
  }
  Fiber *f = running_;
  if (in_ring_ > 1) switch_to(f->next);
  f->wait = nullptr;
  return true;
}

void Block::rest() {
  if (++streak_ < g.spins / 8) {
    pgas::arch::pause();
    return;
  }
  const unsigned long long now = now_ns();
  if (streak_ == g.spins / 8) {
    streak_start_ = now;
    next_check_ = now + check_every_ns;
    sleep_ns_ = first_sleep_ns;
  }
  const unsigned long long since = now - streak_start_;
  if (since > waiting_after_ns && !worker_.waiting) pool().start_waiting(worker_);
  if (since < yield_for_ns) {
    sched_yield();
    return;
  }
  if (now >= next_check_) {
    next_check_ = now + check_every_ns;
    std::vector<i64> dead = failed_peers(nullptr, true, false);
    if (!dead.empty()) {
      Failure f = failure_here("peer", describe());
      f.pes.assign(dead.begin(), dead.end());
      launch_.fail(std::move(f));
      return;
    }
    const pgas::WaitFacts *facts = running_->wait;
    if (facts && double(now - facts->started) * 1e-9 > launch_.time_limit) {
      launch_.fail(failure_here("timeout", describe()));
      return;
    }
  }
  timespec t = {0, sleep_ns_};
  nanosleep(&t, nullptr);
  sleep_ns_ = std::min(longest_sleep_ns, sleep_ns_ + sleep_ns_ / 8);
}

void Block::sync_grid() {
  sync_block(0);
  if (running_->self.rank == 0) {
    const unsigned epoch = launch_.grid_epoch.load(std::memory_order_acquire);
    if (launch_.grid_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == launch_.blocks) {
      launch_.grid_arrived.store(0, std::memory_order_relaxed);
      launch_.grid_epoch.store(epoch + 1, std::memory_order_release);
    } else {
      pgas::WaitFacts facts = {"grid synchronisation", nullptr, 0, 0, 0, 0, -1, 0};
      while (launch_.grid_epoch.load(std::memory_order_acquire) == epoch)
        if (!idle(&facts)) leave();
    }
  }
  sync_block(0);
}

Failure Block::failure_here(const char *kind, std::string text) const {
  Failure f;
  f.kind = kind;
  f.text = std::move(text);
  if (running_) {
    const pgas::cpu::Dim3 b = running_->self.block_idx, t = running_->self.thread_idx;
    const long long block[3] = {b.x, b.y, b.z}, thread[3] = {t.x, t.y, t.z};
    memcpy(f.block, block, sizeof block);
    memcpy(f.thread, thread, sizeof thread);
  }
  return f;
}

void Block::fail(const char *kind, std::string text) {
  launch_.fail(failure_here(kind, std::move(text)));
  leave();
}

// Gives the whole block up: its fibers are never resumed, and their stacks are used again.
void Block::leave() {
  launch_.aborted.store(true, std::memory_order_release);
  void *ignored;
  start_switch(nullptr, nullptr, 0);
  pypgas_switch_stack(&ignored, scheduler_);
  __builtin_unreachable();
}

void Block::crashed(const char *kind, const char *text) { launch_.fail(failure_here(kind, text)); }

std::string Block::describe() const {
  unsigned at_block = 0, at_warp = 0, running = 0;
  std::string waits;
  int listed = 0;
  for (unsigned i = 0; i < launch_.shape.threads; i++) {
    const Fiber &f = fibers_[i];
    if (f.state == Fiber::at_block) at_block++;
    else if (f.state == Fiber::at_warp) at_warp++;
    else if (f.state == Fiber::ready) {
      const pgas::WaitFacts *w = f.wait;
      if (!w) { running++; continue; }
      if (listed++ >= 4) continue;
      const auto &t = f.self.thread_idx;
      waits += (waits.empty() ? "" : "; ") + std::string("thread (") + std::to_string(t.x) + ", " + std::to_string(t.y) + ", " +
               std::to_string(t.z) + ") in " + w->operation;
      if (w->width) {
        static const char *const compare[] = {"==", "!=", ">", ">=", "<", "<="};
        const char *p = static_cast<const char *>(w->address);
        waits += " for the variable at heap offset " + std::to_string(p - g.state.heap()) + " to be " + compare[w->compare] + " " +
                 std::to_string((long long)w->expected) + ", it is " + std::to_string((long long)w->seen);
      } else if (w->team >= 0) {
        waits += " on team " + std::to_string(w->team);
      }
    }
  }
  const auto add = [&waits](unsigned n, const char *what) {
    if (n) waits += (waits.empty() ? "" : "; ") + std::to_string(n) + what;
  };
  if (listed > 4) add(unsigned(listed - 4), " more in waits");
  add(at_block, " at __syncthreads");
  add(at_warp, " at a warp operation");
  add(running, " computing");
  return waits;
}

void *abandon_address() { return reinterpret_cast<void *>(abandon_entry); }

} // namespace cpu
} // namespace native
