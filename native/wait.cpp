// SPDX-License-Identifier: Apache-2.0
#include "wait.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "operand.h"
#include "patience.h"

namespace native {

namespace {
constexpr u64 millisecond = 1000000;
constexpr u64 yield_for = millisecond;        // then sleep: somebody else can use the core
constexpr u64 longest_sleep = millisecond;
constexpr u64 poll_every = 20 * millisecond;  // process deaths and signals

bool set(PyObject *dict, const char *key, PyObject *owned) {
  Ref value(owned);
  return value && PyDict_SetItemString(dict, key, value.p) == 0;
}
} // namespace

void HostWait::resume() {
  if (saved_) {
    PyEval_RestoreThread(saved_);
    saved_ = nullptr;
  }
  if (published_) {
    pgas::arch::store_release(&g.state.status(g.state.pe)->operation, u32(0));
    published_ = false;
  }
}

bool HostWait::slow() {
  const u64 now = now_ns();
  if (!start_) {
    start_ = now;
    next_check_ = now + yield_for;
    next_report_ = g.wait_report;
  }
  if (!saved_) saved_ = PyEval_SaveThread();
  if (double(now - start_) * 1e-9 >= timeout_) {
    outcome_ = Outcome::timeout;
    return false;
  }
  if (now < next_check_) {
    sched_yield();
    return true;
  }
  if (!housekeeping(now)) return false;
  timespec rest = {0, long(sleep_ns_)};
  nanosleep(&rest, nullptr);
  if (sleep_ns_ < longest_sleep) sleep_ns_ += sleep_ns_ / 8;
  return true;
}

bool HostWait::housekeeping(u64 now) {
  const bool poll_due = now >= next_poll_;
  if (poll_due) next_poll_ = now + poll_every;
  if (!failed_peers(facts_.team ? &facts_.team->team : nullptr, poll_due, facts_.gate).empty()) {
    outcome_ = Outcome::failed;
    return false;
  }
  if (!poll_due) return true;
  // Python's signal handlers run here, so that Ctrl-C ends the wait.
  PyEval_RestoreThread(saved_);
  saved_ = nullptr;
  bool ok = PyErr_CheckSignals() == 0;
  if (ok && !published_) {
    pgas::Status *status = g.state.status(g.state.pe);
    Ref site(PyObject_CallNoArgs(g.call_site));
    Ref text(site ? PyUnicode_AsUTF8String(site.p) : nullptr);
    ok = bool(text);
    if (ok) {
      snprintf(status->site, sizeof status->site, "%s: %s", facts_.operation, PyBytes_AsString(text.p));
      status->since = start_;
      status->team = facts_.team ? facts_.team->team.id : 0;
      pgas::arch::store_release(&status->operation, u32(1));
      published_ = true;
    }
  }
  const double elapsed = double(now - start_) * 1e-9;
  if (ok && elapsed >= next_report_) {
    next_report_ += g.wait_report;
    Ref ignored;
    ok = call(g.report, "report", &ignored);
  }
  if (!ok) {
    outcome_ = Outcome::python;
    return false;
  }
  saved_ = PyEval_SaveThread();
  return true;
}

bool HostWait::call(PyObject *function, const char *outcome, Ref *result) {
  const pgas::State &s = g.state;
  Ref facts(PyDict_New());
  if (!facts) return false;
  const double elapsed = start_ ? double(now_ns() - start_) * 1e-9 : 0;
  bool ok = set(facts.p, "operation", PyUnicode_FromString(facts_.operation)) &&
            set(facts.p, "elapsed", PyFloat_FromDouble(elapsed)) && set(facts.p, "timeout", PyFloat_FromDouble(timeout_)) &&
            set(facts.p, "holder", PyLong_FromLongLong(facts_.holder));
  if (ok && facts_.team)
    ok = PyDict_SetItemString(facts.p, "team", reinterpret_cast<PyObject *>(const_cast<TeamObject *>(facts_.team))) == 0;
  Ref pes(PyList_New(0));
  ok = ok && pes;
  const std::vector<i64> failed = failed_peers(facts_.team ? &facts_.team->team : nullptr, false, facts_.gate);
  const i64 n = facts_.team ? facts_.team->team.size : s.n_pes;
  const u64 epoch = facts_.gate ? s.sync(s.pe, facts_.team->team.id)->epoch + 1 : 0;
  for (i64 i = 0; ok && i < n; i++) {
    const i64 pe = facts_.team ? facts_.team->team.members[i] : i;
    if (!s.areas[pe]) continue;
    bool listed = false;
    if (outcome_ == Outcome::failed) listed = std::find(failed.begin(), failed.end(), pe) != failed.end();
    else if (facts_.gate && pe != s.pe) // this PE has taken its own arrival back
      listed = pgas::arch::load_acquire(&s.sync(pe, facts_.team->team.id)->slots[epoch & 1].epoch) != epoch;
    if (!listed) continue;
    Ref number(PyLong_FromLongLong(pe));
    ok = number && PyList_Append(pes.p, number.p) == 0;
  }
  ok = ok && PyDict_SetItemString(facts.p, "pes", pes.p) == 0;
  if (ok && facts_.variable) {
    const char *p = static_cast<const char *>(facts_.variable);
    unsigned char seen[16];
    pgas::raw::copy(seen, p, itemsize_of(facts_.type));
    ok = set(facts.p, "offset", PyLong_FromLongLong(p - s.heap())) && set(facts.p, "seen", to_scalar(facts_.type, seen)) &&
         set(facts.p, "expected", to_scalar(facts_.type, facts_.expected));
    if (ok && facts_.compare >= 0) ok = PyDict_SetItemString(facts.p, "compare", g.compare[facts_.compare]) == 0;
  }
  if (!ok) return false;
  Ref name(PyUnicode_FromString(outcome));
  if (!name) return false;
  result->p = PyObject_CallFunctionObjArgs(function, name.p, facts.p, nullptr);
  return result->p != nullptr;
}

PyObject *HostWait::raise() {
  if (saved_) {
    PyEval_RestoreThread(saved_);
    saved_ = nullptr;
  }
  if (outcome_ != Outcome::python) {
    Ref error;
    if (call(g.explain, outcome_ == Outcome::failed ? "failed" : "timeout", &error))
      PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.p)), error.p);
  }
  resume();
  return nullptr;
}

namespace {
// status(pe) -> dict of what a PE of this node is doing
PyObject *status(PyObject *, PyObject *number) {
  PYPGAS_CHECK_ACTIVE("status");
  const i64 pe = PyLong_AsLongLong(number);
  if (pe < 0 || pe >= g.state.n_pes || !g.state.areas[pe])
    return PyErr_Occurred() ? nullptr : fail(Err::pe, "status", "pe = %S is not mapped here", number);
  const pgas::Status *s = g.state.status(pe);
  const u32 operation = pgas::arch::load_acquire(&s->operation);
  const u64 now = now_ns();
  return Py_BuildValue("{s:I,s:I,s:N,s:s,s:s,s:d,s:I,s:K}", "phase", pgas::arch::load_acquire(&s->phase), "pid", s->pid,
                       "waiting", PyBool_FromLong(operation), "site", s->site, "reason", s->reason, "since",
                       operation && now > s->since ? double(now - s->since) * 1e-9 : 0.0, "team", s->team, "mismatch",
                       static_cast<unsigned long long>(pgas::arch::load_acquire(&s->mismatch)));
}
// publish_site(text, tag): where this PE's mismatching call came from
PyObject *publish_site(PyObject *, PyObject *args) {
  const char *text;
  unsigned long long tag;
  if (!PyArg_ParseTuple(args, "sK", &text, &tag)) return nullptr;
  PYPGAS_CHECK_ACTIVE("publish_site");
  pgas::Status *s = g.state.status(g.state.pe);
  snprintf(s->site, sizeof s->site, "%s", text);
  pgas::arch::store_release(&s->mismatch, u64(tag));
  Py_RETURN_NONE;
}
} // namespace

PyMethodDef wait_methods[] = {{"status", status, METH_O, "What a PE of this node is doing."},
                              {"publish_site", publish_site, METH_VARARGS, "Publishes this PE's call site."},
                              {nullptr, nullptr, 0, nullptr}};

} // namespace native
