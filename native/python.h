// SPDX-License-Identifier: Apache-2.0
// The one place that includes Python and NumPy, with the stable ABI's settings.
#pragma once

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef NPY_NO_DEPRECATED_API
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#endif
#define PY_ARRAY_UNIQUE_SYMBOL pypgas_native_array_api
#ifndef PYPGAS_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

// A reference that is dropped at the end of the scope.
struct Ref {
  PyObject *p;
  explicit Ref(PyObject *owned = nullptr) : p(owned) {}
  Ref(const Ref &) = delete;
  Ref &operator=(const Ref &) = delete;
  ~Ref() { Py_XDECREF(p); }
  explicit operator bool() const { return p != nullptr; }
  PyObject *release() { PyObject *r = p; p = nullptr; return r; }
};

typedef PyObject *(*FastCall)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
#define PYPGAS_METHOD(name, function, doc)                                                                            \
  { name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(function)), METH_FASTCALL | METH_KEYWORDS, doc }
