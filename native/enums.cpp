// SPDX-License-Identifier: Apache-2.0
#include "enums.h"

namespace native {

bool compare_op(const char *operation, PyObject *object, pgas::Compare *out) {
  for (int i = 0; i < int(pgas::Compare::count); i++)
    if (object == g.compare[i]) {
      *out = pgas::Compare(i);
      return true;
    }
  fail(Err::type, operation, "comparison must be one of pypgas.EQ, NE, GT, GE, LT, LE, not %R", object);
  return false;
}

bool signal_op(const char *operation, PyObject *object, pgas::SignalOp *out) {
  for (int i = 0; i < int(pgas::SignalOp::count); i++)
    if (object == g.signal_ops[i]) {
      *out = pgas::SignalOp(i);
      return true;
    }
  fail(Err::type, operation, "op must be pypgas.SIGNAL_SET or SIGNAL_ADD, not %R", object);
  return false;
}

bool aligned_operand(const char *operation, const char *name, const Operand &o, u64 offset) {
  if (offset % o.itemsize == 0) return true;
  fail(Err::value, operation, "%s is not aligned to its %llu bytes, so no processor can update it atomically", name,
       static_cast<unsigned long long>(o.itemsize));
  return false;
}

bool signal_operand(const char *operation, PyObject *object, Operand *out, u64 *offset) {
  if (!symmetric_operand(operation, "signal", object, out, offset)) return false;
  if (out->type != DType::u64) {
    fail(Err::type, operation, "signal must be uint64, not %s", name_of(out->type));
    return false;
  }
  if (out->size != 1) {
    fail(Err::value, operation, "signal must have exactly one element, it has %llu; index it, as in signals[i]",
         static_cast<unsigned long long>(out->size));
    return false;
  }
  return aligned_operand(operation, "signal", *out, *offset);
}

} // namespace native
