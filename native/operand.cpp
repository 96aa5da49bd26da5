// SPDX-License-Identifier: Apache-2.0
#include "operand.h"

#include <cmath>
#include <map>

namespace native {

namespace {

struct TypeFacts { const char *name; u64 itemsize; int numpy; };
const TypeFacts type_facts[int(DType::count)] = {
    {"int8", 1, NPY_INT8},       {"int16", 2, NPY_INT16},      {"int32", 4, NPY_INT32},     {"int64", 8, NPY_INT64},
    {"uint8", 1, NPY_UINT8},     {"uint16", 2, NPY_UINT16},    {"uint32", 4, NPY_UINT32},   {"uint64", 8, NPY_UINT64},
    {"bool", 1, NPY_BOOL},       {"float16", 2, NPY_FLOAT16},  {"bfloat16", 2, -1},         {"float32", 4, NPY_FLOAT32},
    {"float64", 8, NPY_FLOAT64}, {"complex64", 8, NPY_COMPLEX64}, {"complex128", 16, NPY_COMPLEX128}};

bool is_bfloat16(int numpy) {
  if (g.bfloat16_type < 0 && numpy >= NPY_USERDEF && g.find_bfloat16) {
    Ref found(PyObject_CallNoArgs(g.find_bfloat16));
    if (found && PyArray_DescrCheck(found.p)) g.bfloat16_type = reinterpret_cast<PyArray_Descr *>(found.p)->type_num;
    PyErr_Clear();
  }
  return numpy >= NPY_USERDEF && numpy == g.bfloat16_type;
}

DType type_of(int numpy) {
  switch (numpy) {
  case NPY_BYTE: return DType::i8;
  case NPY_SHORT: return DType::i16;
  case NPY_INT: return DType::i32;
  case NPY_LONG: case NPY_LONGLONG: return DType::i64;
  case NPY_UBYTE: return DType::u8;
  case NPY_USHORT: return DType::u16;
  case NPY_UINT: return DType::u32;
  case NPY_ULONG: case NPY_ULONGLONG: return DType::u64;
  case NPY_BOOL: return DType::b8;
  case NPY_HALF: return DType::f16;
  case NPY_FLOAT: return DType::f32;
  case NPY_DOUBLE: return DType::f64;
  case NPY_CFLOAT: return DType::c64;
  case NPY_CDOUBLE: return DType::c128;
  default: return is_bfloat16(numpy) ? DType::bf16 : DType::count;
  }
}

std::map<u64, Allocation *> &blocks() {
  static std::map<u64, Allocation *> live;
  return live;
}

// The block an array was made over, found through the bases NumPy keeps: tells a freed block from one that
// happens to have been allocated again at the same place.
Allocation *owner_of(PyArrayObject *array) {
  PyObject *base = PyArray_BASE(array);
  for (int depth = 0; base && depth < 8; depth++) {
    if (Py_TYPE(base) == g.allocation_type) return reinterpret_cast<Allocation *>(base);
    if (!PyArray_Check(base)) return nullptr;
    base = PyArray_BASE(reinterpret_cast<PyArrayObject *>(base));
  }
  return nullptr;
}

// The bytes an operand spans, relative to its data pointer.
void extent(const Operand &o, i64 *low, i64 *high) {
  *low = 0;
  *high = i64(o.itemsize);
  for (int i = 0; i < o.ndim; i++) {
    const i64 reach = (o.shape[i] - 1) * o.strides[i];
    if (reach < 0) *low += reach;
    else *high += reach;
  }
}

bool fill(const char *operation, const char *name, PyArrayObject *array, Operand *out) {
  PyArray_Descr *descr = PyArray_DESCR(array);
  out->array = reinterpret_cast<PyObject *>(array);
  out->data = static_cast<char *>(PyArray_DATA(array));
  out->ndim = PyArray_NDIM(array);
  out->shape = PyArray_DIMS(array);
  out->strides = PyArray_STRIDES(array);
  out->type = type_of(descr->type_num);
  const int flags = PyArray_FLAGS(array);
  if (__builtin_expect(out->type == DType::count || !PyArray_ISNBO(descr->byteorder), 0)) {
    fail(Err::type, operation, "%s has dtype %S, which pypgas has no operations for; use bool, int8 to int64, uint8 to "
         "uint64, float16, bfloat16, float32, float64, complex64 or complex128 in native byte order", name, descr);
    return false;
  }
  out->itemsize = type_facts[int(out->type)].itemsize;
  out->writable = flags & NPY_ARRAY_WRITEABLE;
  out->contiguous = flags & NPY_ARRAY_C_CONTIGUOUS;
  out->size = 1;
  for (int i = 0; i < out->ndim; i++) out->size *= u64(out->shape[i]);
  return true;
}

bool stale(const char *operation, const char *name, const Allocation *a) {
  if (a->generation != g.generation) fail(Err::stale, operation, "%s belongs to an earlier runtime; allocate it anew after init()", name);
  else fail(Err::stale, operation, "%s was freed", name);
  return false;
}

} // namespace

u64 itemsize_of(DType type) { return type_facts[int(type)].itemsize; }
const char *name_of(DType type) { return type_facts[int(type)].name; }

PyArray_Descr *descr_of(DType type) {
  return PyArray_DescrFromType(type == DType::bf16 ? g.bfloat16_type : type_facts[int(type)].numpy);
}

void register_allocation(Allocation *a) { blocks()[a->offset] = a; }
void forget_allocation(Allocation *a) {
  auto found = blocks().find(a->offset);
  if (found != blocks().end() && found->second == a) blocks().erase(found);
}
void forget_all_allocations() { blocks().clear(); }
Allocation *find_allocation(u64 offset, u64 nbytes) {
  auto next = blocks().upper_bound(offset);
  if (next == blocks().begin()) return nullptr;
  Allocation *a = (--next)->second;
  return a->generation == g.generation && offset + nbytes <= a->offset + a->nbytes ? a : nullptr;
}

bool any_operand(const char *operation, const char *name, PyObject *object, Operand *out, const Operand *like) {
  if (__builtin_expect(PyArray_Check(object), 1)) {
    PyArrayObject *array = reinterpret_cast<PyArrayObject *>(object);
    if (PyArray_BASE(array)) {
      const Allocation *owner = owner_of(array);
      if (owner && (!owner->live || owner->generation != g.generation)) return stale(operation, name, owner);
    }
    return fill(operation, name, array, out);
  }
  if (PyObject_TypeCheck(object, g.array_type)) {
    ArrayBase *a = reinterpret_cast<ArrayBase *>(object);
    if (a->allocation->generation != g.generation || !a->allocation->live) return stale(operation, name, a->allocation);
    out->allocation = a->allocation;
    return fill(operation, name, reinterpret_cast<PyArrayObject *>(a->local), out);
  }
  if (PyObject_TypeCheck(object, g.handle_type)) {
    fail(Err::type, operation, "%s is a remote handle; use x.at(pe)[...].get() for its values, or get()", name);
    return false;
  }
  Ref descr(like ? reinterpret_cast<PyObject *>(descr_of(like->type)) : nullptr);
  Ref text(PyUnicode_FromString(operation)), argument(PyUnicode_FromString(name));
  if (!text || !argument) return false;
  PyObject *array = PyObject_CallFunctionObjArgs(g.as_array, object, descr ? descr.p : Py_None, text.p, argument.p, nullptr);
  if (!array) return false;
  out->owned.p = array;
  return fill(operation, name, reinterpret_cast<PyArrayObject *>(array), out);
}

bool symmetric_offset(const Operand &o, u64 *offset) {
  if (!o.size) {
    *offset = 0;
    return false;
  }
  i64 low, high;
  extent(o, &low, &high);
  const char *first = o.data + low, *heap = g.state.heap();
  if (first < heap || o.data + high > heap + g.state.heap_bytes) return false;
  const u64 begin = u64(first - heap), bytes = u64(high - low);
  *offset = u64(o.data - heap);
  if (o.allocation) return true; // views of a symmetric array stay inside it
  const Allocation *owner = owner_of(reinterpret_cast<PyArrayObject *>(o.array));
  if (owner)
    return owner->live && owner->generation == g.generation && begin >= owner->offset &&
           begin + bytes <= owner->offset + owner->nbytes;
  return find_allocation(begin, bytes) != nullptr;
}

bool symmetric_operand(const char *operation, const char *name, PyObject *object, Operand *out, u64 *offset, bool handles) {
  if (handles && !PyArray_Check(object) && PyObject_TypeCheck(object, g.handle_type)) {
    HandleBase *h = reinterpret_cast<HandleBase *>(object);
    if (!any_operand(operation, name, h->array, out)) return false;
    out->handle_pe = h->pe;
  } else if (PyArray_Check(object) || PyObject_TypeCheck(object, g.array_type)) {
    if (!any_operand(operation, name, object, out)) return false;
  } else if (PyObject_HasAttrString(object, "__dlpack__") && !PyArray_CheckScalar(object)) {
    if (!any_operand(operation, name, object, out)) return false; // another library's view of symmetric memory
  } else {
    fail(Err::type, operation, "%s must be symmetric memory (pypgas.zeros() and its like, or a view of one), not %R", name,
         reinterpret_cast<PyObject *>(Py_TYPE(object)));
    return false;
  }
  if (__builtin_expect(symmetric_offset(*out, offset), 1)) return true;
  const Allocation *owner = out->allocation ? out->allocation : owner_of(reinterpret_cast<PyArrayObject *>(out->array));
  if (owner && (!owner->live || owner->generation != g.generation)) return stale(operation, name, owner);
  if (!out->size) return true; // no memory is touched
  const char *heap = g.state.heap();
  if (out->data >= heap && out->data < heap + g.state.heap_bytes)
    fail(Err::not_symmetric, operation, "%s reaches outside its symmetric allocation, or its memory was freed", name);
  else
    fail(Err::not_symmetric, operation, "%s is not in the symmetric heap; allocate it with pypgas.zeros() or its like", name);
  return false;
}

bool writable(const char *operation, const char *name, const Operand &o) {
  if (o.writable) return true;
  fail(Err::value, operation, "%s is read-only", name);
  return false;
}

bool same_dtype(const char *operation, const Operand &a, const char *a_name, const Operand &b, const char *b_name) {
  if (a.type == b.type) return true;
  fail(Err::type, operation, "%s has dtype %s and %s has dtype %s; convert one with astype()", a_name, name_of(a.type), b_name,
       name_of(b.type));
  return false;
}

bool same_shape(const char *operation, const Operand &a, const char *a_name, const Operand &b, const char *b_name) {
  bool same = a.ndim == b.ndim;
  for (int i = 0; same && i < a.ndim; i++) same = a.shape[i] == b.shape[i];
  if (same) return true;
  Ref as(PyArray_IntTupleFromIntp(a.ndim, a.shape)), bs(PyArray_IntTupleFromIntp(b.ndim, b.shape));
  if (as && bs) fail(Err::value, operation, "%s has shape %S and %s has shape %S; they must be equal", a_name, as.p, b_name, bs.p);
  return false;
}

namespace {
template <class T> bool put_integer(const char *operation, const char *name, PyObject *object, void *out, DType type) {
  Ref index(PyNumber_Index(object));
  if (!index) return false;
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(index.p, &overflow);
  T result;
  bool fits;
  if (overflow > 0 && std::is_same<T, u64>::value) {
    const unsigned long long u = PyLong_AsUnsignedLongLong(index.p);
    fits = !PyErr_Occurred();
    PyErr_Clear();
    result = T(u);
  } else {
    result = T(v);
    fits = !overflow && (std::is_signed<T>::value || v >= 0) && static_cast<long long>(result) == v;
  }
  if (!fits) {
    fail(Err::value, operation, "%s = %S does not fit in %s", name, index.p, name_of(type));
    return false;
  }
  memcpy(out, &result, sizeof result);
  return true;
}
} // namespace

bool scalar(const char *operation, const char *name, PyObject *object, DType type, void *out) {
  const bool is_int = PyLong_Check(object) && !PyBool_Check(object);
  if (is_int || (int(type) <= int(DType::u64) && PyIndex_Check(object) && !PyArray_Check(object))) {
    switch (type) {
    case DType::i8: return put_integer<int8_t>(operation, name, object, out, type);
    case DType::i16: return put_integer<int16_t>(operation, name, object, out, type);
    case DType::i32: return put_integer<int32_t>(operation, name, object, out, type);
    case DType::i64: return put_integer<int64_t>(operation, name, object, out, type);
    case DType::u8: return put_integer<uint8_t>(operation, name, object, out, type);
    case DType::u16: return put_integer<uint16_t>(operation, name, object, out, type);
    case DType::u32: return put_integer<uint32_t>(operation, name, object, out, type);
    case DType::u64: return put_integer<uint64_t>(operation, name, object, out, type);
    default: break;
    }
  }
  if (type == DType::f64 && PyFloat_CheckExact(object)) {
    const double d = PyFloat_AsDouble(object);
    memcpy(out, &d, sizeof d);
    return true;
  }
  if (type == DType::f32 && PyFloat_CheckExact(object)) {
    const float f = float(PyFloat_AsDouble(object));
    memcpy(out, &f, sizeof f);
    return true;
  }
  if (PyArray_Check(object)) {
    PyArrayObject *a = reinterpret_cast<PyArrayObject *>(object);
    PyArray_Descr *descr = PyArray_DESCR(a);
    if (type_of(descr->type_num) == type && PyArray_ISNBO(descr->byteorder) && PyArray_SIZE(a) == 1) {
      memcpy(out, PyArray_DATA(a), itemsize_of(type));
      return true;
    }
  }
  // Everything else by NumPy's own rules: same-kind casts only.
  Ref descr(reinterpret_cast<PyObject *>(descr_of(type))), text(PyUnicode_FromString(operation)), argument(PyUnicode_FromString(name));
  if (!descr || !text || !argument) return false;
  Ref array(PyObject_CallFunctionObjArgs(g.as_array, object, descr.p, text.p, argument.p, nullptr));
  if (!array) return false;
  PyArrayObject *a = reinterpret_cast<PyArrayObject *>(array.p);
  if (PyArray_SIZE(a) != 1) {
    fail(Err::value, operation, "%s must be one value, not an array of shape %S", name,
         Ref(PyArray_IntTupleFromIntp(PyArray_NDIM(a), PyArray_DIMS(a))).p);
    return false;
  }
  memcpy(out, PyArray_DATA(a), itemsize_of(type));
  return true;
}

PyObject *to_scalar(DType type, const void *bytes) {
  Ref descr(reinterpret_cast<PyObject *>(descr_of(type)));
  if (!descr) return nullptr;
  return PyArray_Scalar(const_cast<void *>(bytes), reinterpret_cast<PyArray_Descr *>(descr.p), nullptr);
}

namespace {
// symmetric_offset(object) -> heap offset, or None if its memory is not symmetric (or freed)
PyObject *py_symmetric_offset(PyObject *, PyObject *object) {
  PYPGAS_CHECK_ACTIVE("is_symmetric");
  if (!PyArray_Check(object) && !PyObject_TypeCheck(object, g.array_type)) Py_RETURN_NONE;
  if (PyObject_TypeCheck(object, g.array_type)) {
    const Allocation *a = reinterpret_cast<ArrayBase *>(object)->allocation;
    if (!a->live || a->generation != g.generation) Py_RETURN_NONE;
  } else {
    PyArrayObject *array = reinterpret_cast<PyArrayObject *>(object);
    const Allocation *owner = PyArray_BASE(array) ? owner_of(array) : nullptr;
    if ((owner && (!owner->live || owner->generation != g.generation)) || type_of(PyArray_DESCR(array)->type_num) == DType::count)
      Py_RETURN_NONE;
  }
  Operand o;
  u64 offset;
  if (!any_operand("is_symmetric", "array", object, &o)) return nullptr;
  if (!symmetric_offset(o, &offset)) {
    if (o.allocation) return PyLong_FromUnsignedLongLong(o.allocation->offset); // a symmetric array of size 0
    Py_RETURN_NONE;
  }
  return PyLong_FromUnsignedLongLong(offset);
}
// block_at(array) -> the Allocation its memory lies in, or None
PyObject *py_block_at(PyObject *, PyObject *object) {
  PYPGAS_CHECK_ACTIVE("free");
  Allocation *found = nullptr;
  if (PyObject_TypeCheck(object, g.array_type)) found = reinterpret_cast<ArrayBase *>(object)->allocation;
  else if (PyArray_Check(object)) {
    found = owner_of(reinterpret_cast<PyArrayObject *>(object));
    if (!found) {
      const char *data = static_cast<char *>(PyArray_DATA(reinterpret_cast<PyArrayObject *>(object))), *heap = g.state.heap();
      if (data >= heap && data < heap + g.state.heap_bytes) found = find_allocation(u64(data - heap), 0);
    }
  }
  if (!found) Py_RETURN_NONE;
  Py_INCREF(reinterpret_cast<PyObject *>(found));
  return reinterpret_cast<PyObject *>(found);
}
// address(array) -> where its first element is; NumPy's own ways to say it take a microsecond
PyObject *py_address(PyObject *, PyObject *object) {
  if (!PyArray_Check(object)) return PyErr_Format(PyExc_TypeError, "address() takes an array");
  return PyLong_FromVoidPtr(PyArray_DATA(reinterpret_cast<PyArrayObject *>(object)));
}
} // namespace

PyMethodDef operand_methods[] = {
    {"address", py_address, METH_O, "Where an array's first element is."},
    {"symmetric_offset", py_symmetric_offset, METH_O, "Heap offset of symmetric memory, or None."},
    {"block_at", py_block_at, METH_O, "The block an array lies in, or None."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace native
