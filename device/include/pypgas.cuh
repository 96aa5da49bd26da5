// SPDX-License-Identifier: Apache-2.0
// The front door of the device library.
#pragma once

#include "pypgas/atomics.cuh"
#include "pypgas/collectives.cuh"
#include "pypgas/locks.cuh"
#include "pypgas/rma.cuh"
#include "pypgas/signals.cuh"
#include "pypgas/state.cuh"
#include "pypgas/sync.cuh"
