// SPDX-License-Identifier: Apache-2.0
// The parts of the library that take the state as an argument: what the host calls.
#pragma once

#include "operations.cuh"
#include "raw/atomics.cuh"
#include "raw/copy.cuh"
#include "raw/exchange.cuh"
#include "raw/gate.cuh"
#include "raw/locks.cuh"
#include "raw/reduce.cuh"
#include "raw/signals.cuh"
