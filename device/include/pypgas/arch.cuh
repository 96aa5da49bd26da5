// SPDX-License-Identifier: Apache-2.0
// Chooses the architecture layer. Everything above it is the same for every processor.
#pragma once

#include "scopes.cuh"
#include "traits.cuh"

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
#include "arch/cuda.h"
#else
#include "arch/cpu.h"
#endif
