// SPDX-License-Identifier: Apache-2.0
// Collective calls: entering a team's gate from the host, with Python's exceptions for what can go wrong.
#pragma once

#include "wait.h"

namespace native {

// The order is that of operation_names in gate.cpp.
enum class Operation : u32 {
  barrier, sync, allocate, free, finalize, split, broadcast, fcollect, collect, gather, alltoall, reduce, reduce_scatter,
  inclusive_scan, exclusive_scan, agree, count
};

// Raises what a gate that did not pass means. Always returns null.
PyObject *gate_failed(pgas::Gate result, const char *operation, TeamObject *team, u64 epoch, HostWait &wait);
// Enters the team's gate; on the world team, dropped arrays are agreed upon on the way. False with an exception.
bool enter_gate(const char *name, TeamObject *team, pgas::Arrival arrival, double timeout, u64 *epoch = nullptr);

extern PyMethodDef gate_methods[];

} // namespace native
