// SPDX-License-Identifier: Apache-2.0
// Collective calls: entering a team's gate from the host, with Python's exceptions for what can go wrong.
#pragma once

#include "wait.h"

namespace native {

using pgas::Operation;

// Raises what a gate that did not pass means. Always returns null.
PyObject *gate_failed(pgas::raw::Gate result, const char *operation, TeamObject *team, u64 epoch, HostWait &wait);
// Enters the team's gate; on the world team, dropped arrays are agreed upon on the way. False with an exception.
bool enter_gate(const char *name, TeamObject *team, pgas::raw::Arrival arrival, double timeout, u64 *epoch = nullptr);

// While it lives, a collective of the team is queued on a stream.
class QueuedCollective {
public:
  explicit QueuedCollective(const TeamObject *team) : count_(*team->queued) { ++*count_; }
  ~QueuedCollective() { --*count_; }

private:
  std::shared_ptr<std::atomic<int>> count_;
};
// Waits for the team's collectives on streams: calls of one PE must come in the order of its program. False with an
// exception.
bool wait_queued(const char *operation, const TeamObject *team, double timeout);

// What a gate's outcome means for an operation on a stream: true, or false with the failure described.
namespace cpu {
struct Failure;
}
bool stream_gate(pgas::raw::Gate result, const char *name, const pgas::Team &team, u64 epoch, cpu::Failure *failure);

extern PyMethodDef gate_methods[];

} // namespace native
