// SPDX-License-Identifier: Apache-2.0
// The extension module: every table of functions, and the types.
#define PYPGAS_IMPORT_ARRAY
#include "cpu/python.h"
#include "gate.h"
#include "mapping.h"
#include "operand.h"
#include "rma.h"
#include "runtime.h"
#include "wait.h"

namespace native {
extern PyMethodDef atomics_methods[], signal_methods[], collective_methods[], lock_methods[];
}

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "pypgas._native", "The host side of the device library.", -1,
                                 nullptr, nullptr, nullptr, nullptr, nullptr};

extern "C" PyMODINIT_FUNC PyInit__native() {
  import_array();
  PyObject *module = PyModule_Create(&definition);
  if (!module) return nullptr;
  PyMethodDef *const tables[] = {native::runtime_methods, native::operand_methods, native::wait_methods,
                                 native::rma_methods,     native::atomics_methods, native::signal_methods,
                                 native::gate_methods,    native::collective_methods, native::lock_methods,
                                 native::mapping_methods,  native::cpu_methods};
  for (PyMethodDef *table : tables)
    if (PyModule_AddFunctions(module, table) < 0) return nullptr;
  if (!native::add_types(module) || !native::add_cpu_types(module)) return nullptr;
  return module;
}
