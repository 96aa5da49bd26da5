// SPDX-License-Identifier: Apache-2.0
// The front door of the device library, for kernels. (The host's entry points include the raw parts.)
#pragma once

#include "pypgas/atomics.cuh"
#include "pypgas/collectives.cuh"
#include "pypgas/rma.cuh"
#include "pypgas/signals.cuh"
