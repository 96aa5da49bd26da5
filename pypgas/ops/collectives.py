# SPDX-License-Identifier: Apache-2.0
"""Collectives on scalars, plain arrays and symmetric arrays.

This module decides shapes; moving and combining is done by the device library (``raw/exchange.cuh``). Each function
takes ``team=`` (the world by default), ``out=`` (an array of this PE for the result), ``timeout=`` (seconds) and, where
sizes are known beforehand, ``stream=`` (the result is there when the stream gets there). Every PE of the team must call
it, and it raises

* CollectiveMismatchError on every PE if the PEs' calls, sizes, dtypes, roots or reductions differ,
* WaitTimeoutError or PeerFailedError if somebody does not come,
* InvalidTypeError or InvalidValueError for a bad argument, before anything is exchanged.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _native
from ..core.operands import as_array
from ..core.team import Team
from ..devices.streams import Stream
from ..errors import InvalidPEError, InvalidTypeError, InvalidValueError

__all__ = [
    "alltoall",
    "alltoalls",
    "broadcast",
    "collect",
    "exclusive_scan",
    "fcollect",
    "gather",
    "inclusive_scan",
    "reduce",
    "reduce_scatter",
]

Array = npt.NDArray[Any]
_CODES = {
    name: _native.operation_code(name)
    for name in (
        "broadcast",
        "fcollect",
        "collect",
        "gather",
        "alltoall",
        "reduce",
        "reduce_scatter",
        "inclusive_scan",
        "exclusive_scan",
    )
}


def _source(name: str, x: Any) -> Array:
    """``x`` as a contiguous array; symmetric memory that is contiguous is used as it is."""
    if isinstance(x, _native.ArrayBase):
        x = x.local
    elif isinstance(x, _native.HandleBase):
        raise InvalidTypeError(f"{_here(name)}: x is a remote handle; pass the values, x.at(pe)[...].get()")
    return as_array(x, None, name, "x")


def _here(name: str) -> str:
    return f"PE {_native.my_pe()}: {name}"


def _destination(
    name: str, out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stream: Stream | None = None
) -> tuple[Array, Array | None]:
    """An array to write the result to, and the caller's array if it can't be written directly."""
    if out is None:
        return np.empty(shape, dtype), None
    target = out.local if isinstance(out, _native.ArrayBase) else out
    if not isinstance(target, np.ndarray):
        raise InvalidTypeError(f"{_here(name)}: out must be an array, not {type(out).__name__}")
    if target.dtype != dtype:
        raise InvalidTypeError(f"{_here(name)}: out has dtype {target.dtype}, the result has {dtype}")
    if target.shape != shape:
        raise InvalidValueError(f"{_here(name)}: out has shape {target.shape}, the result has {shape}")
    if not target.flags.writeable:
        raise InvalidValueError(f"{_here(name)}: out is read-only")
    if target.flags.c_contiguous:
        return target, None
    if stream is not None:
        raise InvalidValueError(f"{_here(name)}: on a stream, out must be C-contiguous")
    return np.empty(shape, dtype), target


def _finish(x: Any, result: Array, later: Array | None, out: Any, stream: Stream | None = None) -> Any:
    if later is not None:
        np.copyto(later, result)
    if out is not None:
        return out
    # On a stream the value is not there yet, so even a scalar's result is an array of no dimensions.
    return result[()] if result.ndim == 0 and stream is None else result


def _run(
    name: str,
    team: Team | None,
    source: Array,
    destination: Array,
    timeout: float | None,
    root: int = 0,
    op: str = "sum",
    stream: Stream | None = None,
) -> None:
    _native.collective(name, _CODES[name], team, source, destination, root, op, timeout, stream)


def _root(name: str, root: int, team: Team | None) -> int:
    n = _native.n_pes(team)
    try:
        number = operator.index(root)
    except TypeError:
        raise InvalidTypeError(f"{_here(name)}: root = {root!r} is not an integer") from None
    if not 0 <= number < n:
        raise InvalidPEError(f"{_here(name)}: root = {number} is not in 0..{n - 1}")
    return number


def _blocks(name: str, source: Array, n: int) -> int:
    """Rows of each of the n blocks that dimension 0 is divided into."""
    if source.ndim == 0 or source.shape[0] % n:
        raise InvalidValueError(
            f"{_here(name)}: x has shape {source.shape}; its first dimension must be a multiple of the {n} PEs of the team"
        )
    return int(source.shape[0]) // n


def broadcast(
    x: Any,
    root: int = 0,
    *,
    team: Team | None = None,
    out: Any = None,
    timeout: float | None = None,
    stream: Stream | None = None,
) -> Any:
    """Give every PE the root's ``x``: same shape and dtype everywhere.

    A writable array is overwritten in place and returned; for a scalar or a read-only array, or with ``out``, the
    result is returned and ``x`` left alone. OpenSHMEM 1.6, SHMEM_BROADCAST (team form: the root's result is set too).
    """
    name = "broadcast"
    _native.check(name)
    number = _root(name, root, team)
    source = _source(name, x)
    local = x.local if isinstance(x, _native.ArrayBase) else x
    if out is None and isinstance(local, np.ndarray) and local.flags.writeable:
        out = x
    destination, later = _destination(name, out, source.shape, source.dtype, stream)
    _run(name, team, source, destination, timeout, root=number, stream=stream)
    return _finish(x, destination, later, out, stream)


def fcollect(
    x: Any,
    *,
    team: Team | None = None,
    out: Any = None,
    timeout: float | None = None,
    stream: Stream | None = None,
) -> Any:
    """Concatenate every PE's ``x`` along dimension 0, in team order, on every PE; equal shapes everywhere.

    Scalars give an array with one element for each PE. OpenSHMEM 1.6, SHMEM_FCOLLECT.
    """
    name = "fcollect"
    _native.check(name)
    source = np.atleast_1d(_source(name, x))
    shape = (source.shape[0] * _native.n_pes(team), *source.shape[1:])
    destination, later = _destination(name, out, shape, source.dtype, stream)
    _run(name, team, source, destination, timeout, stream=stream)
    return _finish(x, destination, later, out, stream)


def _lengths(name: str, team: Team | None, source: Array, timeout: float | None) -> list[int]:
    mine = source.shape[0].to_bytes(8, "little")
    # Only dimension 0 may differ: the bytes of a row are part of the call's signature.
    row = math.prod(source.shape[1:])
    everyone = _native.exchange_small(name, name, team, row * source.itemsize, mine, timeout)
    return [int.from_bytes(item, "little") for item in everyone]


def collect(x: Any, *, team: Team | None = None, out: Any = None, timeout: float | None = None) -> Any:
    """Concatenate every PE's ``x`` along dimension 0, in team order, on every PE; lengths may differ, also be 0.

    OpenSHMEM 1.6, SHMEM_COLLECT.
    """
    name = "collect"
    _native.check(name)
    source = np.atleast_1d(_source(name, x))
    total = sum(_lengths(name, team, source, timeout))
    destination, later = _destination(name, out, (total, *source.shape[1:]), source.dtype)
    _run(name, team, source, destination, timeout)
    return _finish(x, destination, later, out)


def gather(
    x: Any, root: int = 0, *, team: Team | None = None, out: Any = None, timeout: float | None = None
) -> Any:
    """Concatenate every PE's ``x`` along dimension 0 at the root, in team order; ``None`` on the other PEs.

    Lengths of dimension 0 may differ, also be 0.
    """
    name = "gather"
    _native.check(name)
    number = _root(name, root, team)
    source = np.atleast_1d(_source(name, x))
    lengths = _lengths(name, team, source, timeout)
    if _native.my_pe(team) != number:
        _run(name, team, source, np.empty(0, source.dtype), timeout, root=number)
        return None
    destination, later = _destination(name, out, (sum(lengths), *source.shape[1:]), source.dtype)
    _run(name, team, source, destination, timeout, root=number)
    return _finish(x, destination, later, out)


def alltoall(
    x: Any,
    *,
    team: Team | None = None,
    out: Any = None,
    timeout: float | None = None,
    stream: Stream | None = None,
) -> Any:
    """Send block ``i`` of dimension 0 to PE ``i``; block ``i`` of the result came from PE ``i``.

    The length of dimension 0 is a multiple of the team's size. OpenSHMEM 1.6, SHMEM_ALLTOALL.
    """
    name = "alltoall"
    _native.check(name)
    source = _source(name, x)
    _blocks(name, source, _native.n_pes(team))
    destination, later = _destination(name, out, source.shape, source.dtype, stream)
    _run(name, team, source, destination, timeout, stream=stream)
    return _finish(x, destination, later, out, stream)


def alltoalls(
    target: Any,
    source: Any,
    tst: int,
    sst: int,
    nelems: int,
    *,
    team: Team | None = None,
    timeout: float | None = None,
) -> None:
    """Exchange ``nelems`` strided elements with every PE of the team.

    Element ``i`` of the block for PE ``p`` is ``source[sst * (p * nelems + i)]``; it arrives in
    ``target[tst * (me * nelems + i)]`` of that PE. Strides count elements, at least 1; both arrays are one-dimensional.
    OpenSHMEM 1.6, SHMEM_ALLTOALLS.
    """
    name = "alltoalls"
    _native.check(name)
    n = _native.n_pes(team)
    read = source.local if isinstance(source, _native.ArrayBase) else np.asarray(source)
    write = target.local if isinstance(target, _native.ArrayBase) else target
    if not isinstance(write, np.ndarray) or write.ndim != 1 or read.ndim != 1:
        raise InvalidTypeError(f"{_here(name)}: target and source must be one-dimensional arrays")
    if write.dtype != read.dtype:
        raise InvalidTypeError(f"{_here(name)}: target has dtype {write.dtype} and source {read.dtype}")
    for label, stride in (("tst", tst), ("sst", sst)):
        if operator.index(stride) < 1:
            raise InvalidValueError(f"{_here(name)}: {label} = {stride} must be at least 1 element")
    if operator.index(nelems) < 0:
        raise InvalidValueError(f"{_here(name)}: nelems = {nelems} must not be negative")
    for label, array, stride in (("target", write, tst), ("source", read, sst)):
        if nelems and array.size <= stride * (n * nelems - 1):
            raise InvalidValueError(
                f"{_here(name)}: {label} has {array.size} elements, {stride * (n * nelems - 1) + 1} are needed for "
                f"{n} blocks of {nelems} with a stride of {stride}"
            )
    if not write.flags.writeable:
        raise InvalidValueError(f"{_here(name)}: target is read-only")
    received = np.empty(n * nelems, read.dtype)
    _run("alltoall", team, np.ascontiguousarray(read[::sst][: n * nelems]), received, timeout)
    write[::tst][: n * nelems] = received


def reduce(
    x: Any,
    op: str = "sum",
    *,
    team: Team | None = None,
    out: Any = None,
    timeout: float | None = None,
    stream: Stream | None = None,
) -> Any:
    """Combine every PE's ``x`` element by element, on every PE; equal shapes and dtypes everywhere.

    Args:
        x: Scalar, array or symmetric array. ``out`` may be the same memory.
        op: ``"sum"``, ``"prod"``, ``"min"``, ``"max"`` (not for complex and bool), ``"and"``, ``"or"``, ``"xor"``
            (integers and bool).

    Values are combined in team order, so every PE gets the same bits. float16 and bfloat16 are accumulated in float32
    and rounded once; integers wrap around; NaN wins in min and max. OpenSHMEM 1.6, SHMEM_REDUCTIONS.
    """
    return _elementwise("reduce", x, op, team, out, timeout, stream)


def inclusive_scan(
    x: Any,
    op: str = "sum",
    *,
    team: Team | None = None,
    out: Any = None,
    timeout: float | None = None,
    stream: Stream | None = None,
) -> Any:
    """Combine the ``x`` of PEs 0 to this one, element by element. See `reduce`. OpenSHMEM 1.6, SHMEM_SUM_INSCAN."""
    return _elementwise("inclusive_scan", x, op, team, out, timeout, stream)


def exclusive_scan(
    x: Any,
    op: str = "sum",
    *,
    team: Team | None = None,
    out: Any = None,
    timeout: float | None = None,
    stream: Stream | None = None,
) -> Any:
    """Combine the ``x`` of the PEs before this one; PE 0 gets zeros. See `reduce`. OpenSHMEM 1.6, SHMEM_SUM_EXSCAN."""
    return _elementwise("exclusive_scan", x, op, team, out, timeout, stream)


def _elementwise(
    name: str, x: Any, op: str, team: Team | None, out: Any, timeout: float | None, stream: Stream | None
) -> Any:
    _native.check(name)
    source = _source(name, x)
    destination, later = _destination(name, out, source.shape, source.dtype, stream)
    _run(name, team, source, destination, timeout, op=op, stream=stream)
    return _finish(x, destination, later, out, stream)


def reduce_scatter(
    x: Any,
    op: str = "sum",
    *,
    team: Team | None = None,
    out: Any = None,
    timeout: float | None = None,
    stream: Stream | None = None,
) -> Any:
    """Combine every PE's ``x`` and return block ``me`` of dimension 0, whose length is a multiple of the team's size.

    See `reduce`.
    """
    name = "reduce_scatter"
    _native.check(name)
    source = _source(name, x)
    rows = _blocks(name, source, _native.n_pes(team))
    shape: Sequence[int] = (rows, *source.shape[1:])
    destination, later = _destination(name, out, tuple(shape), source.dtype, stream)
    _run(name, team, source, destination, timeout, op=op, stream=stream)
    return _finish(x, destination, later, out, stream)
