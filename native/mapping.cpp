// SPDX-License-Identifier: Apache-2.0
// Address space: one reservation holds every PE's segment, each mapped from its file descriptor.
#include "mapping.h"

#include <cerrno>
#include <sys/mman.h>

namespace native {

namespace {

// reserve(nbytes) -> address of unusable address space
PyObject *reserve(PyObject *, PyObject *size) {
  const unsigned long long n = PyLong_AsUnsignedLongLong(size);
  if (PyErr_Occurred()) return nullptr;
  void *at = mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return PyErr_SetFromErrno(PyExc_OSError);
  return PyLong_FromVoidPtr(at);
}
// map_at(address, fd, nbytes): maps a descriptor inside a reservation
PyObject *map_at(PyObject *, PyObject *args) {
  unsigned long long address, nbytes;
  int fd;
  if (!PyArg_ParseTuple(args, "KiK", &address, &fd, &nbytes)) return nullptr;
  void *at = mmap(reinterpret_cast<void *>(address), nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (at == MAP_FAILED) return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}
// unmap(address, nbytes)
PyObject *unmap(PyObject *, PyObject *args) {
  unsigned long long address, nbytes;
  if (!PyArg_ParseTuple(args, "KK", &address, &nbytes)) return nullptr;
  if (munmap(reinterpret_cast<void *>(address), nbytes)) return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}
// zero(address, nbytes): whole pages of large blocks are given back to the system, which returns them zeroed
PyObject *zero(PyObject *, PyObject *args) {
  unsigned long long address, nbytes;
  if (!PyArg_ParseTuple(args, "KK", &address, &nbytes)) return nullptr;
  constexpr unsigned long long page = 4096, large = 4 << 20;
  Py_BEGIN_ALLOW_THREADS
  char *p = reinterpret_cast<char *>(address);
  if (nbytes >= large) {
    const unsigned long long first = (address + page - 1) / page * page, last = (address + nbytes) / page * page;
    if (madvise(reinterpret_cast<void *>(first), last - first, MADV_REMOVE) == 0) {
      memset(p, 0, first - address);
      memset(reinterpret_cast<char *>(last), 0, address + nbytes - last);
      nbytes = 0;
    }
  }
  memset(p, 0, nbytes);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

} // namespace

PyMethodDef mapping_methods[] = {{"reserve", reserve, METH_O, "Reserves address space."},
                                 {"map_at", map_at, METH_VARARGS, "Maps a descriptor."},
                                 {"unmap", unmap, METH_VARARGS, "Unmaps an address range."},
                                 {"zero", zero, METH_VARARGS, "Clears heap memory."},
                                 {nullptr, nullptr, 0, nullptr}};

} // namespace native
