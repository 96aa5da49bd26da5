// SPDX-License-Identifier: Apache-2.0
#include "gate.h"

#include <algorithm>

#include "cpu/python.h"
#include "operand.h"

namespace native {

namespace {

const char *const operation_names[int(Operation::count)] = {
    // In the order of pgas::Operation.
    "barrier", "sync",   "allocate", "free",   "finalize",       "split",          "broadcast",     "fcollect",
    "collect", "gather", "alltoall", "reduce", "reduce_scatter", "inclusive_scan", "exclusive_scan"};

bool operation_code(PyObject *name, u32 *code) {
  for (int i = 0; i < int(Operation::count); i++)
    if (PyUnicode_CompareWithASCIIString(name, operation_names[i]) == 0) {
      *code = u32(i);
      return true;
    }
  PyErr_Format(PyExc_ValueError, "no collective operation %R", name);
  return false;
}

// Writes the ids this PE has dropped where the others can read them. Double-buffered by the epoch's parity, like slots.
u64 publish_garbage(u64 epoch) {
  std::sort(g.garbage.begin(), g.garbage.end());
  const u64 n = std::min<u64>(g.garbage.size(), pgas::garbage_capacity);
  // The oldest first, but not always the same ones: an id that another PE keeps for ever must not block the rest.
  const u64 total = g.garbage.size(), first = total > n ? epoch * (n / 2) % total : 0;
  u64 *list = g.state.garbage(g.state.pe, epoch);
  for (u64 i = 0; i < n; i++) list[i] = g.garbage[(first + i) % total];
  std::sort(list, list + n);
  return n;
}

// Everybody has dropped something: release what all have dropped.
bool release_garbage(u64 epoch) {
  const pgas::State &s = g.state;
  std::vector<u64> common, next;
  for (i64 pe = 0; pe < s.n_pes; pe++) {
    const u64 *list = s.garbage(pe, epoch);
    const u64 n = std::min<u64>(s.sync(pe, g.world->team.id)->slots[epoch & 1].extra, pgas::garbage_capacity);
    if (pe == 0) {
      common.assign(list, list + n);
      continue;
    }
    next.clear();
    std::set_intersection(common.begin(), common.end(), list, list + n, std::back_inserter(next));
    common.swap(next);
  }
  if (common.empty()) return true;
  std::vector<u64> rest;
  std::sort(g.garbage.begin(), g.garbage.end());
  std::set_difference(g.garbage.begin(), g.garbage.end(), common.begin(), common.end(), std::back_inserter(rest));
  g.garbage.swap(rest);
  Ref ids(PyList_New(Py_ssize_t(common.size())));
  if (!ids) return false;
  for (size_t i = 0; i < common.size(); i++) PyList_SetItem(ids.p, Py_ssize_t(i), PyLong_FromUnsignedLongLong(common[i]));
  Ref done(PyObject_CallFunctionObjArgs(g.released, ids.p, nullptr));
  return bool(done);
}

} // namespace

PyObject *gate_failed(pgas::raw::Gate result, const char *operation, TeamObject *team, u64 epoch, HostWait &wait) {
  if (result == pgas::raw::Gate::abandoned) return wait.raise();
  wait.resume();
  const pgas::State &s = g.state;
  Ref calls(PyList_New(0));
  if (!calls) return nullptr;
  for (i64 i = 0; i < team->team.size; i++) {
    const pgas::Slot &slot = s.sync(team->team.members[i], team->team.id)->slots[epoch & 1];
    const u32 code = slot.operation < u32(Operation::count) ? slot.operation : 0;
    Ref call(Py_BuildValue("(LsKiL)", static_cast<long long>(team->team.members[i]), operation_names[code],
                           static_cast<unsigned long long>(slot.nbytes), int(slot.dtype), static_cast<long long>(slot.detail)));
    if (!call || PyList_Append(calls.p, call.p) < 0) return nullptr;
  }
  Ref facts(Py_BuildValue("{s:s,s:O,s:O,s:K}", "operation", operation, "team", reinterpret_cast<PyObject *>(team), "calls",
                          calls.p, "epoch", static_cast<unsigned long long>(epoch)));
  Ref name(PyUnicode_FromString("mismatch"));
  if (!facts || !name) return nullptr;
  Ref error(PyObject_CallFunctionObjArgs(g.explain, name.p, facts.p, nullptr));
  if (error) PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.p)), error.p);
  return nullptr;
}

bool wait_queued(const char *operation, const TeamObject *team, double timeout) {
  WaitFacts facts = {operation};
  facts.team = team;
  HostWait wait(facts, timeout);
  while ((*team->queued)->load(std::memory_order_acquire))
    if (!wait.idle()) {
      wait.raise();
      return false;
    }
  return true;
}

bool stream_gate(pgas::raw::Gate result, const char *name, const pgas::Team &team, u64 epoch, cpu::Failure *failure) {
  if (result == pgas::raw::Gate::passed) return true;
  if (result == pgas::raw::Gate::abandoned) return false; // the wait has said why
  failure->kind = "mismatch";
  failure->text = std::string(name) + ": the PEs made different collective calls:";
  for (i64 i = 0; i < team.size; i++) {
    const pgas::Slot &slot = g.state.sync(team.members[i], team.id)->slots[epoch & 1];
    const u32 code = slot.operation < u32(Operation::count) ? slot.operation : 0;
    failure->text += " PE " + std::to_string(team.members[i]) + " " + operation_names[code] + " (" + std::to_string(slot.nbytes) + " bytes)";
  }
  return false;
}

bool enter_gate(const char *name, TeamObject *team, pgas::raw::Arrival arrival, double timeout, u64 *epoch) {
  if (__builtin_expect((*team->queued)->load(std::memory_order_acquire) != 0, 0) && !wait_queued(name, team, timeout)) return false;
  WaitFacts facts = {name};
  facts.team = team;
  facts.gate = true;
  HostWait wait(facts, timeout);
  if (__builtin_expect(!g.garbage.empty(), 0) && team == g.world) {
    arrival.extra = publish_garbage(g.state.sync(g.state.pe, team->team.id)->epoch + 1);
    arrival.garbage = true;
  }
  const pgas::raw::Passage p = pgas::raw::enter(g.state, team->team, arrival, wait);
  if (epoch) *epoch = p.epoch;
  if (__builtin_expect(p.result != pgas::raw::Gate::passed, 0)) {
    gate_failed(p.result, name, team, p.epoch, wait);
    return false;
  }
  wait.resume();
  if (__builtin_expect(p.all_garbage && team == g.world, 0) && !release_garbage(p.epoch)) return false;
  return !wait.interrupted();
}

namespace {

PyObject *do_barrier(const char *name, Operation op, bool takes_team, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const team_names[] = {"team", "timeout", "stream"};
  const Signature signature = {name, 0, takes_team ? 1 : 0, takes_team ? 3 : 2, takes_team ? team_names : team_names + 1};
  PyObject *a[3] = {};
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *team = takes_team ? resolve_team(name, a[0], nullptr) : g.world;
  double timeout;
  if (!team || !seconds(name, a[takes_team ? 1 : 0], &timeout)) return nullptr;
  PyObject *stream_object = a[takes_team ? 2 : 1];
  if (stream_object) {
    std::shared_ptr<cpu::Stream> stream;
    if (!stream_argument(name, stream_object, &stream)) return nullptr;
    if (stream) {
      const auto queued = std::make_shared<QueuedCollective>(team);
      enqueue(*stream, [=](cpu::Worker &worker, cpu::Failure *failure) {
        (void)queued;
        StreamWait wait(worker, failure, name, &team->team, timeout);
        pgas::raw::quiet();
        const pgas::raw::Passage p = pgas::raw::enter(g.state, team->team, {u32(op), 0, 0, 0, 0, 0, false}, wait);
        return stream_gate(p.result, name, team->team, p.epoch, failure);
      }, {reinterpret_cast<PyObject *>(team)});
      Py_RETURN_NONE;
    }
  }
  if (!wait_default(name)) return nullptr;
  if (op == Operation::barrier) pgas::raw::quiet();
  if (!enter_gate(name, team, {u32(op), 0, 0, 0, 0, 0, false}, timeout)) return nullptr;
  Py_RETURN_NONE;
}
PyObject *barrier(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kw) { return do_barrier("barrier", Operation::barrier, true, a, n, kw); }
PyObject *barrier_all(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kw) { return do_barrier("barrier_all", Operation::barrier, false, a, n, kw); }
PyObject *sync(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kw) { return do_barrier("sync", Operation::sync, true, a, n, kw); }
PyObject *sync_all(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kw) { return do_barrier("sync_all", Operation::sync, false, a, n, kw); }

// agree(name, operation, team, nbytes, detail, timeout) -> None: everybody calls the same with the same numbers
PyObject *agree(PyObject *, PyObject *args) {
  PyObject *operation, *team, *limit;
  const char *name;
  unsigned long long nbytes;
  long long detail;
  if (!PyArg_ParseTuple(args, "sOOKLO", &name, &operation, &team, &nbytes, &detail, &limit)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *t = resolve_team(name, team, nullptr);
  u32 code;
  double timeout;
  if (!t || !operation_code(operation, &code) || !seconds(name, limit, &timeout)) return nullptr;
  if (!enter_gate(name, t, {code, 0, nbytes, detail, 0, 0, false}, timeout)) return nullptr;
  Py_RETURN_NONE;
}

// exchange_small(name, operation, team, detail, payload, timeout) -> list of every member's payload (<= 256 bytes)
PyObject *exchange_small(PyObject *, PyObject *args) {
  PyObject *operation, *team, *limit;
  const char *name, *payload;
  Py_ssize_t length;
  long long detail;
  if (!PyArg_ParseTuple(args, "sOOLy#O", &name, &operation, &team, &detail, &payload, &length, &limit)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *t = resolve_team(name, team, nullptr);
  u32 code;
  double timeout;
  if (!t || !operation_code(operation, &code) || !seconds(name, limit, &timeout)) return nullptr;
  if (u64(length) > pgas::inline_bytes) return PyErr_Format(PyExc_ValueError, "payload too long");
  memcpy(pgas::raw::next_slot(g.state, t->team)->payload, payload, size_t(length));
  u64 epoch;
  if (!enter_gate(name, t, {code, 0, u64(length), detail, 0, 0, false}, timeout, &epoch)) return nullptr;
  PyObject *all = PyList_New(t->team.size);
  for (i64 i = 0; all && i < t->team.size; i++) {
    const pgas::Slot &slot = g.state.sync(t->team.members[i], t->team.id)->slots[epoch & 1];
    PyList_SetItem(all, i, PyBytes_FromStringAndSize(reinterpret_cast<const char *>(slot.payload), length));
  }
  return all;
}

// garbage_count() -> number of arrays this PE has dropped and not all PEs have agreed upon
PyObject *garbage_count(PyObject *, PyObject *) { return PyLong_FromSize_t(g.garbage.size()); }

} // namespace

PyMethodDef gate_methods[] = {
    PYPGAS_METHOD("barrier", barrier, "barrier(team=None, *, timeout=None, stream=None)\n--\n\n"
      "Complete this PE's puts and atomics on the default context, then wait for every PE of the team.\n\n"
      "Raises CollectiveMismatchError on every PE if one calls another collective, WaitTimeoutError naming who is\n"
      "missing, PeerFailedError. OpenSHMEM 1.6, SHMEM_BARRIER."),
    PYPGAS_METHOD("barrier_all", barrier_all, "barrier_all(*, timeout=None, stream=None)\n--\n\n`barrier` on all PEs of the job. OpenSHMEM 1.6, SHMEM_BARRIER_ALL."),
    PYPGAS_METHOD("sync", sync, "sync(team=None, *, timeout=None, stream=None)\n--\n\n"
      "Wait for every PE of the team; completes local stores only. OpenSHMEM 1.6, SHMEM_SYNC."),
    PYPGAS_METHOD("sync_all", sync_all, "sync_all(*, timeout=None, stream=None)\n--\n\n`sync` on all PEs of the job. OpenSHMEM 1.6, SHMEM_SYNC_ALL."),
    {"agree", agree, METH_VARARGS, "Enters a gate with numbers that must be equal."},
    {"exchange_small", exchange_small, METH_VARARGS, "All members' small payloads."},
    {"garbage_count", garbage_count, METH_NOARGS, "Dropped arrays not yet released."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace native
