// SPDX-License-Identifier: Apache-2.0
#include "operand.h"
#include "wait.h"

namespace native {

namespace {

pgas::raw::LockWords *words(const char *operation, PyObject *object, i64 home) {
  Operand o;
  u64 offset;
  if (!symmetric_operand(operation, "lock", object, &o, &offset, false)) return nullptr;
  return reinterpret_cast<pgas::raw::LockWords *>(g.state.heaps[home] + offset);
}

// lock_acquire(words, home, timeout) -> ticket
PyObject *lock_acquire(PyObject *, PyObject *args) {
  PyObject *object, *limit;
  long long home;
  double timeout;
  if (!PyArg_ParseTuple(args, "OLO", &object, &home, &limit)) return nullptr;
  PYPGAS_CHECK_ACTIVE("Lock.acquire");
  pgas::raw::LockWords *lock = words("Lock.acquire", object, home);
  if (!lock || !seconds("Lock.acquire", limit, &timeout)) return nullptr;
  WaitFacts facts = {"Lock.acquire"};
  HostWait wait(facts, timeout);
  u64 ticket;
  switch (pgas::raw::lock_acquire(lock, &ticket, wait)) {
  case pgas::raw::LockResult::acquired:
    wait.resume();
    if (wait.interrupted()) {
      pgas::raw::lock_release(lock, ticket);
      return nullptr;
    }
    return PyLong_FromUnsignedLongLong(ticket);
  case pgas::raw::LockResult::full:
    wait.resume();
    return fail(Err::resource, "Lock.acquire", "%llu tickets are outstanding, those of waits that timed out included",
                static_cast<unsigned long long>(pgas::raw::lock_ring));
  default: return wait.raise();
  }
}
// lock_test(words, home) -> ticket, or None if the lock is held
PyObject *lock_test(PyObject *, PyObject *args) {
  PyObject *object;
  long long home;
  if (!PyArg_ParseTuple(args, "OL", &object, &home)) return nullptr;
  PYPGAS_CHECK_ACTIVE("Lock.test");
  pgas::raw::LockWords *lock = words("Lock.test", object, home);
  if (!lock) return nullptr;
  u64 ticket;
  if (pgas::raw::lock_test(lock, &ticket) == pgas::raw::LockResult::acquired) return PyLong_FromUnsignedLongLong(ticket);
  Py_RETURN_NONE;
}
// lock_release(words, home, ticket)
PyObject *lock_release(PyObject *, PyObject *args) {
  PyObject *object;
  long long home;
  unsigned long long ticket;
  if (!PyArg_ParseTuple(args, "OLK", &object, &home, &ticket)) return nullptr;
  PYPGAS_CHECK_ACTIVE("Lock.release");
  pgas::raw::LockWords *lock = words("Lock.release", object, home);
  if (!lock) return nullptr;
  pgas::raw::quiet(); // what was done under the lock is complete before the next holder enters
  pgas::raw::lock_release(lock, ticket);
  Py_RETURN_NONE;
}
PyObject *lock_bytes(PyObject *, PyObject *) { return PyLong_FromSize_t(sizeof(pgas::raw::LockWords)); }

} // namespace

PyMethodDef lock_methods[] = {{"lock_acquire", lock_acquire, METH_VARARGS, "Draws a ticket and waits."},
                              {"lock_test", lock_test, METH_VARARGS, "Takes the lock if it is free."},
                              {"lock_release", lock_release, METH_VARARGS, "Passes the lock on."},
                              {"lock_bytes", lock_bytes, METH_NOARGS, "Size of a lock."},
                              {nullptr, nullptr, 0, nullptr}};

} // namespace native
