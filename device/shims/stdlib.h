// SPDX-License-Identifier: Apache-2.0
// NVRTC has malloc, free and abs built in.
#pragma once

#include "stddef.h"
