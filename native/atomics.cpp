// SPDX-License-Identifier: Apache-2.0
// Atomic operations on one element of a PE's memory, or on many in one call.
#include "entry/amo.cuh"

#include <array>
#include <vector>

#include "cpu/python.h"

#include "enums.h"
#include "rma.h"

namespace native {

using pgas::Amo;

namespace {

constexpr u64 unlock_above = 4096; // elements of a bulk call

struct Kind {
  const char *name;
  Amo op;
  bool fetch, value, condition;
};

// Byte offset, from the operand's first element, of `index`: a flat element number or a tuple.
bool element(const Kind &k, const Operand &o, PyObject *index, i64 *bytes) {
  *bytes = 0;
  if (PyTuple_Check(index)) {
    if (PyTuple_Size(index) != o.ndim) {
      fail(Err::value, k.name, "index = %R must have %d numbers, one for each dimension of target", index, o.ndim);
      return false;
    }
    for (int i = 0; i < o.ndim; i++) {
      i64 at;
      if (!integer(k.name, "index", PyTuple_GetItem(index, i), &at)) return false;
      if (at < -o.shape[i] || at >= o.shape[i]) {
        fail(Err::value, k.name, "index = %R is outside target in dimension %d, whose length is %lld", index, i,
             static_cast<long long>(o.shape[i]));
        return false;
      }
      *bytes += (at < 0 ? at + o.shape[i] : at) * o.strides[i];
    }
    return true;
  }
  i64 at;
  if (!integer(k.name, "index", index, &at)) return false;
  if (at < -i64(o.size) || at >= i64(o.size)) {
    fail(Err::value, k.name, "index = %lld is outside target, which has %llu elements", static_cast<long long>(at),
         static_cast<unsigned long long>(o.size));
    return false;
  }
  if (at < 0) at += i64(o.size);
  for (int i = o.ndim - 1; i >= 0; i--) {
    *bytes += at % o.shape[i] * o.strides[i];
    at /= o.shape[i];
  }
  return true;
}

bool unsupported(const Kind &k, DType type) {
  const bool complex128 = type == DType::c128;
  fail(Err::type, k.name, "no atomic %s on %s; it works on %s", k.op == Amo::compare_swap ? "compare_swap" : k.name + 7,
       name_of(type),
       complex128 ? "types of up to 8 bytes: a 16-byte update cannot be atomic"
       : k.op == Amo::add ? "integers, floats and complex64"
       : k.op == Amo::compare_swap ? "integers and bool; view a float array as integers of its size"
                                   : "integers and bool");
  return false;
}

// The first of n numbers that is not in 0..limit-1, or n. Without a branch for each number the loop is vectorised.
u64 first_outside(const i64 *numbers, u64 n, i64 limit) {
  i64 any = 0; // negative if one is negative or beyond
  for (u64 i = 0; i < n; i++) any |= numbers[i] | i64(u64(limit - 1) - u64(numbers[i]));
  if (any >= 0) return n;
  u64 i = 0;
  while (numbers[i] >= 0 && numbers[i] < limit) i++;
  return i;
}

// An int64 array of numbers from an argument, or a single one.
bool numbers(const Kind &k, const char *name, PyObject *object, Operand *out) {
  if (PyArray_Check(object)) {
    PyArrayObject *array = reinterpret_cast<PyArrayObject *>(object);
    if (PyArray_TYPE(array) == NPY_INT64 && PyArray_ISCARRAY_RO(array)) return any_operand(k.name, name, object, out);
  }
  Ref descr(reinterpret_cast<PyObject *>(PyArray_DescrFromType(NPY_INT64)));
  Ref text(PyUnicode_FromString(k.name)), argument(PyUnicode_FromString(name));
  if (!descr || !text || !argument) return false;
  PyObject *array = PyObject_CallFunctionObjArgs(g.as_array, object, descr.p, text.p, argument.p, nullptr);
  out->owned.p = array;
  return array && any_operand(k.name, name, array, out);
}

// An array that receives `n` fetched elements.
bool result_operand(const Kind &k, PyObject *out, DType type, u64 n, Operand *result) {
  if (!PyArray_Check(out) && !PyObject_TypeCheck(out, g.array_type)) {
    fail(Err::type, k.name, "out must be an array, not %R", reinterpret_cast<PyObject *>(Py_TYPE(out)));
    return false;
  }
  if (!any_operand(k.name, "out", out, result) || !writable(k.name, "out", *result)) return false;
  if (result->type != type || !result->contiguous || result->size != n) {
    fail(Err::value, k.name, "out must be a contiguous array of %llu elements of %s", static_cast<unsigned long long>(n), name_of(type));
    return false;
  }
  return true;
}

PyObject *bulk(const Kind &k, const Operand &target, u64 offset, PyObject *index_object, PyObject *value_object,
               PyObject *condition_object, PyObject *pe_object, const TeamObject *team, cpu::Stream *stream, PyObject *out) {
  Operand index, pes, values, conditions;
  if (!numbers(k, "index", index_object, &index)) return nullptr;
  const u64 n = index.size;
  i64 stride = i64(target.itemsize);
  if (!target.contiguous) {
    if (target.ndim != 1)
      return fail(Err::value, k.name, "target must be contiguous or one-dimensional for many elements at once");
    stride = target.strides[0];
  }
  const i64 *indices = reinterpret_cast<const i64 *>(index.data);
  if (const u64 i = first_outside(indices, n, i64(target.size)); i < n)
      return fail(Err::value, k.name, "index[%llu] = %lld is outside 0..%lld, target's elements",
                  static_cast<unsigned long long>(i), static_cast<long long>(indices[i]), static_cast<long long>(target.size) - 1);
  std::vector<i64> worlds;
  i64 pe_step = 0;
  if (target.handle_pe >= 0 || !pe_object || PyIndex_Check(pe_object)) {
    const bool is_array = pe_object && PyArray_Check(pe_object) && PyArray_NDIM(reinterpret_cast<PyArrayObject *>(pe_object)) > 0;
    if (!is_array) {
      const i64 pe = pe_of(k.name, pe_object, team, target, "target");
      if (pe < 0) return nullptr;
      worlds.push_back(pe);
    }
  }
  const i64 *world = nullptr;
  if (worlds.empty()) {
    if (target.handle_pe >= 0)
      return fail(Err::value, k.name, "target is a handle on PE %lld; leave pe out", static_cast<long long>(target.handle_pe));
    if (!numbers(k, "pe", pe_object, &pes)) return nullptr;
    if (pes.size != n)
      return fail(Err::value, k.name, "pe has %llu numbers but index has %llu", static_cast<unsigned long long>(pes.size),
                  static_cast<unsigned long long>(n));
    const i64 *numbers_ = reinterpret_cast<const i64 *>(pes.data);
    if (const u64 i = first_outside(numbers_, n, team->team.size); i < n)
      return fail(Err::pe, k.name, "pe[%llu] = %lld is not in 0..%lld", static_cast<unsigned long long>(i),
                  static_cast<long long>(numbers_[i]), static_cast<long long>(team->team.size) - 1);
    bool all_mapped = true;
    for (i64 i = 0; i < team->team.size; i++) all_mapped = all_mapped && g.state.heaps[team->team.members[i]];
    for (u64 i = 0; !all_mapped && i < n; i++)
      if (!g.state.heaps[team->team.members[numbers_[i]]])
        return fail(Err::unreachable, k.name, "PE %lld's memory is not mapped here",
                    static_cast<long long>(team->team.members[numbers_[i]]));
    pe_step = 1;
    world = numbers_;
    if (team != g.world) {
      worlds.resize(n);
      for (u64 i = 0; i < n; i++) worlds[i] = team->team.members[numbers_[i]];
      world = worlds.data();
    }
  } else {
    world = worlds.data();
  }
  pgas::entry::BulkAmo b = {n, offset, stride, indices, world, pe_step, nullptr, nullptr, 0, 0, nullptr};
  const struct { const char *name; PyObject *object; Operand &o; const char **data; i64 *step; } inputs[] = {
      {"value", value_object, values, &b.values, &b.value_step},
      {"cond", condition_object, conditions, &b.conditions, &b.condition_step}};
  for (const auto &in : inputs) {
    if (!in.object) continue;
    Ref descr(reinterpret_cast<PyObject *>(descr_of(target.type))), text(PyUnicode_FromString(k.name)),
        argument(PyUnicode_FromString(in.name));
    if (!descr || !text || !argument) return nullptr;
    PyObject *array = PyObject_CallFunctionObjArgs(g.as_array, in.object, descr.p, text.p, argument.p, nullptr);
    if (!array) return nullptr;
    in.o.owned.p = array;
    if (!any_operand(k.name, in.name, array, &in.o)) return nullptr;
    if (in.o.size != n && in.o.size != 1)
      return fail(Err::value, k.name, "%s has %llu elements but index has %llu", in.name,
                  static_cast<unsigned long long>(in.o.size), static_cast<unsigned long long>(n));
    *in.data = in.o.data;
    *in.step = in.o.size == 1 ? 0 : i64(target.itemsize);
  }
  Ref result;
  if (out) {
    Operand given;
    if (!result_operand(k, out, target.type, n, &given)) return nullptr;
    b.results = given.data;
    Py_INCREF(out);
    result.p = out;
  } else if (k.fetch) {
    result.p = PyArray_NewFromDescr(&PyArray_Type, descr_of(target.type), index.ndim, index.shape, nullptr, nullptr, 0, nullptr);
    if (!result) return nullptr;
    b.results = static_cast<char *>(PyArray_DATA(reinterpret_cast<PyArrayObject *>(result.p)));
  }
  if (stream) {
    if (pe_step == 0 || team != g.world) {
      auto owned = std::make_shared<std::vector<i64>>(std::move(worlds));
      b.pes = owned->data();
      enqueue(*stream, [b, owned, type = target.type, op = k.op] { pgas::entry::amo_bulk(g.state, type, op, b); },
              {target.array, index.array, values.array, conditions.array, result.p});
    } else {
      enqueue(*stream, [b, type = target.type, op = k.op] { pgas::entry::amo_bulk(g.state, type, op, b); },
              {target.array, index.array, pes.array, values.array, conditions.array, result.p});
    }
  } else if (!wait_default(k.name)) {
    return nullptr;
  } else if (n) {
    PyThreadState *saved = n > unlock_above ? PyEval_SaveThread() : nullptr;
    pgas::entry::amo_bulk(g.state, target.type, k.op, b);
    if (saved) PyEval_RestoreThread(saved);
  }
  if (k.fetch) return result.release();
  Py_RETURN_NONE;
}

PyObject *amo(const Kind &k, PyObject *one, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const fetch_names[] = {"target", "pe", "index", "team", "ctx", "stream", "out"};
  static const char *const value_names[] = {"target", "value", "pe", "index", "team", "ctx", "stream", "out"};
  static const char *const swap_names[] = {"target", "cond", "value", "pe", "index", "team", "ctx", "stream", "out"};
  const int operands = k.condition ? 2 : k.value && !one ? 1 : 0;
  const Signature signature = {k.name, 1 + operands, 2 + operands, (k.fetch ? 7 : 6) + operands,
                               operands == 2 ? swap_names : operands ? value_names : fetch_names};
  PyObject *a[9] = {};
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(k.name);
  PyObject *condition = operands == 2 ? a[1] : nullptr, *value = one ? one : operands ? a[operands] : nullptr;
  PyObject *pe_object = a[1 + operands], *index = a[2 + operands];
  TeamObject *team = resolve_team(k.name, a[3 + operands], a[4 + operands]);
  std::shared_ptr<cpu::Stream> stream;
  if (!team || !stream_argument(k.name, a[5 + operands], &stream)) return nullptr;
  PyObject *out = k.fetch ? a[6 + operands] : nullptr;
  if (out == Py_None) out = nullptr;
  if (k.fetch && stream && !out)
    return fail(Err::value, k.name, "on a stream the result comes later: give out=, an array to receive it");
  if (pe_object == Py_None) pe_object = nullptr;
  Operand target;
  u64 offset;
  if (!symmetric_operand(k.name, "target", a[0], &target, &offset)) return nullptr;
  if (!pgas::entry::amo_supported(target.type, k.op)) {
    unsupported(k, target.type);
    return nullptr;
  }
  if (!aligned_operand(k.name, "target", target, offset)) return nullptr;
  if (index && index != Py_None) {
    const bool single = PyTuple_Check(index) || (PyIndex_Check(index) && !(PyArray_Check(index) && PyArray_NDIM(reinterpret_cast<PyArrayObject *>(index)) > 0));
    if (!single) return bulk(k, target, offset, index, value, condition, pe_object, team, stream.get(), out);
    i64 bytes;
    if (!element(k, target, index, &bytes)) return nullptr;
    offset += u64(bytes);
  } else if (target.size != 1) {
    return fail(Err::value, k.name, "target has %llu elements; say which by index=, or pass one element as in x[i]",
                static_cast<unsigned long long>(target.size));
  }
  const i64 pe = pe_of(k.name, pe_object, team, target, "target");
  if (pe < 0) return nullptr;
  alignas(16) unsigned char v[16] = {}, c[16] = {}, old[16];
  if (value && !scalar(k.name, "value", value, target.type, v)) return nullptr;
  if (condition && !scalar(k.name, "cond", condition, target.type, c)) return nullptr;
  Operand result;
  if (out && !result_operand(k, out, target.type, 1, &result)) return nullptr;
  char *where = g.state.heaps[pe] + offset;
  if (stream) {
    std::array<unsigned char, 16> vs, cs;
    memcpy(vs.data(), v, sizeof v);
    memcpy(cs.data(), c, sizeof c);
    enqueue(*stream, [=, type = target.type, op = k.op, to = result.data] {
      pgas::entry::amo(type, op, where, vs.data(), cs.data(), to);
    }, {a[0], out});
    if (!out) Py_RETURN_NONE;
    Py_INCREF(out);
    return out;
  }
  if (!wait_default(k.name)) return nullptr;
  pgas::entry::amo(target.type, k.op, where, v, c, k.fetch ? old : nullptr);
  if (out) {
    memcpy(result.data, old, target.itemsize);
    Py_INCREF(out);
    return out;
  }
  if (k.fetch) return to_scalar(target.type, old);
  Py_RETURN_NONE;
}

PyObject *number_one() {
  static PyObject *one = PyLong_FromLong(1);
  return one;
}

#define PYPGAS_AMO(name, op, fetch, value, condition, one)                                                            \
  PyObject *atomic_##name(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {                   \
    static const Kind kind = {"atomic_" #name, Amo::op, fetch, value, condition};                                     \
    return amo(kind, one, args, nargs, kwnames);                                                                      \
  }
PYPGAS_AMO(fetch, fetch, true, false, false, nullptr)
PYPGAS_AMO(set, set, false, true, false, nullptr)
PYPGAS_AMO(swap, swap, true, true, false, nullptr)
PYPGAS_AMO(compare_swap, compare_swap, true, true, true, nullptr)
PYPGAS_AMO(add, add, false, true, false, nullptr)
PYPGAS_AMO(fetch_add, add, true, true, false, nullptr)
PYPGAS_AMO(inc, add, false, true, false, number_one())
PYPGAS_AMO(fetch_inc, add, true, true, false, number_one())
PYPGAS_AMO(and, and_, false, true, false, nullptr)
PYPGAS_AMO(or, or_, false, true, false, nullptr)
PYPGAS_AMO(xor, xor_, false, true, false, nullptr)
PYPGAS_AMO(fetch_and, and_, true, true, false, nullptr)
PYPGAS_AMO(fetch_or, or_, true, true, false, nullptr)
PYPGAS_AMO(fetch_xor, xor_, true, true, false, nullptr)

} // namespace

#define PYPGAS_AMO_ENTRY(name, arguments, what)                                                                       \
  PYPGAS_METHOD("atomic_" #name, atomic_##name,                                                                       \
                "atomic_" #name "(" arguments ", *, index=None, team=None, ctx=None, stream=None)\n--\n\n" what "\n\n"             \
                "`target` is symmetric and has one element, or `index` says which: a flat element number, a tuple, or\n" \
                "an integer array for many at once (then `pe` and the values are one each, or arrays as long).\n"     \
                "On a stream, fetching forms need `out`, an array that receives what was there.\n" \
                "Raises InvalidTypeError where the dtype has no such operation. OpenSHMEM 1.6, section 9.8.")
PyMethodDef atomics_methods[] = {
    PYPGAS_AMO_ENTRY(fetch, "target, pe", "Read an element of PE `pe` atomically."),
    PYPGAS_AMO_ENTRY(set, "target, value, pe", "Write an element of PE `pe` atomically."),
    PYPGAS_AMO_ENTRY(swap, "target, value, pe", "Write an element of PE `pe` and return what was there."),
    PYPGAS_AMO_ENTRY(compare_swap, "target, cond, value, pe", "Write `value` if the element equals `cond`; return what was there."),
    PYPGAS_AMO_ENTRY(add, "target, value, pe", "Add to an element of PE `pe`; integers wrap around."),
    PYPGAS_AMO_ENTRY(fetch_add, "target, value, pe", "Add to an element of PE `pe` and return what was there."),
    PYPGAS_AMO_ENTRY(inc, "target, pe", "Add one to an element of PE `pe`."),
    PYPGAS_AMO_ENTRY(fetch_inc, "target, pe", "Add one to an element of PE `pe` and return what was there."),
    PYPGAS_AMO_ENTRY(and, "target, value, pe", "Bitwise and into an element of PE `pe`."),
    PYPGAS_AMO_ENTRY(or, "target, value, pe", "Bitwise or into an element of PE `pe`."),
    PYPGAS_AMO_ENTRY(xor, "target, value, pe", "Bitwise exclusive or into an element of PE `pe`."),
    PYPGAS_AMO_ENTRY(fetch_and, "target, value, pe", "Bitwise and into an element of PE `pe`; returns what was there."),
    PYPGAS_AMO_ENTRY(fetch_or, "target, value, pe", "Bitwise or into an element of PE `pe`; returns what was there."),
    PYPGAS_AMO_ENTRY(fetch_xor, "target, value, pe", "Bitwise exclusive or into an element of PE `pe`; returns what was there."),
    {nullptr, nullptr, 0, nullptr}};

} // namespace native
