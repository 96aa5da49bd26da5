// SPDX-License-Identifier: Apache-2.0
// The process's one live runtime, the Python objects that stand for its parts, and the checks every call makes.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "python.h"
#include "pypgas/raw.cuh"

namespace native {

using pgas::DType;
using pgas::i64;
using pgas::u32;
using pgas::u64;

enum class Mode { never, active, finalized, forked };

// Exceptions and callbacks that Python hands over once (see bind() in module.cpp).
enum class Err { not_initialized, forked, pe, type, value, not_symmetric, stale, resource, unreachable, count };

// The address range that holds every PE's segment. It stays mapped while arrays over it exist, even after finalize,
// so that a NumPy view somebody kept reads old memory and not none.
struct Mapping {
  u64 address, bytes;
  long references;
};

// A live block of the symmetric heap. NumPy arrays over it hold a reference as their base, so that dropping the last
// of them is what marks the block as garbage.
struct Allocation {
  PyObject_HEAD
  u64 offset, nbytes, id, generation;
  Mapping *mapping;
  bool live;
};

struct TeamObject {
  PyObject_HEAD
  pgas::Team team;
  std::vector<i64> *members;
  std::shared_ptr<std::atomic<int>> *queued; // collectives of this team that are on streams and not over
  u64 generation;
  bool alive;
};

// Base of pypgas.SymmetricArray: this PE's piece, as a NumPy array over `allocation`.
struct ArrayBase {
  PyObject_HEAD
  PyObject *local;
  Allocation *allocation;
};

// Base of pypgas.RemoteHandle: a view of a symmetric array as PE `pe` (of the world) has it.
struct HandleBase {
  PyObject_HEAD
  PyObject *array; // an ArrayBase
  i64 pe;
};

// Base of pypgas.Context.
struct ContextBase {
  PyObject_HEAD
  TeamObject *team;
  u64 generation;
  bool alive;
};

struct Global {
  Mode mode = Mode::never;
  u64 generation = 0;
  pgas::State state{};
  std::vector<char *> heaps, areas;
  Mapping *mapping = nullptr;
  std::vector<const pgas::Team *> teams; // by id: what state.teams points to
  std::vector<int> pidfds; // by world PE; -1 where there is none
  TeamObject *world = nullptr;
  std::vector<u64> garbage; // ids of dropped allocations, not yet agreed upon

  PyTypeObject *allocation_type = nullptr, *team_type = nullptr, *array_type = nullptr, *handle_type = nullptr,
               *context_type = nullptr;
  PyObject *errors[int(Err::count)] = {};
  PyObject *compare[int(pgas::Compare::count)] = {};
  PyObject *signal_ops[int(pgas::SignalOp::count)] = {};
  PyObject *call_site = nullptr;   // () -> str: where the user called from
  PyObject *report = nullptr;      // (**facts) -> None: a wait has lasted long
  PyObject *explain = nullptr;     // (outcome, **facts) -> exception to raise
  PyObject *as_array = nullptr;    // (object, dtype or None) -> ndarray, for operands that are not arrays
  PyObject *released = nullptr;    // (list of ids): all PEs have dropped these
  PyObject *find_bfloat16 = nullptr; // () -> dtype or None: bfloat16, once somebody has imported it
  int bfloat16_type = -1;

  double wait_timeout = 300, wait_report = 10;
  unsigned spins = 200;
};
extern Global g;

// Fails with `error` and "PE n: operation: " before the formatted text. Always returns null.
PyObject *fail(Err error, const char *operation, const char *format, ...);

// False, with an exception, unless the runtime is live in this process.
inline bool active() { return g.mode == Mode::active; }
bool check_active(const char *operation);
#define PYPGAS_CHECK_ACTIVE(operation)                                                                                \
  if (__builtin_expect(g.mode != Mode::active, 0) && !check_active(operation)) return nullptr

// Keyword arguments of the fast calling convention: fills out[] (positional then keyword names, null where absent).
struct Signature {
  const char *name;
  int required, positional, total;
  const char *const *names;
};
bool parse_slow(const Signature &s, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out);
inline bool parse(const Signature &s, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out) {
  if (__builtin_expect(!kwnames && nargs >= s.required && nargs <= s.positional, 1)) {
    int i = 0;
    for (; i < nargs; i++) out[i] = args[i];
    for (; i < s.total; i++) out[i] = nullptr;
    return true;
  }
  return parse_slow(s, args, nargs, kwnames, out);
}

// The team that PE numbers count in: from team=, else from ctx=, else the world. Null with an exception.
TeamObject *resolve_team(const char *operation, PyObject *team, PyObject *context);
// World number of `pe`, which counts in `team`. -1 with an exception. The PE must be mapped.
i64 resolve_pe(const char *operation, PyObject *pe, const TeamObject *team);
bool check_team(const char *operation, const TeamObject *team);
// An integer argument (anything with __index__). False with an exception.
bool integer(const char *operation, const char *name, PyObject *object, i64 *out);
// Seconds; None or absent means the default. False with an exception.
bool seconds(const char *operation, PyObject *object, double *out);

bool add_types(PyObject *module);
extern PyMethodDef runtime_methods[];

} // namespace native
