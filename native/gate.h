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

extern PyMethodDef gate_methods[];

} // namespace native
