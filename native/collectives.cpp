// SPDX-License-Identifier: Apache-2.0
// Collectives on contiguous arrays: operands come checked for shape from pypgas/ops/collectives.py.
#include "entry/reduce.cuh"

#include <algorithm>

#include "cpu/python.h"
#include "gate.h"
#include "operand.h"

namespace native {

namespace raw = pgas::raw;

using pgas::Reduction;
using pgas::raw::Window;

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

// collective(name, operation, team, source, destination, root, op, timeout, stream): both contiguous, sizes agreed by the caller
PyObject *collective(PyObject *, PyObject *args) {
  const char *name;
  PyObject *team_object, *source_object, *destination_object, *op_object, *limit, *stream_object;
  int operation;
  long long root;
  if (!PyArg_ParseTuple(args, "siOOOLOOO", &name, &operation, &team_object, &source_object, &destination_object, &root, &op_object,
                        &limit, &stream_object))
    return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *team = resolve_team(name, team_object, nullptr);
  double timeout;
  Operand source, destination;
  if (!team || !seconds(name, limit, &timeout) || !any_operand(name, "x", source_object, &source) ||
      !any_operand(name, "out", destination_object, &destination))
    return nullptr;
  const raw::Result result = {raw::Collective(operation - int(Operation::broadcast)), destination.data, root, source.nbytes()};
  const bool reduces = operation >= int(Operation::reduce) && operation <= int(Operation::exclusive_scan);
  Reduction op = Reduction::sum;
  if (reduces && !reduction(name, op_object, source.type, &op)) return nullptr;
  if (!source.contiguous || !destination.contiguous) return PyErr_Format(PyExc_ValueError, "operands must be contiguous");

  const bool differ = result.kind == raw::Collective::collect || result.kind == raw::Collective::gather;
  u64 offset = 0;
  const char *end = source.data + source.nbytes(), *out_end = destination.data + destination.nbytes();
  const bool apart = source.data >= out_end || destination.data >= end;
  // Broadcast only reads the root's source, which is also the root's destination and not written there.
  const bool in_place = symmetric_offset(source, &offset) && (apart || result.kind == raw::Collective::broadcast);
  // Nobody reads a broadcast's source but the root's, so the others need not expose theirs.
  const bool unread = result.kind == raw::Collective::broadcast && team->team.me != root;
  const raw::Arrival arrival = {u32(operation), u32(source.type), differ ? 0 : source.nbytes(), reduces ? i64(op) : i64(root),
                           in_place ? offset : unread ? 0 : pgas::source_staged, source.nbytes(), false};
  const auto run = [=, type = source.type, item = source.itemsize, from = source.data](auto &wait) {
    const auto combine = [&](char *dst, i64 members, auto sources, u64 bytes) {
      pgas::entry::reduce(type, op, dst, members, sources, bytes / item);
    };
    if (result.kind == raw::Collective::broadcast && team->team.me == root && result.dst != from)
      raw::copy(result.dst, from, result.nbytes);
    raw::quiet(); // earlier puts into the sources are part of what is combined
    return raw::exchange<pgas::thread>(g.state, team->team, arrival, from, differ,
                                       raw::blocks_of(result.kind, team->team), wait,
                                       [&](const Window &w) {
                                         wait.restart();
                                         raw::consume<pgas::thread>(w, result, combine);
                                       });
  };
  std::shared_ptr<cpu::Stream> stream;
  if (!stream_argument(name, stream_object, &stream)) return nullptr;
  if (stream) {
    const std::string text = name;
    const auto queued = std::make_shared<QueuedCollective>(team);
    enqueue(*stream, [=](cpu::Worker &worker, cpu::Failure *failure) {
      (void)queued;
      StreamWait wait(worker, failure, text.c_str(), &team->team, timeout);
      const raw::Gate outcome = run(wait);
      return stream_gate(outcome, text.c_str(), team->team, g.state.sync(g.state.pe, team->team.id)->epoch, failure);
    }, {reinterpret_cast<PyObject *>(team), source_object, destination_object});
    Py_RETURN_NONE;
  }
  if (!wait_default(name)) return nullptr;
  if ((*team->queued)->load(std::memory_order_acquire) && !wait_queued(name, team, timeout)) return nullptr;
  WaitFacts facts = {name};
  facts.team = team;
  facts.gate = true;
  HostWait wait(facts, timeout);
  if (source.nbytes() > unlock_above) wait.unlock();
  const raw::Gate outcome = run(wait);
  if (outcome != raw::Gate::passed) {
    // A mismatch has advanced the epoch past the call; an abandoned call has not.
    const u64 epoch = g.state.sync(g.state.pe, team->team.id)->epoch;
    return gate_failed(outcome, name, team, epoch, wait);
  }
  wait.resume();
  if (wait.interrupted()) return nullptr;
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
