// SPDX-License-Identifier: Apache-2.0
// Collectives on contiguous arrays: operands come checked for shape from pypgas/ops/collectives.py.
#include "entry/reduce.cuh"

#include <algorithm>

#include "gate.h"
#include "operand.h"

namespace native {

using pgas::Exposed;
using pgas::Reduction;
using pgas::Window;

namespace {

constexpr u64 unlock_above = 64 << 10;
const char *const reduction_names[int(Reduction::count)] = {"sum", "prod", "min", "max", "and", "or", "xor"};

bool reduction(const char *name, PyObject *object, DType type, Reduction *out) {
  if (PyUnicode_Check(object))
    for (int i = 0; i < int(Reduction::count); i++)
      if (PyUnicode_CompareWithASCIIString(object, reduction_names[i]) == 0) {
        *out = Reduction(i);
        if (pgas::entry::reduction_supported(type, *out)) return true;
        fail(Err::type, name, "op = %R has no meaning for %s; %s", object, name_of(type),
             type == DType::b8 ? "bool has and, or, xor"
             : type == DType::c64 || type == DType::c128 ? "complex numbers have sum and prod"
                                                         : "floating-point numbers have sum, prod, min, max");
        return false;
      }
  fail(Err::value, name, "op = %R is not one of 'sum', 'prod', 'min', 'max', 'and', 'or', 'xor'", object);
  return false;
}

struct Call {
  Operation operation;
  char *dst;
  i64 me, size, root;
  DType type;
  Reduction op;
  u64 nbytes, item;

  // Copies or reduces what this PE wants of the window.
  void consume(const Window &w, const Exposed *e) const {
    const u64 block = nbytes / u64(size);
    switch (operation) {
    case Operation::broadcast:
      if (me != root) pgas::copy(dst + w.begin, pgas::at(w, e[root], root, w.begin), w.end - w.begin);
      return;
    case Operation::fcollect:
      for (i64 i = 0; i < size; i++)
        pgas::copy(dst + u64(i) * nbytes + w.begin, pgas::at(w, e[i], i, w.begin), w.end - w.begin);
      return;
    case Operation::gather:
      if (me != root) return;
      [[fallthrough]];
    case Operation::collect: {
      u64 base = 0;
      for (i64 i = 0; i < size; base += e[i++].nbytes) {
        const u64 end = std::min(w.end, e[i].nbytes);
        if (w.begin < end) pgas::copy(dst + base + w.begin, pgas::at(w, e[i], i, w.begin), end - w.begin);
      }
      return;
    }
    case Operation::alltoall: {
      const u64 first = u64(me) * block, low = std::max(first, w.begin), high = std::min(first + block, w.end);
      for (i64 i = 0; low < high && i < size; i++)
        pgas::copy(dst + u64(i) * block + (low - first), pgas::at(w, e[i], i, low), high - low);
      return;
    }
    case Operation::reduce: reduce(w, e, size, w.begin, w.end, 0); return;
    case Operation::reduce_scatter: {
      const u64 first = u64(me) * block, low = std::max(first, w.begin), high = std::min(first + block, w.end);
      if (low < high) reduce(w, e, size, low, high, first);
      return;
    }
    case Operation::inclusive_scan: reduce(w, e, me + 1, w.begin, w.end, 0); return;
    default: reduce(w, e, me, w.begin, w.end, 0); return;
    }
  }
  void reduce(const Window &w, const Exposed *e, i64 members, u64 low, u64 high, u64 origin) const {
    pgas::entry::reduce(type, op, dst + (low - origin), members,
                        [&](i64 k) { return pgas::at(w, e[k], k, low); }, (high - low) / item);
  }
};

// collective(name, operation, team, source, destination, root, op, timeout): both contiguous, sizes agreed by the caller
PyObject *collective(PyObject *, PyObject *args) {
  const char *name;
  PyObject *team_object, *source_object, *destination_object, *op_object, *limit;
  int operation;
  long long root;
  if (!PyArg_ParseTuple(args, "siOOOLOO", &name, &operation, &team_object, &source_object, &destination_object, &root, &op_object, &limit))
    return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *team = resolve_team(name, team_object, nullptr);
  double timeout;
  Operand source, destination;
  if (!team || !seconds(name, limit, &timeout) || !any_operand(name, "x", source_object, &source) ||
      !any_operand(name, "out", destination_object, &destination))
    return nullptr;
  Call call = {Operation(operation), destination.data, team->team.me, team->team.size, root, source.type, Reduction::sum,
               source.nbytes(), source.itemsize};
  const bool reduces = operation >= int(Operation::reduce) && operation <= int(Operation::exclusive_scan);
  if (reduces && !reduction(name, op_object, source.type, &call.op)) return nullptr;
  if (!source.contiguous || !destination.contiguous) return PyErr_Format(PyExc_ValueError, "operands must be contiguous");

  const bool differ = call.operation == Operation::collect || call.operation == Operation::gather;
  u64 offset = 0;
  const char *end = source.data + source.nbytes(), *out_end = destination.data + destination.nbytes();
  const bool apart = source.data >= out_end || destination.data >= end;
  // Broadcast only reads the root's source, which is also the root's destination and not written there.
  const bool in_place = symmetric_offset(source, &offset) && (apart || call.operation == Operation::broadcast);
  pgas::Arrival arrival = {u32(operation), u32(source.type), differ ? 0 : source.nbytes(), reduces ? i64(call.op) : i64(root),
                           in_place ? offset : pgas::source_staged, source.nbytes(), false};
  WaitFacts facts = {name};
  facts.team = team;
  facts.gate = true;
  pgas::quiet(); // earlier puts into the sources are part of what is combined
  HostWait wait(facts, timeout);
  std::vector<Exposed> exposed(size_t(team->team.size));
  if (source.nbytes() > unlock_above) wait.unlock();
  const pgas::Gate result =
      pgas::exchange(g.state, team->team, arrival, source.data, differ, exposed.data(), wait,
                     [&](const Window &w, const Exposed *e) { call.consume(w, e); });
  if (result != pgas::Gate::passed) {
    // A mismatch has advanced the epoch past the call; an abandoned call has not.
    const u64 epoch = g.state.sync(g.state.pe, team->team.id)->epoch;
    return gate_failed(result, name, team, epoch, wait);
  }
  wait.resume();
  Py_RETURN_NONE;
}

// operation_code(name) -> the number that collective() takes
PyObject *code(PyObject *, PyObject *text) {
  static const char *const names[] = {"broadcast", "fcollect", "collect", "gather", "alltoall", "reduce", "reduce_scatter",
                                      "inclusive_scan", "exclusive_scan"};
  for (int i = 0; i < 9; i++)
    if (PyUnicode_CompareWithASCIIString(text, names[i]) == 0) return PyLong_FromLong(int(Operation::broadcast) + i);
  return PyErr_Format(PyExc_ValueError, "no collective %R", text);
}

} // namespace

PyMethodDef collective_methods[] = {{"collective", collective, METH_VARARGS, "A collective on contiguous arrays."},
                                    {"operation_code", code, METH_O, "Number of a collective."},
                                    {nullptr, nullptr, 0, nullptr}};

} // namespace native
