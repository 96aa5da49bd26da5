// SPDX-License-Identifier: Apache-2.0
// Codes of the collective operations, which PEs compare to find mismatched calls: the same for kernels and the host.
#pragma once

#include "types.cuh"

namespace pgas {

enum class Operation : u32 {
  barrier, sync, allocate, free, finalize, split, broadcast, fcollect, collect, gather, alltoall, reduce, reduce_scatter,
  inclusive_scan, exclusive_scan, count
};

} // namespace pgas
