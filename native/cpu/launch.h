// SPDX-License-Identifier: Apache-2.0
// One launch of a kernel, shared by the workers that run its blocks.
#pragma once

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "pypgas/cpu/abi.h"

namespace native {
namespace cpu {

// What went wrong in a kernel or in an operation on a stream. Filled in once, by whoever fails first.
struct Failure {
  // "assert", "trap", "memory", "deadlock", ...: a KernelError; "timeout" and "peer" become the exceptions of waits
  std::string kind, text, kernel;
  long long block[3] = {-1, -1, -1}, thread[3] = {-1, -1, -1};
  std::vector<long long> pes;
};

struct Launch {
  pgas::cpu::Launch shape{};
  std::string name;
  void (*call)(void **) = nullptr;
  pgas::cpu::Thread **(*self)() = nullptr;
  std::vector<unsigned char> storage; // the arguments
  std::vector<void *> arguments;      // their addresses in `storage`
  size_t shared_bytes = 0;
  unsigned long long blocks = 0;
  bool cooperative = false;
  double time_limit = 0; // of each wait, in seconds

  std::atomic<unsigned long long> next{0}, finished{0};
  std::atomic<bool> aborted{false};
  std::atomic<unsigned> grid_arrived{0}, grid_epoch{0};
  std::mutex mutex; // of failure
  bool failed = false;
  Failure failure;

  void fail(Failure f) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failed) {
      failed = true;
      f.kernel = name;
      failure = std::move(f);
    }
    aborted.store(true, std::memory_order_release);
  }
};

} // namespace cpu
} // namespace native
