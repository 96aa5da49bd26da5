// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operand.h"

namespace native {

// World PE an operation on `symmetric` goes to: `pe`, counted in `team`, or the PE of a remote handle.
i64 pe_of(const char *operation, PyObject *pe, const TeamObject *team, const Operand &symmetric, const char *name);

extern PyMethodDef rma_methods[];

} // namespace native
