// SPDX-License-Identifier: Apache-2.0
// put, get and their kin, and put with signal: between PEs of a node each is one copy.
#include "rma.h"

#include <array>
#include <vector>

#include "cpu/python.h"
#include "enums.h"

namespace native {

namespace {

constexpr u64 unlock_above = 256 << 10; // bytes; larger copies give up the interpreter lock

bool ranges_overlap(const char *a, const i64 *a_strides, const char *b, const i64 *b_strides, const i64 *shape, int ndim,
                    u64 itemsize) {
  i64 low[2] = {0, 0}, high[2] = {i64(itemsize), i64(itemsize)};
  const i64 *strides[2] = {a_strides, b_strides};
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < ndim; i++) {
      const i64 reach = (shape[i] - 1) * strides[side][i];
      if (reach < 0) low[side] += reach;
      else high[side] += reach;
    }
  return a + low[0] < b + high[1] && b + low[1] < a + high[0];
}

// One copy, described completely: it can be made now or later.
struct Move {
  char *dst;
  const char *src;
  u64 nbytes, itemsize;
  bool contiguous;
  pgas::raw::Strided c;

  // Copies src's elements to dst, both of d's shape. The caller has checked everything.
  Move(char *dst, const Operand &d, const char *src, const Operand &s)
      : dst(dst), src(src), nbytes(d.nbytes()), itemsize(d.itemsize), contiguous(d.contiguous && s.contiguous) {
    if (contiguous) return;
    c.ndim = d.ndim;
    for (int i = 0; i < d.ndim; i++) {
      c.shape[i] = d.shape[i];
      c.dst[i] = d.strides[i];
      c.src[i] = s.strides[i];
    }
  }
  void run() const {
    if (contiguous || !nbytes) {
      pgas::raw::copy(dst, src, nbytes);
      return;
    }
    pgas::raw::Strided in = c, out = c;
    if (!ranges_overlap(dst, c.dst, src, c.src, c.shape, c.ndim, itemsize)) {
      pgas::raw::copy_strided(in, dst, src, itemsize);
      return;
    }
    // As with NumPy's assignment, overlapping views behave as if the source had been copied first.
    std::vector<char> copy(nbytes);
    i64 step = i64(itemsize);
    for (int i = c.ndim - 1; i >= 0; i--) {
      in.dst[i] = out.src[i] = step;
      step *= c.shape[i];
    }
    pgas::raw::copy_strided(in, copy.data(), src, itemsize);
    pgas::raw::copy_strided(out, dst, copy.data(), itemsize);
  }
};

// Makes the copy now, or on a stream if the caller named one; then `after`, which may be null.
template <class F> PyObject *carry_out(const char *name, const Move &move, PyObject *stream_object, F after,
                                       std::initializer_list<PyObject *> keep) {
  if (__builtin_expect(stream_object != nullptr, 0)) {
    std::shared_ptr<cpu::Stream> stream;
    if (!stream_argument(name, stream_object, &stream)) return nullptr;
    if (stream) {
      enqueue(*stream, [move, after] { move.run(); after(); }, keep);
      Py_RETURN_NONE;
    }
  }
  if (!wait_default(name)) return nullptr;
  if (move.nbytes > unlock_above) {
    Py_BEGIN_ALLOW_THREADS
    move.run();
    Py_END_ALLOW_THREADS
  } else {
    move.run();
  }
  after();
  Py_RETURN_NONE;
}
void nothing() {}

i64 target_pe(const char *operation, PyObject *pe, const TeamObject *team, const Operand &symmetric, const char *name) {
  if (symmetric.handle_pe >= 0) {
    if (!pe || pe == Py_None) return symmetric.handle_pe;
    const i64 given = resolve_pe(operation, pe, team);
    if (given < 0 || given == symmetric.handle_pe) return given;
    fail(Err::value, operation, "pe = %S but %s is a handle on PE %lld; leave pe out", pe, name,
         static_cast<long long>(symmetric.handle_pe));
    return -1;
  }
  if (!pe || pe == Py_None) {
    PyErr_Format(PyExc_TypeError, "%s() missing required argument 'pe'", operation);
    return -1;
  }
  return resolve_pe(operation, pe, team);
}

const char *const put_names[] = {"target", "source", "pe", "team", "ctx", "stream"};

PyObject *do_put(const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  const Signature signature = {name, 2, 3, 6, put_names};
  PyObject *a[6];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *team = resolve_team(name, a[3], a[4]);
  if (!team) return nullptr;
  Operand target, source;
  u64 offset;
  if (!symmetric_operand(name, "target", a[0], &target, &offset)) return nullptr;
  const i64 pe = target_pe(name, a[2], team, target, "target");
  if (pe < 0 || !any_operand(name, "source", a[1], &source, &target)) return nullptr;
  if (!same_dtype(name, target, "target", source, "source") || !same_shape(name, target, "target", source, "source"))
    return nullptr;
  const Move move(g.state.heaps[pe] + offset, target, source.data, source);
  return carry_out(name, move, a[5], nothing, {a[0], a[1], source.owned.p});
}
PyObject *put(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) { return do_put("put", args, n, kw); }
PyObject *put_nbi(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) { return do_put("put_nbi", args, n, kw); }

PyObject *do_get(const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  const Signature signature = {name, 2, 3, 6, put_names};
  PyObject *a[6];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *team = resolve_team(name, a[3], a[4]);
  if (!team) return nullptr;
  Operand target, source;
  u64 offset;
  if (!PyArray_Check(a[0]) && !PyObject_TypeCheck(a[0], g.array_type) && !PyObject_HasAttrString(a[0], "__dlpack__"))
    return fail(Err::type, name, "target must be an array that can be written, not %R", reinterpret_cast<PyObject *>(Py_TYPE(a[0])));
  if (!symmetric_operand(name, "source", a[1], &source, &offset)) return nullptr;
  const i64 pe = target_pe(name, a[2], team, source, "source");
  if (pe < 0 || !any_operand(name, "target", a[0], &target) || !writable(name, "target", target)) return nullptr;
  if (!same_dtype(name, target, "target", source, "source") || !same_shape(name, target, "target", source, "source"))
    return nullptr;
  const Move move(target.data, target, g.state.heaps[pe] + offset, source);
  return carry_out(name, move, a[5], nothing, {a[0], a[1], target.owned.p});
}
PyObject *get(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) { return do_get("get", args, n, kw); }
PyObject *get_nbi(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) { return do_get("get_nbi", args, n, kw); }

bool one_element(const char *operation, const char *name, const Operand &o) {
  if (o.size == 1) return true;
  fail(Err::value, operation, "%s must have exactly one element, it has %llu", name, static_cast<unsigned long long>(o.size));
  return false;
}

PyObject *p(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const names[] = {"target", "value", "pe", "team", "ctx", "stream"};
  static const Signature signature = {"p", 2, 3, 6, names};
  PyObject *a[6];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE("p");
  TeamObject *team = resolve_team("p", a[3], a[4]);
  if (!team) return nullptr;
  Operand target;
  u64 offset;
  if (!symmetric_operand("p", "target", a[0], &target, &offset) || !one_element("p", "target", target)) return nullptr;
  const i64 pe = target_pe("p", a[2], team, target, "target");
  alignas(16) unsigned char value[16];
  if (pe < 0 || !scalar("p", "value", a[1], target.type, value)) return nullptr;
  char *to = g.state.heaps[pe] + offset;
  if (a[5]) {
    std::shared_ptr<cpu::Stream> stream;
    if (!stream_argument("p", a[5], &stream)) return nullptr;
    if (stream) {
      std::array<unsigned char, 16> bytes;
      memcpy(bytes.data(), value, sizeof value);
      enqueue(*stream, [to, bytes, n = target.itemsize] { pgas::raw::copy(to, bytes.data(), n); }, {a[0]});
      Py_RETURN_NONE;
    }
  }
  if (!wait_default("p")) return nullptr;
  pgas::raw::copy(to, value, target.itemsize);
  Py_RETURN_NONE;
}

PyObject *get_one(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const names[] = {"source", "pe", "team", "ctx"};
  static const Signature signature = {"g", 1, 2, 4, names};
  PyObject *a[4];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE("g");
  TeamObject *team = resolve_team("g", a[2], a[3]);
  if (!team) return nullptr;
  Operand source;
  u64 offset;
  if (!symmetric_operand("g", "source", a[0], &source, &offset) || !one_element("g", "source", source)) return nullptr;
  const i64 pe = target_pe("g", a[1], team, source, "source");
  if (pe < 0) return nullptr;
  alignas(16) unsigned char value[16];
  if (!wait_default("g")) return nullptr;
  pgas::raw::copy(value, g.state.heaps[pe] + offset, source.itemsize);
  return to_scalar(source.type, value);
}

// Strided transfers of nelems elements, strides in elements: OpenSHMEM's iput and iget.
PyObject *do_strided(const char *name, bool is_put, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const names[] = {"target", "source", "tst", "sst", "nelems", "pe", "team", "ctx", "stream"};
  const Signature signature = {name, 5, 6, 9, names};
  PyObject *a[9];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *team = resolve_team(name, a[6], a[7]);
  if (!team) return nullptr;
  Operand target, source;
  u64 offset;
  if (is_put ? !symmetric_operand(name, "target", a[0], &target, &offset) || !any_operand(name, "source", a[1], &source, &target)
             : !symmetric_operand(name, "source", a[1], &source, &offset) || !any_operand(name, "target", a[0], &target))
    return nullptr;
  if (!is_put && !writable(name, "target", target)) return nullptr;
  const i64 pe = target_pe(name, a[5], team, is_put ? target : source, is_put ? "target" : "source");
  i64 tst, sst, nelems;
  if (pe < 0 || !integer(name, "tst", a[2], &tst) || !integer(name, "sst", a[3], &sst) || !integer(name, "nelems", a[4], &nelems))
    return nullptr;
  if (!same_dtype(name, target, "target", source, "source")) return nullptr;
  if (tst < 1) return fail(Err::value, name, "tst = %lld must be at least 1 element", static_cast<long long>(tst));
  if (sst < 1) return fail(Err::value, name, "sst = %lld must be at least 1 element", static_cast<long long>(sst));
  if (nelems < 0) return fail(Err::value, name, "nelems = %lld must not be negative", static_cast<long long>(nelems));
  const struct { const char *name; const Operand &o; i64 stride; } sides[] = {{"target", target, tst}, {"source", source, sst}};
  for (const auto &side : sides) {
    if (side.o.ndim > 1 && !side.o.contiguous)
      return fail(Err::value, name, "%s must be one-dimensional or contiguous: its elements are counted in memory order", side.name);
    if (nelems && u64(nelems - 1) > (side.o.size ? (side.o.size - 1) / u64(side.stride) : 0))
      return fail(Err::value, name, "nelems = %lld with a stride of %lld reaches past the end of %s, which has %llu elements",
                  static_cast<long long>(nelems), static_cast<long long>(side.stride), side.name,
                  static_cast<unsigned long long>(side.o.size));
    if (nelems && !side.o.size) return fail(Err::value, name, "nelems = %lld but %s is empty", static_cast<long long>(nelems), side.name);
  }
  if (nelems) {
    const i64 item = i64(target.itemsize);
    const i64 td = target.ndim == 1 ? target.strides[0] : item, sd = source.ndim == 1 ? source.strides[0] : item;
    npy_intp shape[1] = {nelems}, ts[1] = {tst * td}, ss[1] = {sst * sd};
    Operand t, s;
    t.ndim = s.ndim = 1;
    t.shape = s.shape = shape;
    t.strides = ts;
    s.strides = ss;
    t.size = s.size = u64(nelems);
    t.itemsize = s.itemsize = u64(item);
    t.contiguous = ts[0] == item;
    s.contiguous = ss[0] == item;
    char *remote = g.state.heaps[pe] + offset;
    const Move move(is_put ? remote : target.data, t, is_put ? source.data : remote, s);
    return carry_out(name, move, a[8], nothing, {a[0], a[1], source.owned.p, target.owned.p});
  }
  Py_RETURN_NONE;
}
PyObject *iput(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) { return do_strided("iput", true, args, n, kw); }
PyObject *iget(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) { return do_strided("iget", false, args, n, kw); }

PyObject *do_put_signal(const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const names[] = {"target", "source", "signal", "value", "pe", "op", "team", "ctx", "stream"};
  const Signature signature = {name, 4, 5, 9, names};
  PyObject *a[9];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *team = resolve_team(name, a[6], a[7]);
  if (!team) return nullptr;
  Operand target, source, signal;
  u64 offset, signal_offset, value;
  pgas::SignalOp op = pgas::SignalOp::set;
  if (!symmetric_operand(name, "target", a[0], &target, &offset)) return nullptr;
  const i64 pe = target_pe(name, a[4], team, target, "target");
  if (pe < 0 || !any_operand(name, "source", a[1], &source, &target)) return nullptr;
  if (!same_dtype(name, target, "target", source, "source") || !same_shape(name, target, "target", source, "source") ||
      !signal_operand(name, a[2], &signal, &signal_offset) || !scalar(name, "value", a[3], DType::u64, &value) ||
      (a[5] && !signal_op(name, a[5], &op)))
    return nullptr;
  if (signal.handle_pe >= 0 && signal.handle_pe != pe)
    return fail(Err::value, name, "signal is a handle on PE %lld, but the data goes to PE %lld",
                static_cast<long long>(signal.handle_pe), static_cast<long long>(pe));
  const Move move(g.state.heaps[pe] + offset, target, source.data, source);
  u64 *where = reinterpret_cast<u64 *>(g.state.heaps[pe] + signal_offset);
  return carry_out(name, move, a[8], [where, op, value] { pgas::raw::signal_update(where, op, value); },
                   {a[0], a[1], a[2], source.owned.p});
}
PyObject *put_signal(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) { return do_put_signal("put_signal", args, n, kw); }
PyObject *put_signal_nbi(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
  return do_put_signal("put_signal_nbi", args, n, kw);
}

PyObject *do_signal(const char *name, pgas::SignalOp op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const names[] = {"signal", "value", "pe", "team", "ctx", "stream"};
  const Signature signature = {name, 2, 3, 6, names};
  PyObject *a[6];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *team = resolve_team(name, a[3], a[4]);
  if (!team) return nullptr;
  Operand signal;
  u64 offset, value;
  if (!signal_operand(name, a[0], &signal, &offset)) return nullptr;
  const i64 pe = target_pe(name, a[2], team, signal, "signal");
  if (pe < 0 || !scalar(name, "value", a[1], DType::u64, &value)) return nullptr;
  u64 *where = reinterpret_cast<u64 *>(g.state.heaps[pe] + offset);
  if (a[5]) {
    std::shared_ptr<cpu::Stream> stream;
    if (!stream_argument(name, a[5], &stream)) return nullptr;
    if (stream) {
      enqueue(*stream, [where, op, value] { pgas::raw::signal_update(where, op, value); }, {a[0]});
      Py_RETURN_NONE;
    }
  }
  if (!wait_default(name)) return nullptr;
  pgas::raw::signal_update(where, op, value);
  Py_RETURN_NONE;
}
PyObject *signal_set(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
  return do_signal("signal_set", pgas::SignalOp::set, args, n, kw);
}
PyObject *signal_add(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
  return do_signal("signal_add", pgas::SignalOp::add, args, n, kw);
}

PyObject *do_order(const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static const char *const names[] = {"ctx", "stream"};
  const Signature signature = {name, 0, 1, 2, names};
  PyObject *a[2];
  if (!parse(signature, args, nargs, kwnames, a)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  if (a[0] && !resolve_team(name, nullptr, a[0])) return nullptr;
  // An operation on a stream is complete when the next one starts, so there is nothing to add there.
  if (a[1]) {
    std::shared_ptr<cpu::Stream> stream;
    if (!stream_argument(name, a[1], &stream)) return nullptr;
    if (stream) Py_RETURN_NONE;
  }
  if (!wait_default(name)) return nullptr;
  if (name[0] == 'f') pgas::raw::fence();
  else pgas::raw::quiet();
  Py_RETURN_NONE;
}
PyObject *fence(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) { return do_order("fence", args, n, kw); }
PyObject *quiet(PyObject *, PyObject *const *args, Py_ssize_t n, PyObject *kw) { return do_order("quiet", args, n, kw); }

// world_pe(operation, pe, team) -> world number
PyObject *world_pe(PyObject *, PyObject *args) {
  const char *name;
  PyObject *pe, *team;
  if (!PyArg_ParseTuple(args, "sOO", &name, &pe, &team)) return nullptr;
  PYPGAS_CHECK_ACTIVE(name);
  TeamObject *t = resolve_team(name, team, nullptr);
  const i64 world = t ? resolve_pe(name, pe, t) : -1;
  return world < 0 ? nullptr : PyLong_FromLongLong(world);
}

} // namespace

i64 pe_of(const char *operation, PyObject *pe, const TeamObject *team, const Operand &symmetric, const char *name) {
  return target_pe(operation, pe, team, symmetric, name);
}

PyMethodDef rma_methods[] = {
    PYPGAS_METHOD("put", put, "put(target, source, pe, *, team=None, ctx=None, stream=None)\n--\n\n"
      "Copy `source`, any array, to the symmetric array `target` as PE `pe` has it.\n\n"
      "Shapes and dtypes must be equal; any strides. Returns when `source` may be reused. `target` may be a remote\n"
      "handle `x.at(pe)[...]`, which carries its PE. Delivery is complete after `quiet` or a barrier.\n\n"
      "Raises NotSymmetricError, StaleArrayError, InvalidPEError, InvalidTypeError (dtypes), InvalidValueError (shapes)\n"
      "before anything moves. OpenSHMEM 1.6, SHMEM_PUT."),
    PYPGAS_METHOD("put_nbi", put_nbi, "put_nbi(target, source, pe, *, team=None, ctx=None, stream=None)\n--\n\n"
      "Like `put`, but `source` must not be changed before `quiet`. OpenSHMEM 1.6, SHMEM_PUT_NBI."),
    PYPGAS_METHOD("get", get, "get(target, source, pe, *, team=None, ctx=None, stream=None)\n--\n\n"
      "Copy the symmetric array `source`, as PE `pe` has it, into `target`, any writable array of this PE.\n\n"
      "Shapes and dtypes must be equal; any strides. Raises as `put`. OpenSHMEM 1.6, SHMEM_GET."),
    PYPGAS_METHOD("get_nbi", get_nbi, "get_nbi(target, source, pe, *, team=None, ctx=None, stream=None)\n--\n\n"
      "Like `get`, but `target` holds the data only after `quiet`. OpenSHMEM 1.6, SHMEM_GET_NBI."),
    PYPGAS_METHOD("p", p, "p(target, value, pe, *, team=None, ctx=None, stream=None)\n--\n\n"
      "Store one value in the one-element symmetric `target` at PE `pe`, as a single store. OpenSHMEM 1.6, SHMEM_P."),
    PYPGAS_METHOD("g", get_one, "g(source, pe, *, team=None, ctx=None)\n--\n\n"
      "Read the one element of the symmetric `source` at PE `pe`: a NumPy scalar. OpenSHMEM 1.6, SHMEM_G."),
    PYPGAS_METHOD("iput", iput, "iput(target, source, tst, sst, nelems, pe, *, team=None, ctx=None, stream=None)\n--\n\n"
      "Copy every `sst`-th element of `source` to every `tst`-th of `target` at PE `pe`, `nelems` in all.\n\n"
      "Strides count elements and are at least 1; elements between stay as they are. OpenSHMEM 1.6, SHMEM_IPUT."),
    PYPGAS_METHOD("iget", iget, "iget(target, source, tst, sst, nelems, pe, *, team=None, ctx=None, stream=None)\n--\n\n"
      "Copy every `sst`-th element of `source` at PE `pe` to every `tst`-th of `target`, `nelems` in all.\n\n"
      "OpenSHMEM 1.6, SHMEM_IGET."),
    PYPGAS_METHOD("put_signal", put_signal, "put_signal(target, source, signal, value, pe, *, op=SIGNAL_SET, team=None, ctx=None, stream=None)\n--\n\n"
      "`put`, then update the uint64 `signal` at the same PE: set to `value`, or add it (`op=SIGNAL_ADD`).\n\n"
      "Whoever sees the signal by a wait or test sees the data; nothing is said of earlier puts without `fence`.\n"
      "OpenSHMEM 1.6, SHMEM_PUT_SIGNAL."),
    PYPGAS_METHOD("put_signal_nbi", put_signal_nbi, "put_signal_nbi(target, source, signal, value, pe, *, op=SIGNAL_SET, team=None, ctx=None, stream=None)\n--\n\n"
      "Like `put_signal`, but `source` must not be changed before `quiet`. OpenSHMEM 1.6, SHMEM_PUT_SIGNAL_NBI."),
    PYPGAS_METHOD("signal_set", signal_set, "signal_set(signal, value, pe, *, team=None, ctx=None, stream=None)\n--\n\n"
      "Set the uint64 `signal` at PE `pe`. OpenSHMEM 1.6, SHMEM_SIGNAL_SET."),
    PYPGAS_METHOD("signal_add", signal_add, "signal_add(signal, value, pe, *, team=None, ctx=None, stream=None)\n--\n\n"
      "Add to the uint64 `signal` at PE `pe`, modulo 2**64. OpenSHMEM 1.6, SHMEM_SIGNAL_ADD."),
    PYPGAS_METHOD("fence", fence, "fence(ctx=None, *, stream=None)\n--\n\n"
      "Order this PE's earlier puts, atomics and signals before its later ones, per target PE. OpenSHMEM 1.6, SHMEM_FENCE."),
    PYPGAS_METHOD("quiet", quiet, "quiet(ctx=None, *, stream=None)\n--\n\n"
      "Complete all of this PE's operations on the context: they are visible to every PE. OpenSHMEM 1.6, SHMEM_QUIET."),
    {"world_pe", world_pe, METH_VARARGS, "World number of a team's PE."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace native
