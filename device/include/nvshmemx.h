// SPDX-License-Identifier: Apache-2.0
// NVSHMEM keeps its extensions (warps, blocks, signals) in a header of this name. Here nvshmem.h has them all.
#pragma once

#include "nvshmem.h"
