// SPDX-License-Identifier: Apache-2.0
#include "python.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../patience.h"

namespace native {

const std::atomic<unsigned long long> *default_pending = nullptr;

namespace {

using cpu::Failure;
using cpu::Launch;
using cpu::Stream;

struct StreamObject {
  PyObject_HEAD
  std::shared_ptr<Stream> *stream;
  u64 generation;
};
struct EventObject {
  PyObject_HEAD
  std::shared_ptr<cpu::Event> *event;
};
struct ModuleObject {
  PyObject_HEAD
  void *handle;
  const pgas::cpu::ModuleTable *table;
  u64 generation;
};
PyTypeObject *stream_type, *event_type, *module_type;
std::shared_ptr<Stream> default_stream;
std::vector<std::weak_ptr<Stream>> streams; // of this runtime
u64 default_generation = 0;

template <class T> T *allocate(PyTypeObject *type) {
  allocfunc alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  return reinterpret_cast<T *>(alloc(type, 0));
}
void release_object(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

std::shared_ptr<Stream> &the_default_stream() {
  if (!default_stream || default_generation != g.generation) {
    default_stream = std::make_shared<Stream>();
    streams.clear();
    streams.push_back(default_stream);
    default_generation = g.generation;
    default_pending = default_stream->pending();
  }
  return default_stream;
}

PyObject *place(const long long *at) {
  if (at[0] < 0) Py_RETURN_NONE;
  return Py_BuildValue("(LLL)", at[0], at[1], at[2]);
}

// Waits for a stream, letting Ctrl-C through; a kernel that takes longer than the limit is ended.
bool wait_stream(const char *operation, Stream &stream, double limit) {
  const u64 start = now_ns();
  bool interrupted = false;
  for (;;) {
    bool done;
    Py_BEGIN_ALLOW_THREADS
    done = stream.wait(0.05);
    Py_END_ALLOW_THREADS
    if (done) break;
    if (PyErr_CheckSignals() < 0) return false;
    // Waits inside the kernel have the same limit and say more; they go first.
    if (!interrupted && double(now_ns() - start) * 1e-9 > limit + 1) {
      stream.interrupt(limit);
      interrupted = true;
    }
  }
  release_discarded();
  Failure failure;
  if (!stream.take_failure(&failure)) return true;
  raise_failure(operation, failure);
  return false;
}

// ---- Stream

PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *) {
  if (PyTuple_Size(args)) return PyErr_Format(PyExc_TypeError, "Stream() takes no arguments");
  PYPGAS_CHECK_ACTIVE("Stream");
  StreamObject *self = allocate<StreamObject>(type);
  if (!self) return nullptr;
  the_default_stream(); // the list starts anew with each runtime
  self->stream = new std::shared_ptr<Stream>(std::make_shared<Stream>());
  streams.push_back(*self->stream);
  self->generation = g.generation;
  return reinterpret_cast<PyObject *>(self);
}
void stream_dealloc(PyObject *object) {
  delete reinterpret_cast<StreamObject *>(object)->stream; // what is enqueued still runs
  release_object(object);
}
StreamObject *live_stream(const char *operation, PyObject *object) {
  StreamObject *self = reinterpret_cast<StreamObject *>(object);
  if (!active() && !check_active(operation)) return nullptr;
  if (self->generation == g.generation) return self;
  fail(Err::stale, operation, "the stream belongs to an earlier runtime");
  return nullptr;
}
PyObject *stream_synchronize(PyObject *object, PyObject *args) {
  PyObject *limit = nullptr;
  if (!PyArg_ParseTuple(args, "|O", &limit)) return nullptr;
  StreamObject *self = live_stream("Stream.synchronize", object);
  double timeout;
  if (!self || !seconds("Stream.synchronize", limit, &timeout)) return nullptr;
  if (!wait_stream("Stream.synchronize", **self->stream, timeout)) return nullptr;
  Py_RETURN_NONE;
}
PyObject *stream_done(PyObject *object, PyObject *) {
  StreamObject *self = live_stream("Stream.done", object);
  return self ? PyBool_FromLong((*self->stream)->idle()) : nullptr;
}
PyObject *stream_event(PyObject *object, PyObject *event_object, bool record) {
  StreamObject *self = live_stream(record ? "Event.record" : "Stream.wait", object);
  if (!self) return nullptr;
  if (!PyObject_TypeCheck(event_object, event_type))
    return fail(Err::type, record ? "Event.record" : "Stream.wait", "event must be a pypgas.Event");
  const std::shared_ptr<cpu::Event> &event = *reinterpret_cast<EventObject *>(event_object)->event;
  Stream::Operation op;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    op.turn = record ? ++event->recorded : event->recorded;
  }
  (record ? op.record : op.wait) = event;
  (*self->stream)->enqueue(std::move(op));
  Py_RETURN_NONE;
}
PyObject *stream_record(PyObject *object, PyObject *event) { return stream_event(object, event, true); }
PyObject *stream_wait(PyObject *object, PyObject *event) { return stream_event(object, event, false); }
PyMethodDef stream_methods[] = {
    {"_synchronize", stream_synchronize, METH_VARARGS, "Waits until everything enqueued is over."},
    {"_done", stream_done, METH_NOARGS, "Whether everything enqueued is over."},
    {"_record", stream_record, METH_O, "Records an event."},
    {"_wait", stream_wait, METH_O, "Later operations wait for an event."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot stream_slots[] = {{Py_tp_new, reinterpret_cast<void *>(stream_new)},
                              {Py_tp_dealloc, reinterpret_cast<void *>(stream_dealloc)},
                              {Py_tp_methods, stream_methods},
                              {0, nullptr}};
PyType_Spec stream_spec = {"pypgas._native.StreamBase", sizeof(StreamObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           stream_slots};

// ---- Event

PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *) {
  if (PyTuple_Size(args)) return PyErr_Format(PyExc_TypeError, "Event() takes no arguments");
  EventObject *self = allocate<EventObject>(type);
  if (self) self->event = new std::shared_ptr<cpu::Event>(std::make_shared<cpu::Event>());
  return reinterpret_cast<PyObject *>(self);
}
void event_dealloc(PyObject *object) {
  delete reinterpret_cast<EventObject *>(object)->event;
  release_object(object);
}
// _state() -> (recorded, completed, time in seconds of the last completion)
PyObject *event_state(PyObject *object, PyObject *) {
  cpu::Event &event = **reinterpret_cast<EventObject *>(object)->event;
  std::lock_guard<std::mutex> lock(event.mutex);
  return Py_BuildValue("(KKd)", event.recorded, event.completed, event.time);
}
// _wait(seconds) -> whether the last record has completed
PyObject *event_wait(PyObject *object, PyObject *limit) {
  const double seconds = PyFloat_AsDouble(limit);
  if (PyErr_Occurred()) return nullptr;
  std::shared_ptr<cpu::Event> event = *reinterpret_cast<EventObject *>(object)->event;
  bool done;
  Py_BEGIN_ALLOW_THREADS
  std::unique_lock<std::mutex> lock(event->mutex);
  done = event->changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return event->completed >= event->recorded; });
  Py_END_ALLOW_THREADS
  return PyBool_FromLong(done);
}
PyMethodDef event_methods[] = {{"_state", event_state, METH_NOARGS, "How often recorded and completed."},
                               {"_wait", event_wait, METH_O, "Waits for the last record."},
                               {nullptr, nullptr, 0, nullptr}};
PyType_Slot event_slots[] = {{Py_tp_new, reinterpret_cast<void *>(event_new)},
                             {Py_tp_dealloc, reinterpret_cast<void *>(event_dealloc)},
                             {Py_tp_methods, event_methods},
                             {0, nullptr}};
PyType_Spec event_spec = {"pypgas._native.EventBase", sizeof(EventObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          event_slots};

// ---- modules

// A copy under a name of its own: the loader would give the same module twice for the same file.
bool private_copy(const char *path, std::string *out) {
  const char *folder = getenv("TMPDIR");
  std::string name = std::string(folder && *folder ? folder : "/tmp") + "/pypgas-module-XXXXXX";
  const int from = open(path, O_RDONLY | O_CLOEXEC);
  if (from < 0) return false;
  const int to = mkostemp(&name[0], O_CLOEXEC);
  bool ok = to >= 0;
  char buffer[65536];
  ssize_t n = 0;
  while (ok && (n = read(from, buffer, sizeof buffer)) > 0) ok = write(to, buffer, size_t(n)) == n;
  ok = ok && n == 0;
  close(from);
  if (to >= 0) close(to);
  if (to >= 0 && !ok) unlink(name.c_str());
  *out = name;
  return ok;
}

// cpu_module(path, keep_path=False) -> module. keep_path loads the file itself, for debuggers.
PyObject *cpu_module(PyObject *, PyObject *args) {
  const char *path;
  int keep_path = 0;
  if (!PyArg_ParseTuple(args, "s|p", &path, &keep_path)) return nullptr;
  PYPGAS_CHECK_ACTIVE("Module");
  std::string loaded = path;
  if (!keep_path && !private_copy(path, &loaded)) return PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
  void *handle = dlopen(loaded.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!keep_path) unlink(loaded.c_str());
  if (!handle) return PyErr_Format(PyExc_OSError, "loading %s: %s", path, dlerror());
  const auto *table = static_cast<const pgas::cpu::ModuleTable *>(dlsym(handle, "pgas_module"));
  if (!table || table->version != pgas::cpu::abi_version) {
    dlclose(handle);
    return PyErr_Format(PyExc_OSError, "%s is not a kernel module of this version", path);
  }
  table->bind(&g.state, cpu::Block::api());
  ModuleObject *self = allocate<ModuleObject>(module_type);
  if (!self) return nullptr;
  self->handle = handle;
  self->table = table;
  self->generation = g.generation;
  return reinterpret_cast<PyObject *>(self);
}
void module_dealloc(PyObject *object) {
  // The code stays loaded: a kernel that was given up may have left threads-local memory behind in it.
  release_object(object);
}
PyObject *module_types(PyObject *object, void *) {
  ModuleObject *self = reinterpret_cast<ModuleObject *>(object);
  PyObject *list = PyList_New(self->table->count);
  for (int i = 0; list && i < self->table->count; i++) PyList_SetItem(list, i, PyUnicode_FromString(self->table->types[i]));
  return list;
}
PyGetSetDef module_getset[] = {{"types", module_types, nullptr, "mangled types of the kernels' addresses", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot module_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(module_dealloc)},
                              {Py_tp_getset, module_getset},
                              {0, nullptr}};
PyType_Spec module_spec = {"pypgas._native.CpuModule", sizeof(ModuleObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, module_slots};

// cpu_launch(module, index, name, grid, block, shared, args, offsets, stream, cooperative, keep)
PyObject *cpu_launch(PyObject *, PyObject *args) {
  PyObject *module, *stream_object, *keep, *offsets;
  int index, cooperative;
  const char *name, *data;
  Py_ssize_t length;
  unsigned int grid[3], block[3];
  unsigned long long shared;
  if (!PyArg_ParseTuple(args, "Ois(III)(III)Ky#O!OpO", &module, &index, &name, &grid[0], &grid[1], &grid[2], &block[0], &block[1],
                        &block[2], &shared, &data, &length, &PyTuple_Type, &offsets, &stream_object, &cooperative, &keep))
    return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  if (!PyObject_TypeCheck(module, module_type)) return PyErr_Format(PyExc_TypeError, "not a module");
  ModuleObject *m = reinterpret_cast<ModuleObject *>(module);
  if (m->generation != g.generation)
    return fail(Err::stale, name, "the kernel's module was loaded by an earlier runtime; make the Module anew after init()");
  if (index < 0 || index >= m->table->count) return PyErr_Format(PyExc_IndexError, "no kernel %d", index);
  std::shared_ptr<Stream> stream;
  if (!stream_argument(name, stream_object, &stream)) return nullptr;
  if (!stream) stream = the_default_stream();
  Failure failure;
  if (stream->take_failure(&failure)) return raise_failure(name, failure);
  release_discarded();
  auto launch = std::make_shared<Launch>();
  launch->shape.grid = {grid[0], grid[1], grid[2]};
  launch->shape.block = {block[0], block[1], block[2]};
  launch->shape.threads = block[0] * block[1] * block[2];
  launch->blocks = 1ull * grid[0] * grid[1] * grid[2];
  launch->name = name;
  launch->call = m->table->calls[index];
  launch->self = m->table->self;
  launch->shared_bytes = shared;
  launch->cooperative = cooperative;
  launch->time_limit = g.wait_timeout;
  launch->storage.resize(size_t(length) + 16);
  // Arguments keep the alignment they have in `args`.
  unsigned char *first = launch->storage.data() + (16 - reinterpret_cast<uintptr_t>(launch->storage.data()) % 16) % 16;
  memcpy(first, data, size_t(length));
  const Py_ssize_t n = PyTuple_Size(offsets);
  for (Py_ssize_t i = 0; i < n; i++) launch->arguments.push_back(first + PyLong_AsSize_t(PyTuple_GetItem(offsets, i)));
  if (PyErr_Occurred()) return nullptr;
  Py_INCREF(keep);
  Stream::Operation op;
  op.launch = std::move(launch);
  op.keep = keep;
  stream->enqueue(std::move(op));
  Py_RETURN_NONE;
}

PyObject *synchronize_default(PyObject *, PyObject *limit) {
  double timeout;
  PYPGAS_CHECK_ACTIVE("synchronize");
  if (!seconds("synchronize", limit, &timeout)) return nullptr;
  if (!wait_stream("synchronize", *the_default_stream(), timeout)) return nullptr;
  Py_RETURN_NONE;
}
PyObject *synchronize_all(PyObject *, PyObject *limit) {
  double timeout;
  PYPGAS_CHECK_ACTIVE("synchronize");
  if (!seconds("synchronize", limit, &timeout)) return nullptr;
  the_default_stream();
  for (size_t i = 0; i < streams.size(); i++)
    if (auto stream = streams[i].lock())
      if (!wait_stream("synchronize", *stream, timeout)) return nullptr;
  Py_RETURN_NONE;
}
// abandon_streams(): kernels that run are ended, because the memory they use is about to go
PyObject *abandon_streams(PyObject *, PyObject *) {
  for (const auto &weak : streams)
    if (auto stream = weak.lock()) {
      for (int i = 0; i < 100 && !stream->idle(); i++) {
        stream->interrupt(0);
        Py_BEGIN_ALLOW_THREADS
        stream->wait(0.01);
        Py_END_ALLOW_THREADS
      }
    }
  Py_RETURN_NONE;
}
PyObject *team_address(PyObject *, PyObject *object) {
  if (!PyObject_TypeCheck(object, g.team_type)) return PyErr_Format(PyExc_TypeError, "not a Team");
  TeamObject *team = reinterpret_cast<TeamObject *>(object);
  return check_team("kernel argument", team) ? PyLong_FromVoidPtr(&team->team) : nullptr;
}
PyObject *context_address(PyObject *, PyObject *object) {
  if (!PyObject_TypeCheck(object, g.context_type)) return PyErr_Format(PyExc_TypeError, "not a Context");
  TeamObject *team = resolve_team("kernel argument", nullptr, object);
  return team ? PyLong_FromVoidPtr(&team->team) : nullptr;
}

} // namespace

bool stream_argument(const char *operation, PyObject *object, std::shared_ptr<Stream> *out) {
  if (!object || object == Py_None) return true;
  if (!PyObject_TypeCheck(object, stream_type)) {
    fail(Err::type, operation, "stream must be a pypgas.Stream on the CPU device, not %R", reinterpret_cast<PyObject *>(Py_TYPE(object)));
    return false;
  }
  StreamObject *self = live_stream(operation, object);
  if (!self) return false;
  *out = *self->stream;
  return true;
}

bool wait_default_slow(const char *operation) {
  return !default_stream || default_generation != g.generation || wait_stream(operation, *default_stream, g.wait_timeout);
}

void enqueue(Stream &stream, std::function<bool(cpu::Worker &, Failure *)> function, std::initializer_list<PyObject *> keep) {
  release_discarded();
  PyObject *list = PyList_New(0);
  for (PyObject *object : keep)
    if (object && list) PyList_Append(list, object);
  Stream::Operation op;
  op.function = std::move(function);
  op.keep = list;
  stream.enqueue(std::move(op));
}
void enqueue(Stream &stream, std::function<void()> function, std::initializer_list<PyObject *> keep) {
  enqueue(stream, [function = std::move(function)](cpu::Worker &, Failure *) { function(); return true; }, keep);
}

PyObject *raise_failure(const char *operation, const Failure &failure) {
  Ref block(place(failure.block)), thread(place(failure.thread));
  Ref pes(PyList_New(0));
  for (long long pe : failure.pes) {
    Ref number(PyLong_FromLongLong(pe));
    if (number) PyList_Append(pes.p, number.p);
  }
  Ref facts(Py_BuildValue("{s:s,s:s,s:s,s:s,s:O,s:O,s:O}", "operation", operation, "kind", failure.kind.c_str(), "text",
                          failure.text.c_str(), "kernel", failure.kernel.c_str(), "block", block.p, "thread", thread.p, "pes", pes.p));
  Ref name(PyUnicode_FromString("kernel"));
  if (!facts || !name) return nullptr;
  Ref error(PyObject_CallFunctionObjArgs(g.explain, name.p, facts.p, nullptr));
  if (error) PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.p)), error.p);
  return nullptr;
}

void release_discarded() {
  for (void *object : cpu::take_discarded()) Py_DECREF(static_cast<PyObject *>(object));
}

bool StreamWait::idle() {
  if (++looks_ < g.spins) {
    pgas::arch::pause();
    return true;
  }
  const u64 now = now_ns();
  if (!start_) {
    start_ = now;
    next_check_ = now + 20000000;
  }
  if (double(now - start_) * 1e-9 > timeout_) {
    failure_->kind = "timeout";
    failure_->text = operation_;
    return false;
  }
  if (now - start_ > 20000 && !worker_.waiting) cpu::pool().start_waiting(worker_);
  if (now - start_ < 200000) {
    sched_yield();
    return true;
  }
  if (now >= next_check_) {
    next_check_ = now + 20000000;
    const std::vector<i64> dead = failed_peers(team_, true, team_ != nullptr);
    if (!dead.empty()) {
      failure_->kind = "peer";
      failure_->text = operation_;
      failure_->pes.assign(dead.begin(), dead.end());
      return false;
    }
  }
  timespec t = {0, sleep_ns_};
  nanosleep(&t, nullptr);
  if (sleep_ns_ < 1000000) sleep_ns_ += sleep_ns_ / 8;
  return true;
}

bool add_cpu_types(PyObject *module) {
  struct { PyType_Spec *spec; PyTypeObject **type; const char *name; } types[] = {
      {&stream_spec, &stream_type, "StreamBase"}, {&event_spec, &event_type, "EventBase"}, {&module_spec, &module_type, "CpuModule"}};
  for (auto &t : types) {
    PyObject *type = PyType_FromSpec(t.spec);
    if (!type) return false;
    *t.type = reinterpret_cast<PyTypeObject *>(type);
    Py_INCREF(type);
    if (PyModule_AddObject(module, t.name, type) < 0) return false;
  }
  return true;
}

PyMethodDef cpu_methods[] = {{"cpu_module", cpu_module, METH_VARARGS, "Loads a kernel module."},
                             {"cpu_launch", cpu_launch, METH_VARARGS, "Launches a kernel."},
                             {"synchronize_default", synchronize_default, METH_O, "Waits for the default stream."},
                             {"synchronize_all", synchronize_all, METH_O, "Waits for every stream."},
                             {"abandon_streams", abandon_streams, METH_NOARGS, "Ends what runs on streams."},
                             {"team_address", team_address, METH_O, "What a kernel's team argument holds."},
                             {"context_address", context_address, METH_O, "What a kernel's context argument holds."},
                             {nullptr, nullptr, 0, nullptr}};

} // namespace native
