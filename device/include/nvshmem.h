// SPDX-License-Identifier: Apache-2.0
// NVSHMEM's device functions under their own names, for kernels that were written for it. Each is a few words around
// the function of pypgas.cuh that does the same; docs/from-nvshmem.md lists them, and what is left out.
#pragma once

#include "nvshmem/types.h"

#include "nvshmem/atomics.h"
#include "nvshmem/collectives.h"
#include "nvshmem/rma.h"
#include "nvshmem/signals.h"
#include "nvshmem/sync.h"

#include "nvshmem/left_out.h"
