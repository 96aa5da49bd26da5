// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime.h"

namespace native {
extern PyMethodDef mapping_methods[];
}
