// SPDX-License-Identifier: Apache-2.0
// The same as for GPUs.
#pragma once

#include "../../cooperative_groups/reduce.h"
