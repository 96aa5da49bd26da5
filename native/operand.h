// SPDX-License-Identifier: Apache-2.0
// What callers pass as arrays: NumPy arrays, symmetric arrays, remote handles, or anything NumPy can make an array of.
#pragma once

#include "runtime.h"

namespace native {

struct Operand {
  char *data = nullptr;
  int ndim = 0;
  npy_intp *shape = nullptr, *strides = nullptr;
  DType type = DType::count;
  u64 itemsize = 0;
  u64 size = 1; // elements
  bool writable = false, contiguous = false;
  PyObject *array = nullptr;        // the ndarray, borrowed unless `owned`
  Ref owned;
  Allocation *allocation = nullptr; // where known from the object itself
  i64 handle_pe = -1;               // world PE of a remote handle

  u64 nbytes() const { return size * itemsize; }
};

u64 itemsize_of(DType type);
const char *name_of(DType type);

// The views below raise and return false if `object` cannot be used; `name` is the argument's.
// Any array; with `like`, lists and scalars are converted to its dtype.
bool any_operand(const char *operation, const char *name, PyObject *object, Operand *out, const Operand *like = nullptr);
// Symmetric memory that is alive, wholly inside its allocation; *offset is its heap offset.
bool symmetric_operand(const char *operation, const char *name, PyObject *object, Operand *out, u64 *offset,
                       bool handles = true);
// If the operand's memory is symmetric, alive and inside its allocation: its heap offset. False without exception.
bool symmetric_offset(const Operand &o, u64 *offset);
bool writable(const char *operation, const char *name, const Operand &o);
bool same_dtype(const char *operation, const Operand &a, const char *a_name, const Operand &b, const char *b_name);
bool same_shape(const char *operation, const Operand &a, const char *a_name, const Operand &b, const char *b_name);

// A scalar of the given type from a Python object, range-checked, into 16 bytes at `out`.
bool scalar(const char *operation, const char *name, PyObject *object, DType type, void *out);
// A NumPy scalar.
PyObject *to_scalar(DType type, const void *bytes);
PyArray_Descr *descr_of(DType type); // a new reference

// The live blocks of the heap, by offset.
void register_allocation(Allocation *a);
void forget_allocation(Allocation *a);
void forget_all_allocations(); // those of an earlier runtime
Allocation *find_allocation(u64 offset, u64 nbytes);

extern PyMethodDef operand_methods[];

} // namespace native
