// SPDX-License-Identifier: Apache-2.0
// What every kind of wait needs, with or without the interpreter: the time, and who has failed.
#pragma once

#include <vector>

#include "runtime.h"

namespace native {

u64 now_ns();

// World numbers of the team's PEs (everybody's without a team) that have failed; with `finalized`, also of those that
// have ended in order. `poll_processes` asks the system about deaths; otherwise only what PEs have published counts.
std::vector<i64> failed_peers(const pgas::Team *team, bool poll_processes, bool finalized);

} // namespace native
