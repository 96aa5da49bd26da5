// SPDX-License-Identifier: Apache-2.0
// Enumerations and signal variables as arguments. Members are recognised by identity: an int, or a member of another
// enumeration with the same number, is an error and never a silent misunderstanding.
#pragma once

#include "operand.h"

namespace native {

bool compare_op(const char *operation, PyObject *object, pgas::Compare *out);
bool signal_op(const char *operation, PyObject *object, pgas::SignalOp *out);
// A uint64 signal variable: symmetric, one element, aligned.
bool signal_operand(const char *operation, PyObject *object, Operand *out, u64 *offset);
bool aligned_operand(const char *operation, const char *name, const Operand &o, u64 offset);

} // namespace native
