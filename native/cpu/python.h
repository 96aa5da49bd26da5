// SPDX-License-Identifier: Apache-2.0
// Streams, events and modules as Python objects, and what host operations need of streams.
#pragma once

#include "../operand.h"
#include "stream.h"

namespace native {

// The stream a caller named, or null without an exception for None. False with an exception for anything else.
bool stream_argument(const char *operation, PyObject *object, std::shared_ptr<cpu::Stream> *out);

// Waits for the default stream, on which kernels without stream= run. False with an exception.
bool wait_default_slow(const char *operation);
extern const std::atomic<unsigned long long> *default_pending;
inline bool wait_default(const char *operation) {
  return __builtin_expect(default_pending == nullptr || default_pending->load(std::memory_order_acquire) == 0, 1) ||
         wait_default_slow(operation);
}
// Enqueues an operation; `keep` objects (null-terminated) live until it is over.
void enqueue(cpu::Stream &stream, std::function<bool(cpu::Worker &, cpu::Failure *)> function,
             std::initializer_list<PyObject *> keep);
void enqueue(cpu::Stream &stream, std::function<void()> function, std::initializer_list<PyObject *> keep);
// Raises what a failure means. Always returns null.
PyObject *raise_failure(const char *operation, const cpu::Failure &failure);
void release_discarded();
bool add_cpu_types(PyObject *module);

// How an operation on a stream waits; a policy like HostWait, on a worker.
class StreamWait {
public:
  StreamWait(cpu::Worker &worker, cpu::Failure *failure, const char *operation, const pgas::Team *team, double timeout)
      : worker_(worker), failure_(failure), operation_(operation), team_(team), timeout_(timeout) {}
  bool idle();
  // See HostWait.
  void restart() {
    looks_ = 0;
    start_ = 0;
    sleep_ns_ = first_sleep;
  }

private:
  static constexpr long first_sleep = 20000;
  cpu::Worker &worker_;
  cpu::Failure *failure_;
  const char *operation_;
  const pgas::Team *team_;
  double timeout_;
  unsigned looks_ = 0;
  u64 start_ = 0, next_check_ = 0;
  long sleep_ns_ = first_sleep;
};

extern PyMethodDef cpu_methods[];

} // namespace native
