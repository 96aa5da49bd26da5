// SPDX-License-Identifier: Apache-2.0
#include "runtime.h"

#include <cstdarg>
#include <cstdio>
#include <sys/mman.h>

#include "operand.h"

namespace native {

Global g;

PyObject *fail(Err error, const char *operation, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Ref text(PyUnicode_FromFormatV(format, arguments));
  va_end(arguments);
  if (!text) return nullptr;
  PyObject *type = g.errors[int(error)] ? g.errors[int(error)] : PyExc_RuntimeError;
  if (g.mode == Mode::never) PyErr_Format(type, "%s: %U", operation, text.p);
  else PyErr_Format(type, "PE %lld: %s: %U", static_cast<long long>(g.state.pe), operation, text.p);
  return nullptr;
}

bool check_active(const char *operation) {
  switch (g.mode) {
  case Mode::active: return true;
  case Mode::forked:
    fail(Err::forked, operation, "this process is a fork of a PE; a PE is one process, so the child cannot use its "
         "memory or teams. Start helpers with subprocess or multiprocessing's 'spawn' method");
    return false;
  case Mode::finalized: fail(Err::not_initialized, operation, "pypgas was finalized; call pypgas.init() again"); return false;
  default: fail(Err::not_initialized, operation, "pypgas is not initialised; call pypgas.init() first"); return false;
  }
}

bool parse_slow(const Signature &s, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out) {
  for (int i = 0; i < s.total; i++) out[i] = nullptr;
  if (nargs > s.positional) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments (%zd given)", s.name, s.positional, nargs);
    return false;
  }
  for (Py_ssize_t i = 0; i < nargs; i++) out[i] = args[i];
  const Py_ssize_t keywords = kwnames ? PyTuple_Size(kwnames) : 0;
  for (Py_ssize_t k = 0; k < keywords; k++) {
    PyObject *key = PyTuple_GetItem(kwnames, k);
    int i = 0;
    while (i < s.total && PyUnicode_CompareWithASCIIString(key, s.names[i]) != 0) i++;
    if (i == s.total) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", s.name, key);
      return false;
    }
    if (out[i]) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", s.name, s.names[i]);
      return false;
    }
    out[i] = args[nargs + k];
  }
  for (int i = 0; i < s.required; i++) {
    if (out[i]) continue;
    PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'", s.name, s.names[i]);
    return false;
  }
  return true;
}

bool check_team(const char *operation, const TeamObject *team) {
  if (team->generation != g.generation) {
    fail(Err::stale, operation, "team belongs to an earlier runtime; make it anew after init()");
    return false;
  }
  if (!team->alive) {
    fail(Err::stale, operation, "team was destroyed");
    return false;
  }
  return true;
}

TeamObject *resolve_team(const char *operation, PyObject *team, PyObject *context) {
  if (context && context != Py_None) {
    if (!PyObject_TypeCheck(context, g.context_type)) {
      fail(Err::type, operation, "ctx must be a pypgas.Context, not %R", reinterpret_cast<PyObject *>(Py_TYPE(context)));
      return nullptr;
    }
    if (team && team != Py_None) {
      fail(Err::value, operation, "give team= or ctx=, not both: a context's PE numbers count in its own team");
      return nullptr;
    }
    const ContextBase *c = reinterpret_cast<ContextBase *>(context);
    if (c->generation != g.generation || !c->alive) {
      fail(Err::stale, operation, "ctx was destroyed or belongs to an earlier runtime");
      return nullptr;
    }
    return check_team(operation, c->team) ? c->team : nullptr;
  }
  if (!team || team == Py_None) return g.world;
  if (!PyObject_TypeCheck(team, g.team_type)) {
    fail(Err::type, operation, "team must be a pypgas.Team of which this PE is a member, not %R",
         reinterpret_cast<PyObject *>(Py_TYPE(team)));
    return nullptr;
  }
  TeamObject *t = reinterpret_cast<TeamObject *>(team);
  return check_team(operation, t) ? t : nullptr;
}

bool integer(const char *operation, const char *name, PyObject *object, i64 *out) {
  if (PyFloat_Check(object) || !PyIndex_Check(object)) {
    fail(Err::type, operation, "%s must be an integer, not %R", name, reinterpret_cast<PyObject *>(Py_TYPE(object)));
    return false;
  }
  Ref index(PyNumber_Index(object));
  if (!index) return false;
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(index.p, &overflow);
  if (overflow) {
    fail(Err::value, operation, "%s = %R does not fit in 64 bits", name, index.p);
    return false;
  }
  return !(*out == -1 && PyErr_Occurred());
}

i64 resolve_pe(const char *operation, PyObject *pe, const TeamObject *team) {
  i64 number;
  if (PyLong_CheckExact(pe)) {
    int overflow = 0;
    number = PyLong_AsLongLongAndOverflow(pe, &overflow);
    if (overflow) number = -1;
  } else {
    if (!PyIndex_Check(pe) || PyBool_Check(pe)) {
      fail(Err::type, operation, "pe must be an integer, not %R", reinterpret_cast<PyObject *>(Py_TYPE(pe)));
      return -1;
    }
    if (!integer(operation, "pe", pe, &number)) return -1;
  }
  if (number < 0 || number >= team->team.size) {
    fail(Err::pe, operation, "pe = %S is not in 0..%lld, the PEs of %s", pe, static_cast<long long>(team->team.size - 1),
         team == g.world ? "the job" : "the team");
    return -1;
  }
  const i64 world = team->team.members[number];
  if (!g.state.heaps[world]) {
    fail(Err::unreachable, operation, "PE %lld's memory is not mapped here", static_cast<long long>(world));
    return -1;
  }
  return world;
}

bool seconds(const char *operation, PyObject *object, double *out) {
  if (!object || object == Py_None) {
    *out = g.wait_timeout;
    return true;
  }
  *out = PyFloat_AsDouble(object);
  if (*out == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    fail(Err::type, operation, "timeout must be a number of seconds or None, not %R", object);
    return false;
  }
  if (!(*out >= 0)) {
    fail(Err::value, operation, "timeout = %R must not be negative", object);
    return false;
  }
  return true;
}

namespace {

template <class T> T *allocate(PyTypeObject *type) {
  allocfunc alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  return reinterpret_cast<T *>(alloc(type, 0));
}
void release_object(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  freefunc free = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  free(self);
  Py_DECREF(type);
}

void release_mapping(Mapping *mapping) {
  if (!mapping || --mapping->references) return;
  munmap(reinterpret_cast<void *>(mapping->address), mapping->bytes);
  delete mapping;
}

// ---- Allocation

void allocation_dealloc(PyObject *self) {
  Allocation *a = reinterpret_cast<Allocation *>(self);
  // Nothing is freed here: the block is returned when every PE has dropped it (DESIGN D6).
  if (a->live && a->generation == g.generation && g.mode == Mode::active) {
    forget_allocation(a);
    g.garbage.push_back(a->id);
  }
  release_mapping(a->mapping);
  release_object(self);
}
PyObject *allocation_get(PyObject *self, void *which) {
  const Allocation *a = reinterpret_cast<Allocation *>(self);
  switch (reinterpret_cast<intptr_t>(which)) {
  case 0: return PyLong_FromUnsignedLongLong(a->offset);
  case 1: return PyLong_FromUnsignedLongLong(a->nbytes);
  case 2: return PyLong_FromUnsignedLongLong(a->id);
  default: return PyBool_FromLong(a->live && a->generation == g.generation && g.mode == Mode::active);
  }
}
PyGetSetDef allocation_getset[] = {
    {"offset", allocation_get, nullptr, "heap offset in bytes", reinterpret_cast<void *>(0)},
    {"nbytes", allocation_get, nullptr, "size in bytes", reinterpret_cast<void *>(1)},
    {"id", allocation_get, nullptr, "ordinal of the collective allocation", reinterpret_cast<void *>(2)},
    {"live", allocation_get, nullptr, "whether the memory may be used", reinterpret_cast<void *>(3)},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot allocation_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(allocation_dealloc)},
                                  {Py_tp_getset, allocation_getset},
                                  {0, nullptr}};
PyType_Spec allocation_spec = {"pypgas._native.Allocation", sizeof(Allocation), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, allocation_slots};

// allocation(offset, nbytes, id) -> Allocation
PyObject *new_allocation(PyObject *, PyObject *args) {
  unsigned long long offset, nbytes, id;
  if (!PyArg_ParseTuple(args, "KKK", &offset, &nbytes, &id)) return nullptr;
  PYPGAS_CHECK_ACTIVE("allocation");
  Allocation *a = allocate<Allocation>(g.allocation_type);
  if (!a) return nullptr;
  a->offset = offset;
  a->nbytes = nbytes;
  a->id = id;
  a->generation = g.generation;
  a->live = true;
  a->mapping = g.mapping;
  a->mapping->references++;
  register_allocation(a);
  return reinterpret_cast<PyObject *>(a);
}

// end_allocation(allocation): its memory is freed; views of it raise from now on.
PyObject *end_allocation(PyObject *, PyObject *object) {
  if (!PyObject_TypeCheck(object, g.allocation_type)) return PyErr_Format(PyExc_TypeError, "not an Allocation");
  Allocation *a = reinterpret_cast<Allocation *>(object);
  if (a->live && a->generation == g.generation) forget_allocation(a);
  a->live = false;
  Py_RETURN_NONE;
}

// local_array(allocation, dtype, shape) -> C-contiguous ndarray over the allocation, which it keeps alive
PyObject *local_array(PyObject *, PyObject *args) {
  PyObject *object, *dtype, *shape;
  if (!PyArg_ParseTuple(args, "OOO!", &object, &dtype, &PyTuple_Type, &shape)) return nullptr;
  if (!PyObject_TypeCheck(object, g.allocation_type)) return PyErr_Format(PyExc_TypeError, "not an Allocation");
  Allocation *a = reinterpret_cast<Allocation *>(object);
  npy_intp dims[pgas::raw::max_dims];
  const Py_ssize_t ndim = PyTuple_Size(shape);
  if (ndim > pgas::raw::max_dims) return PyErr_Format(PyExc_ValueError, "too many dimensions");
  for (Py_ssize_t i = 0; i < ndim; i++) dims[i] = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
  if (PyErr_Occurred()) return nullptr;
  PyArray_Descr *descr = nullptr;
  if (!PyArray_DescrConverter(dtype, &descr)) return nullptr;
  Ref array(PyArray_NewFromDescr(&PyArray_Type, descr, int(ndim), dims, nullptr, g.state.heap() + a->offset,
                                 NPY_ARRAY_CARRAY, nullptr));
  if (!array) return nullptr;
  Py_INCREF(object);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(array.p), object) < 0) return nullptr;
  return array.release();
}

// peer_array(local view, pe) -> the same view of a mapped PE's heap, or None
PyObject *peer_array(PyObject *, PyObject *args) {
  PyObject *object, *pe;
  if (!PyArg_ParseTuple(args, "OO", &object, &pe)) return nullptr;
  PYPGAS_CHECK_ACTIVE("peer");
  i64 number;
  if (!integer("peer", "pe", pe, &number)) return nullptr;
  if (number < 0 || number >= g.state.n_pes)
    return fail(Err::pe, "peer", "pe = %S is not in 0..%lld, the PEs of the job", pe,
                static_cast<long long>(g.state.n_pes - 1));
  Operand o;
  u64 offset;
  if (!symmetric_operand("peer", "array", object, &o, &offset, false)) return nullptr;
  if (!g.state.heaps[number]) Py_RETURN_NONE;
  PyArrayObject *local = reinterpret_cast<PyArrayObject *>(o.array);
  PyArray_Descr *descr = PyArray_DESCR(local);
  Py_INCREF(reinterpret_cast<PyObject *>(descr));
  Ref array(PyArray_NewFromDescr(&PyArray_Type, descr, o.ndim, o.shape, o.strides, g.state.heaps[number] + offset,
                                 PyArray_FLAGS(local) & ~NPY_ARRAY_OWNDATA, nullptr));
  if (!array) return nullptr;
  // Keeping the local array alive keeps the block from being returned under the peer's view.
  Py_INCREF(o.array);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(array.p), o.array) < 0) return nullptr;
  return array.release();
}

// ---- ArrayBase

PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *local, *allocation;
  if (!PyArg_ParseTuple(args, "OO", &local, &allocation)) return nullptr;
  if (!PyArray_Check(local) || !PyObject_TypeCheck(allocation, g.allocation_type))
    return PyErr_Format(PyExc_TypeError, "%s is made by pypgas.zeros() and its like, not by calling the class",
                        "SymmetricArray");
  ArrayBase *self = allocate<ArrayBase>(type);
  if (!self) return nullptr;
  Py_INCREF(local);
  Py_INCREF(allocation);
  self->local = local;
  self->allocation = reinterpret_cast<Allocation *>(allocation);
  return reinterpret_cast<PyObject *>(self);
}
void array_dealloc(PyObject *object) {
  ArrayBase *self = reinterpret_cast<ArrayBase *>(object);
  Py_XDECREF(self->local);
  Py_XDECREF(reinterpret_cast<PyObject *>(self->allocation));
  release_object(object);
}
bool check_alive(const char *operation, const Allocation *a) {
  if (__builtin_expect(g.mode != Mode::active, 0) && !check_active(operation)) return false;
  if (a->generation != g.generation) {
    fail(Err::stale, operation, "the array belongs to an earlier runtime; allocate it anew after init()");
    return false;
  }
  if (!a->live) {
    fail(Err::stale, operation, "the array was freed");
    return false;
  }
  return true;
}
PyObject *array_get_local(PyObject *object, void *) {
  ArrayBase *self = reinterpret_cast<ArrayBase *>(object);
  if (!check_alive("local", self->allocation)) return nullptr;
  Py_INCREF(self->local);
  return self->local;
}
PyObject *array_get_allocation(PyObject *object, void *) {
  PyObject *a = reinterpret_cast<PyObject *>(reinterpret_cast<ArrayBase *>(object)->allocation);
  Py_INCREF(a);
  return a;
}
// The view's layout, which stays readable after the array was freed.
PyObject *array_get_view(PyObject *object, void *) {
  ArrayBase *self = reinterpret_cast<ArrayBase *>(object);
  Py_INCREF(self->local);
  return self->local;
}
PyGetSetDef array_getset[] = {
    {"local", array_get_local, nullptr, "This PE's piece: a numpy.ndarray over the symmetric memory itself.", nullptr},
    {"_allocation", array_get_allocation, nullptr, "the block this array lies in", nullptr},
    {"_view", array_get_view, nullptr, "the local array, without the check that it is alive", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot array_slots[] = {{Py_tp_new, reinterpret_cast<void *>(array_new)},
                             {Py_tp_dealloc, reinterpret_cast<void *>(array_dealloc)},
                             {Py_tp_getset, array_getset},
                             {0, nullptr}};
PyType_Spec array_spec = {"pypgas._native.ArrayBase", sizeof(ArrayBase), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          array_slots};

// ---- HandleBase

PyObject *handle_new(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *array;
  long long pe;
  if (!PyArg_ParseTuple(args, "OL", &array, &pe)) return nullptr;
  if (!PyObject_TypeCheck(array, g.array_type)) return PyErr_Format(PyExc_TypeError, "array must be a SymmetricArray");
  HandleBase *self = allocate<HandleBase>(type);
  if (!self) return nullptr;
  Py_INCREF(array);
  self->array = array;
  self->pe = pe;
  return reinterpret_cast<PyObject *>(self);
}
void handle_dealloc(PyObject *object) {
  Py_XDECREF(reinterpret_cast<HandleBase *>(object)->array);
  release_object(object);
}
PyObject *handle_get(PyObject *object, void *which) {
  HandleBase *self = reinterpret_cast<HandleBase *>(object);
  if (which) return PyLong_FromLongLong(self->pe);
  Py_INCREF(self->array);
  return self->array;
}
PyGetSetDef handle_getset[] = {
    {"array", handle_get, nullptr, "The symmetric array this handle looks at.", nullptr},
    {"pe", handle_get, nullptr, "World number of the PE whose piece is meant.", reinterpret_cast<void *>(1)},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot handle_slots[] = {{Py_tp_new, reinterpret_cast<void *>(handle_new)},
                              {Py_tp_dealloc, reinterpret_cast<void *>(handle_dealloc)},
                              {Py_tp_getset, handle_getset},
                              {0, nullptr}};
PyType_Spec handle_spec = {"pypgas._native.HandleBase", sizeof(HandleBase), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, handle_slots};

// ---- TeamBase

PyObject *team_new(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *members;
  unsigned int id;
  if (!PyArg_ParseTuple(args, "IO!", &id, &PyTuple_Type, &members)) return nullptr;
  PYPGAS_CHECK_ACTIVE("Team");
  TeamObject *self = allocate<TeamObject>(type);
  if (!self) return nullptr;
  self->members = new std::vector<i64>;
  self->queued = new std::shared_ptr<std::atomic<int>>(std::make_shared<std::atomic<int>>(0));
  self->alive = true;
  self->generation = g.generation;
  const Py_ssize_t n = PyTuple_Size(members);
  i64 me = -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    const i64 pe = PyLong_AsLongLong(PyTuple_GetItem(members, i));
    self->members->push_back(pe);
    if (pe == g.state.pe) me = i;
  }
  self->team = {id, i64(n), me, self->members->data()};
  if (PyErr_Occurred() || me < 0 || id >= g.state.max_teams) {
    Py_DECREF(reinterpret_cast<PyObject *>(self));
    return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_ValueError, "this PE must be a member, and the id below the limit");
  }
  pgas::raw::reset_sync(g.state, id);
  g.teams[id] = &self->team;
  return reinterpret_cast<PyObject *>(self);
}
// Kernels that know teams by number find this one no more. Its number may be another team's by now.
void withdraw(const TeamObject *team) {
  if (team->generation == g.generation && team->team.id < g.teams.size() && g.teams[team->team.id] == &team->team)
    g.teams[team->team.id] = nullptr;
}
void team_dealloc(PyObject *object) {
  withdraw(reinterpret_cast<TeamObject *>(object));
  delete reinterpret_cast<TeamObject *>(object)->members;
  delete reinterpret_cast<TeamObject *>(object)->queued;
  release_object(object);
}
PyObject *team_get(PyObject *object, void *which) {
  const TeamObject *self = reinterpret_cast<TeamObject *>(object);
  switch (reinterpret_cast<intptr_t>(which)) {
  case 0: return check_team("my_pe", self) ? PyLong_FromLongLong(self->team.me) : nullptr;
  case 1: return check_team("n_pes", self) ? PyLong_FromLongLong(self->team.size) : nullptr;
  case 2: return PyLong_FromUnsignedLong(self->team.id);
  case 3: return PyBool_FromLong(self->alive && self->generation == g.generation && g.mode == Mode::active);
  default: {
    PyObject *members = PyTuple_New(self->team.size);
    for (i64 i = 0; members && i < self->team.size; i++)
      PyTuple_SetItem(members, i, PyLong_FromLongLong(self->team.members[i]));
    return members;
  }
  }
}
PyObject *team_end(PyObject *object, PyObject *) {
  reinterpret_cast<TeamObject *>(object)->alive = false;
  withdraw(reinterpret_cast<TeamObject *>(object));
  Py_RETURN_NONE;
}
PyGetSetDef team_getset[] = {
    {"my_pe", team_get, nullptr, "This PE's number in the team.", reinterpret_cast<void *>(0)},
    {"n_pes", team_get, nullptr, "Number of PEs in the team.", reinterpret_cast<void *>(1)},
    {"_id", team_get, nullptr, "the team's id", reinterpret_cast<void *>(2)},
    {"alive", team_get, nullptr, "Whether the team may be used.", reinterpret_cast<void *>(3)},
    {"pes", team_get, nullptr, "World numbers of the members, in team order.", reinterpret_cast<void *>(4)},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef team_methods[] = {{"_end", team_end, METH_NOARGS, "marks the team destroyed"}, {nullptr, nullptr, 0, nullptr}};
PyType_Slot team_slots[] = {{Py_tp_new, reinterpret_cast<void *>(team_new)},
                            {Py_tp_dealloc, reinterpret_cast<void *>(team_dealloc)},
                            {Py_tp_getset, team_getset},
                            {Py_tp_methods, team_methods},
                            {0, nullptr}};
PyType_Spec team_spec = {"pypgas._native.TeamBase", sizeof(TeamObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                         team_slots};

// ---- ContextBase

PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"team", nullptr};
  PyObject *team = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char **>(names), &team)) return nullptr;
  PYPGAS_CHECK_ACTIVE("Context");
  TeamObject *t = resolve_team("Context", team, nullptr);
  if (!t) return nullptr;
  ContextBase *self = allocate<ContextBase>(type);
  if (!self) return nullptr;
  Py_INCREF(reinterpret_cast<PyObject *>(t));
  self->team = t;
  self->generation = g.generation;
  self->alive = true;
  return reinterpret_cast<PyObject *>(self);
}
void context_dealloc(PyObject *object) {
  Py_XDECREF(reinterpret_cast<PyObject *>(reinterpret_cast<ContextBase *>(object)->team));
  release_object(object);
}
PyObject *context_get(PyObject *object, void *which) {
  ContextBase *self = reinterpret_cast<ContextBase *>(object);
  if (which) return PyBool_FromLong(self->alive && self->generation == g.generation && g.mode == Mode::active);
  Py_INCREF(reinterpret_cast<PyObject *>(self->team));
  return reinterpret_cast<PyObject *>(self->team);
}
PyObject *context_end(PyObject *object, PyObject *) {
  reinterpret_cast<ContextBase *>(object)->alive = false;
  Py_RETURN_NONE;
}
PyGetSetDef context_getset[] = {{"team", context_get, nullptr, "The team in which PE numbers count.", nullptr},
                                {"alive", context_get, nullptr, "Whether the context may be used.", reinterpret_cast<void *>(1)},
                                {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef context_methods[] = {{"_end", context_end, METH_NOARGS, "marks the context destroyed"},
                                 {nullptr, nullptr, 0, nullptr}};
PyType_Slot context_slots[] = {{Py_tp_new, reinterpret_cast<void *>(context_new)},
                               {Py_tp_dealloc, reinterpret_cast<void *>(context_dealloc)},
                               {Py_tp_getset, context_getset},
                               {Py_tp_methods, context_methods},
                               {0, nullptr}};
PyType_Spec context_spec = {"pypgas._native.ContextBase", sizeof(ContextBase), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, context_slots};

// ---- the runtime's own life

// bind(dict): exceptions, enums and callbacks, by name (pypgas/core/binding.py)
PyObject *bind(PyObject *, PyObject *dict) {
  static const char *errors[] = {"NotInitializedError", "ForkedChildError",  "InvalidPEError",     "InvalidTypeError",
                                 "InvalidValueError",   "NotSymmetricError", "StaleArrayError", "ResourceLimitError",
                                 "UnreachableError"};
  static const char *compare[] = {"EQ", "NE", "GT", "GE", "LT", "LE"};
  static const char *signal_ops[] = {"SIGNAL_SET", "SIGNAL_ADD"};
  const auto take = [dict](const char *name, PyObject **out) {
    PyObject *found = PyDict_GetItemString(dict, name);
    if (!found) {
      PyErr_Format(PyExc_KeyError, "bind: %s", name);
      return false;
    }
    Py_INCREF(found);
    Py_XDECREF(*out);
    *out = found;
    return true;
  };
  for (int i = 0; i < int(Err::count); i++) if (!take(errors[i], &g.errors[i])) return nullptr;
  for (int i = 0; i < int(pgas::Compare::count); i++) if (!take(compare[i], &g.compare[i])) return nullptr;
  for (int i = 0; i < int(pgas::SignalOp::count); i++) if (!take(signal_ops[i], &g.signal_ops[i])) return nullptr;
  if (!take("call_site", &g.call_site) || !take("report", &g.report) || !take("explain", &g.explain) ||
      !take("as_array", &g.as_array) || !take("released", &g.released) || !take("find_bfloat16", &g.find_bfloat16))
    return nullptr;
  Py_RETURN_NONE;
}

bool addresses(PyObject *sequence, std::vector<char *> *out) {
  const Py_ssize_t n = PySequence_Size(sequence);
  if (n < 0) return false;
  out->clear();
  for (Py_ssize_t i = 0; i < n; i++) {
    Ref item(PySequence_GetItem(sequence, i));
    if (!item) return false;
    out->push_back(reinterpret_cast<char *>(PyLong_AsUnsignedLongLong(item.p)));
  }
  return !PyErr_Occurred();
}

// attach(pe, mapping, mapped, areas, heaps, heap_bytes, max_teams, staging_bytes, pidfds, spins): takes over the mapping; the runtime is live from here on
PyObject *attach(PyObject *, PyObject *args) {
  long long pe;
  PyObject *areas, *heaps, *pidfds;
  unsigned long long mapping, mapped, heap_bytes, max_teams, staging_bytes;
  unsigned int spins;
  if (!PyArg_ParseTuple(args, "LKKOOKKKOI", &pe, &mapping, &mapped, &areas, &heaps, &heap_bytes, &max_teams, &staging_bytes, &pidfds, &spins))
    return nullptr;
  if (!addresses(areas, &g.areas) || !addresses(heaps, &g.heaps)) return nullptr;
  const Py_ssize_t n = PySequence_Size(pidfds);
  g.pidfds.clear();
  for (Py_ssize_t i = 0; i < n; i++) {
    Ref item(PySequence_GetItem(pidfds, i));
    if (!item) return nullptr;
    g.pidfds.push_back(int(PyLong_AsLong(item.p)));
  }
  if (PyErr_Occurred()) return nullptr;
  g.state = pgas::State{};
  g.state.version = pgas::state_version;
  g.state.bytes = u32(sizeof(pgas::State));
  g.state.pe = pe;
  g.state.n_pes = i64(g.heaps.size());
  g.state.heap_bytes = heap_bytes;
  g.state.heaps = g.heaps.data();
  g.state.areas = g.areas.data();
  g.state.max_teams = max_teams;
  g.teams.assign(max_teams, nullptr);
  g.state.teams = g.teams.data();
  g.state.staging_bytes = staging_bytes;
  g.state.layout = pgas::AreaLayout(max_teams, staging_bytes);
  g.mapping = new Mapping{mapping, mapped, 1};
  g.spins = spins;
  g.generation++;
  g.garbage.clear();
  forget_all_allocations();
  g.mode = Mode::active;
  Py_RETURN_NONE;
}

// prepare_area(address, max_teams, staging_bytes, pid): makes a fresh, zeroed runtime area usable by peers
PyObject *prepare_area(PyObject *, PyObject *args) {
  unsigned long long address, max_teams, staging_bytes;
  unsigned int pid;
  if (!PyArg_ParseTuple(args, "KKKI", &address, &max_teams, &staging_bytes, &pid)) return nullptr;
  pgas::AreaHeader *header = reinterpret_cast<pgas::AreaHeader *>(address);
  header->version = pgas::state_version;
  header->max_teams = u32(max_teams);
  header->staging_bytes = staging_bytes;
  header->status.pid = pid;
  const pgas::AreaLayout layout(max_teams, staging_bytes);
  pgas::TeamSync *teams = reinterpret_cast<pgas::TeamSync *>(address + layout.teams);
  // Only the predefined teams are reset here, before anybody can arrive; others when they are made.
  for (int i = 0; i < 3; i++) teams[i].arrive = u64(1) << pgas::raw::detail::epoch_shift;
  pgas::arch::store_release(&header->status.phase, u32(pgas::Phase::running));
  Py_RETURN_NONE;
}
PyObject *area_bytes(PyObject *, PyObject *args) {
  unsigned long long max_teams, staging_bytes;
  if (!PyArg_ParseTuple(args, "KK", &max_teams, &staging_bytes)) return nullptr;
  return PyLong_FromUnsignedLongLong(pgas::AreaLayout(max_teams, staging_bytes).bytes);
}
PyObject *set_world(PyObject *, PyObject *team) {
  if (!PyObject_TypeCheck(team, g.team_type)) return PyErr_Format(PyExc_TypeError, "not a Team");
  Py_INCREF(team);
  Py_XDECREF(reinterpret_cast<PyObject *>(g.world));
  g.world = reinterpret_cast<TeamObject *>(team);
  g.state.world = &g.world->team;
  Py_RETURN_NONE;
}
PyObject *set_waits(PyObject *, PyObject *args) {
  if (!PyArg_ParseTuple(args, "dd", &g.wait_timeout, &g.wait_report)) return nullptr;
  Py_RETURN_NONE;
}
// detach(phase, reason): the runtime ends; peers see how
PyObject *detach(PyObject *, PyObject *args) {
  unsigned int phase;
  const char *reason;
  if (!PyArg_ParseTuple(args, "Is", &phase, &reason)) return nullptr;
  if (g.mode == Mode::active) {
    pgas::Status *status = g.state.status(g.state.pe);
    snprintf(status->reason, sizeof status->reason, "%s", reason);
    pgas::arch::store_release(&status->phase, phase);
    g.mode = Mode::finalized;
    PyObject *world = reinterpret_cast<PyObject *>(g.world);
    g.world = nullptr;
    Py_XDECREF(world);
    release_mapping(g.mapping);
    g.mapping = nullptr;
  }
  Py_RETURN_NONE;
}
PyObject *mark_forked(PyObject *, PyObject *) {
  if (g.mode == Mode::active) g.mode = Mode::forked;
  Py_RETURN_NONE;
}
PyObject *check(PyObject *, PyObject *name) {
  if (g.mode == Mode::active) Py_RETURN_NONE;
  Ref text(PyUnicode_AsUTF8String(name));
  if (!text) return nullptr;
  check_active(PyBytes_AsString(text.p));
  return nullptr;
}
PyObject *is_active(PyObject *, PyObject *) { return PyBool_FromLong(g.mode == Mode::active); }
PyObject *team_query(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, const char *name, bool size) {
  static const char *const names[] = {"team"};
  const Signature signature = {name, 0, 1, 1, names};
  PyObject *a[1];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  const TeamObject *team = resolve_team(name, a[0], nullptr);
  return team ? PyLong_FromLongLong(size ? team->team.size : team->team.me) : nullptr;
}
PyObject *my_pe(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return team_query(args, nargs, kwnames, "my_pe", false);
}
PyObject *n_pes(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return team_query(args, nargs, kwnames, "n_pes", true);
}

} // namespace

bool add_types(PyObject *module) {
  struct { PyType_Spec *spec; PyTypeObject **type; const char *name; } types[] = {
      {&allocation_spec, &g.allocation_type, "Allocation"}, {&array_spec, &g.array_type, "ArrayBase"},
      {&handle_spec, &g.handle_type, "HandleBase"},         {&team_spec, &g.team_type, "TeamBase"},
      {&context_spec, &g.context_type, "ContextBase"}};
  for (auto &t : types) {
    PyObject *type = PyType_FromSpec(t.spec);
    if (!type) return false;
    *t.type = reinterpret_cast<PyTypeObject *>(type);
    Py_INCREF(type);
    if (PyModule_AddObject(module, t.name, type) < 0) return false;
  }
  return true;
}

PyMethodDef runtime_methods[] = {
    {"bind", bind, METH_O, "Hands over exceptions, enums and callbacks."},
    {"attach", attach, METH_VARARGS, "Makes the runtime live."},
    {"detach", detach, METH_VARARGS, "Ends the runtime."},
    {"prepare_area", prepare_area, METH_VARARGS, "Initialises a runtime area."},
    {"area_bytes", area_bytes, METH_VARARGS, "Size of a runtime area."},
    {"set_world", set_world, METH_O, "Sets the world team."},
    {"set_waits", set_waits, METH_VARARGS, "Sets the wait limit and report time, in seconds."},
    {"mark_forked", mark_forked, METH_NOARGS, "This process is a forked child."},
    {"check", check, METH_O, "Raises unless the runtime is live."},
    {"is_active", is_active, METH_NOARGS, "Whether the runtime is live in this process."},
    {"allocation", new_allocation, METH_VARARGS, "Registers a block of the heap."},
    {"end_allocation", end_allocation, METH_O, "Marks a block freed."},
    {"local_array", local_array, METH_VARARGS, "An array over a block."},
    {"peer_array", peer_array, METH_VARARGS, "A peer's view of a symmetric array."},
    PYPGAS_METHOD("my_pe", my_pe, "my_pe(team=None)\n--\n\nThis PE's number in `team`, the world by default."),
    PYPGAS_METHOD("n_pes", n_pes, "n_pes(team=None)\n--\n\nNumber of PEs in `team`, the world by default."),
    {nullptr, nullptr, 0, nullptr}};

} // namespace native
