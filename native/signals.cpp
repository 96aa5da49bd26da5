// SPDX-License-Identifier: Apache-2.0
// Waiting for, and testing, variables of this PE that others update.
#include <array>
#include <vector>

#include "cpu/python.h"

#include "entry/compare.cuh"
#include "enums.h"
#include "wait.h"

namespace native {

using pgas::Compare;

namespace {

bool variable(const char *operation, const char *name, PyObject *object, Operand *out, u64 *offset, bool one) {
  if (!symmetric_operand(operation, name, object, out, offset, false)) return false;
  if (!pgas::entry::can_wait(out->type)) {
    fail(Err::type, operation, "%s has dtype %s; only integers, bool, float32 and float64 can be waited for", name, name_of(out->type));
    return false;
  }
  if (one && out->size != 1) {
    fail(Err::value, operation, "%s must have exactly one element, it has %llu; use %s_all, _any or _some", name,
         static_cast<unsigned long long>(out->size), operation);
    return false;
  }
  return !out->size || aligned_operand(operation, name, *out, *offset);
}

PyObject *do_wait(const char *name, bool signal, bool only_test, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const wait_names[] = {"ivar", "cmp", "value", "timeout", "stream"};
  static const char *const signal_names[] = {"signal", "cmp", "value", "timeout", "stream"};
  const Signature signature = {name, 3, 3, only_test ? 3 : 5, signal ? signal_names : wait_names};
  PyObject *a[5] = {};
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  Operand o;
  u64 offset;
  Compare c;
  double timeout;
  alignas(16) unsigned char value[16], seen[16];
  if (signal) {
    if (!signal_operand(name, a[0], &o, &offset)) return nullptr;
    if (o.handle_pe >= 0 && o.handle_pe != g.state.pe)
      return fail(Err::value, name, "signal is a handle on PE %lld; a PE waits on its own memory", static_cast<long long>(o.handle_pe));
  } else if (!variable(name, "ivar", a[0], &o, &offset, true)) return nullptr;
  if (!compare_op(name, a[1], &c) || !scalar(name, "value", a[2], o.type, value) || !seconds(name, a[3], &timeout)) return nullptr;
  const char *p = g.state.heap() + offset;
  if (a[4]) {
    std::shared_ptr<cpu::Stream> stream;
    if (!stream_argument(name, a[4], &stream)) return nullptr;
    if (stream) {
      std::array<unsigned char, 16> bytes;
      memcpy(bytes.data(), value, sizeof value);
      enqueue(*stream, [=, type = o.type](cpu::Worker &worker, cpu::Failure *failure) {
        StreamWait wait(worker, failure, name, nullptr, timeout);
        return pgas::entry::wait_until(type, p, c, bytes.data(), nullptr, wait);
      }, {a[0]});
      Py_RETURN_NONE;
    }
  }
  if (!wait_default(name)) return nullptr;
  if (only_test) return PyBool_FromLong(pgas::entry::test(o.type, p, c, value, nullptr));
  WaitFacts facts = {name};
  facts.variable = p;
  facts.type = o.type;
  facts.compare = int(c);
  facts.expected = value;
  HostWait wait(facts, timeout);
  if (!pgas::entry::wait_until(o.type, p, c, value, seen, wait)) return wait.raise();
  wait.resume();
  if (signal) {
    u64 v;
    memcpy(&v, seen, sizeof v);
    return PyLong_FromUnsignedLongLong(v);
  }
  Py_RETURN_NONE;
}
PyObject *wait_until(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kw) { return do_wait("wait_until", false, false, a, n, kw); }
PyObject *test(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kw) { return do_wait("test", false, true, a, n, kw); }
PyObject *signal_wait_until(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kw) {
  return do_wait("signal_wait_until", true, false, a, n, kw);
}

PyObject *signal_fetch(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const names[] = {"signal"};
  static const Signature signature = {"signal_fetch", 1, 1, 1, names};
  PyObject *a[1];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE("signal_fetch");
  Operand o;
  u64 offset;
  if (!signal_operand("signal_fetch", a[0], &o, &offset)) return nullptr;
  if (!wait_default("signal_fetch")) return nullptr;
  return PyLong_FromUnsignedLongLong(pgas::arch::load_acquire(reinterpret_cast<const u64 *>(g.state.heap() + offset)));
}

enum class Many { all, any, some };

// The elements a wait looks at.
struct Watched {
  std::vector<const char *> at;
  std::vector<i64> number; // flat element numbers
  std::vector<char> values;
};

bool watch(const char *name, PyObject *const *a, Operand *o, Compare *c, Watched *w) {
  u64 offset;
  if (!variable(name, "ivars", a[0], o, &offset, false) || !compare_op(name, a[1], c)) return false;
  const u64 item = o->itemsize;
  Operand values, mask;
  alignas(16) unsigned char one[16];
  const bool vector = (PyArray_Check(a[2]) && PyArray_NDIM(reinterpret_cast<PyArrayObject *>(a[2])) > 0) ||
                      PyObject_TypeCheck(a[2], g.array_type) || PyList_Check(a[2]) || PyTuple_Check(a[2]);
  Ref descr(reinterpret_cast<PyObject *>(descr_of(o->type))), text(PyUnicode_FromString(name));
  if (!descr || !text) return false;
  if (vector) {
    Ref argument(PyUnicode_FromString("values"));
    values.owned.p = PyObject_CallFunctionObjArgs(g.as_array, a[2], descr.p, text.p, argument.p, nullptr);
    if (!values.owned || !any_operand(name, "values", values.owned.p, &values)) return false;
    if (values.size != o->size) {
      fail(Err::value, name, "values has %llu elements but ivars has %llu", static_cast<unsigned long long>(values.size),
           static_cast<unsigned long long>(o->size));
      return false;
    }
  } else if (!scalar(name, "values", a[2], o->type, one)) return false;
  if (a[3] && a[3] != Py_None) {
    Ref boolean(reinterpret_cast<PyObject *>(PyArray_DescrFromType(NPY_BOOL))), argument(PyUnicode_FromString("where"));
    mask.owned.p = PyObject_CallFunctionObjArgs(g.as_array, a[3], boolean.p, text.p, argument.p, nullptr);
    if (!mask.owned || !any_operand(name, "where", mask.owned.p, &mask)) return false;
    if (mask.size != o->size) {
      fail(Err::value, name, "where has %llu elements but ivars has %llu", static_cast<unsigned long long>(mask.size),
           static_cast<unsigned long long>(o->size));
      return false;
    }
  }
  const char *first = g.state.heap() + offset;
  for (u64 i = 0; i < o->size; i++) {
    if (mask.data && !mask.data[i]) continue;
    i64 rest = i64(i), bytes = 0;
    for (int d = o->ndim - 1; d >= 0; d--) {
      bytes += rest % o->shape[d] * o->strides[d];
      rest /= o->shape[d];
    }
    w->at.push_back(first + bytes);
    w->number.push_back(i64(i));
    const char *value = vector ? values.data + i * item : reinterpret_cast<char *>(one);
    w->values.insert(w->values.end(), value, value + item);
  }
  return true;
}

PyObject *do_many(const char *name, Many mode, bool only_test, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const names[] = {"ivars", "cmp", "values", "where", "timeout"};
  const Signature signature = {name, 3, 3, only_test ? 4 : 5, names};
  PyObject *a[5] = {};
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  Operand o;
  Compare c;
  Watched w;
  double timeout;
  if (!watch(name, a, &o, &c, &w) || !seconds(name, a[4], &timeout) || !wait_default(name)) return nullptr;
  const size_t n = w.at.size();
  const u64 item = o.itemsize;
  const auto holds = [&](size_t i) { return pgas::entry::test(o.type, w.at[i], c, w.values.data() + i * item, nullptr); };
  // Where a search starts moves on from call to call, so that repeated calls find every element that holds.
  static size_t rotation = 0;
  const size_t start = n ? rotation++ % n : 0;
  std::vector<i64> found;
  WaitFacts facts = {name};
  facts.type = o.type;
  facts.compare = int(c);
  HostWait wait(facts, timeout);
  size_t next = 0; // of `all`: the first element not yet seen to hold
  for (;;) {
    if (mode == Many::all) {
      while (next < n && holds(next)) next++;
      if (next == n) break;
    } else {
      for (size_t k = 0; k < n; k++) {
        const size_t i = mode == Many::any ? (start + k) % n : k;
        if (!holds(i)) continue;
        found.push_back(w.number[i]);
        if (mode == Many::any) break;
      }
      if (!found.empty() || !n) break;
    }
    if (only_test) break;
    wait.facts().variable = w.at[mode == Many::all ? next : start];
    wait.facts().expected = w.values.data() + (mode == Many::all ? next : start) * item;
    if (!wait.idle()) return wait.raise();
  }
  wait.resume();
  if (mode == Many::all) {
    if (only_test) return PyBool_FromLong(next == n);
    Py_RETURN_NONE;
  }
  if (mode == Many::any) {
    if (found.empty()) Py_RETURN_NONE;
    return PyLong_FromLongLong(found[0]);
  }
  npy_intp length = npy_intp(found.size());
  PyObject *result = PyArray_SimpleNew(1, &length, NPY_INT64);
  if (result && length) memcpy(PyArray_DATA(reinterpret_cast<PyArrayObject *>(result)), found.data(), found.size() * sizeof(i64));
  return result;
}
#define PYPGAS_MANY(name, mode, only_test)                                                                            \
  PyObject *name(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kw) {                                        \
    return do_many(#name, Many::mode, only_test, a, n, kw);                                                           \
  }
PYPGAS_MANY(wait_until_all, all, false)
PYPGAS_MANY(wait_until_any, any, false)
PYPGAS_MANY(wait_until_some, some, false)
PYPGAS_MANY(test_all, all, true)
PYPGAS_MANY(test_any, any, true)
PYPGAS_MANY(test_some, some, true)

} // namespace

#define PYPGAS_WAIT_TAIL                                                                                              \
  "`values` is one value or one for each element; `where`, booleans, says which elements to look at. Elements are\n"  \
  "numbered in C order. Raises WaitTimeoutError, PeerFailedError."
PyMethodDef signal_methods[] = {
    PYPGAS_METHOD("wait_until", wait_until, "wait_until(ivar, cmp, value, *, timeout=None, stream=None)\n--\n\n"
      "Wait until the one-element symmetric variable of this PE compares true with `value`, in its own type.\n\n"
      "What its writer did before is then visible. `timeout` in seconds, by default the setting `wait_timeout`.\n"
      "Raises WaitTimeoutError, PeerFailedError. OpenSHMEM 1.6, SHMEM_WAIT_UNTIL."),
    PYPGAS_METHOD("test", test, "test(ivar, cmp, value)\n--\n\nWhether the variable compares true now. OpenSHMEM 1.6, SHMEM_TEST."),
    PYPGAS_METHOD("signal_wait_until", signal_wait_until, "signal_wait_until(signal, cmp, value, *, timeout=None, stream=None)\n--\n\n"
      "Wait for a signal of this PE; returns the value that satisfied the comparison. OpenSHMEM 1.6, SHMEM_SIGNAL_WAIT_UNTIL."),
    PYPGAS_METHOD("signal_fetch", signal_fetch, "signal_fetch(signal)\n--\n\nThe value of a signal of this PE. OpenSHMEM 1.6, SHMEM_SIGNAL_FETCH."),
    PYPGAS_METHOD("wait_until_all", wait_until_all, "wait_until_all(ivars, cmp, values, *, where=None, timeout=None)\n--\n\n"
      "Wait until every element has compared true; returns at once if there is none.\n\n" PYPGAS_WAIT_TAIL),
    PYPGAS_METHOD("wait_until_any", wait_until_any, "wait_until_any(ivars, cmp, values, *, where=None, timeout=None)\n--\n\n"
      "Wait until an element compares true and return its number; None at once if there is none to look at.\n\n" PYPGAS_WAIT_TAIL),
    PYPGAS_METHOD("wait_until_some", wait_until_some, "wait_until_some(ivars, cmp, values, *, where=None, timeout=None)\n--\n\n"
      "Wait until an element compares true and return the numbers of all that do, an int64 array.\n\n" PYPGAS_WAIT_TAIL),
    PYPGAS_METHOD("test_all", test_all, "test_all(ivars, cmp, values, *, where=None)\n--\n\n"
      "Whether every element compares true now; true if there is none.\n\n" PYPGAS_WAIT_TAIL),
    PYPGAS_METHOD("test_any", test_any, "test_any(ivars, cmp, values, *, where=None)\n--\n\n"
      "The number of an element that compares true now, or None.\n\n" PYPGAS_WAIT_TAIL),
    PYPGAS_METHOD("test_some", test_some, "test_some(ivars, cmp, values, *, where=None)\n--\n\n"
      "The numbers of all elements that compare true now.\n\n" PYPGAS_WAIT_TAIL),
    {nullptr, nullptr, 0, nullptr}};

} // namespace native
