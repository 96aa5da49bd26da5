// SPDX-License-Identifier: Apache-2.0
// What kernels use of the runtime's header is declared before their source begins.
#pragma once

#include "cuda_runtime_api.h"
