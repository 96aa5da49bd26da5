# SPDX-License-Identifier: Apache-2.0
"""Symmetric memory as NumPy arrays. Allocating and freeing are collective over all PEs.

An array keeps its block alive; a block whose last array is dropped is released at the next
barrier or allocation, once that is so on every PE (dropping itself communicates nothing).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

import pypgas as pg
from pypgas import _native
from pypgas.errors import DoubleFreeError, InvalidTypeError, InvalidValueError, StaleArrayError
from pypgas.shmem._operands import Array

Shape: TypeAlias = int | Sequence[int]


class FreedError(DoubleFreeError, KeyError):
    """Memory was freed before. Also a ``KeyError``, which shmem4py raises here."""

    __str__ = Exception.__str__  # KeyError's would show the message's repr


def alloc(
    count: int,
    size: int = 1,
    align: int | None = None,
    hints: int | None = None,
    clear: bool = True,
) -> memoryview:
    """Return ``count * size`` bytes of symmetric memory.

    Args:
        count: number of elements.
        size: bytes of one element.
        align: alignment in bytes, a power of two; 64 if ``None``.
        hints: a :class:`MALLOC` combination; accepted for compatibility.
        clear: fill with zeros.

    Raises:
        HeapExhaustedError: the heap has no such block (a ``MemoryError``).
    """
    nbytes = count * size
    make = pg.zeros if clear else pg.empty
    # A block of zero bytes takes one, so that it has an address to be freed by.
    block: Array = make(max(nbytes, 1), np.uint8, align=align).local
    return block.data[:nbytes]


def free(mem: memoryview | Array) -> None:
    """Free a block of symmetric memory, given any array or buffer that begins with it.

    Raises:
        FreedError: it was freed before (a ``KeyError``).
        NotSymmetricError: it is not the beginning of a block of symmetric memory.
    """
    if isinstance(mem, memoryview):
        # The slice of an empty block has no address; the array it was cut from has.
        mem = mem.obj if isinstance(mem.obj, np.ndarray) else np.asarray(mem)
    if not isinstance(mem, np.ndarray):
        raise InvalidTypeError(
            f"PE {pg.my_pe()}: free takes an array or a memoryview, not {type(mem).__name__}"
        )
    try:
        pg.free(mem)
    except StaleArrayError as error:
        raise FreedError(str(error)) from error


def fromalloc(
    mem: memoryview,
    shape: Shape | None = None,
    dtype: npt.DTypeLike | None = None,
    order: Literal["C", "F"] = "C",
) -> Array:
    """Return the memory of :func:`alloc` as an array.

    Args:
        mem: the memory.
        shape: the array's shape; one dimension of all that fits if ``None``.
        dtype: the array's dtype; float64 if ``None``.
        order: ``"C"`` or ``"F"``, the order of the elements in memory.

    Raises:
        InvalidValueError: the memory is too small.
    """
    if not isinstance(mem, memoryview):
        raise InvalidTypeError(f"PE {pg.my_pe()}: fromalloc takes a memoryview, not {type(mem).__name__}")
    dtype = np.dtype(float if dtype is None else dtype)
    if shape is None:
        shape = mem.nbytes // dtype.itemsize
    needed = _elements(shape) * dtype.itemsize
    if needed > mem.nbytes:
        raise InvalidValueError(
            f"PE {pg.my_pe()}: an array of shape {shape} and dtype {dtype} takes {needed} bytes, "
            f"the memory has {mem.nbytes}"
        )
    base = mem.obj if isinstance(mem.obj, np.ndarray) else np.asarray(mem)
    return np.ndarray(shape, dtype, buffer=base, order=order)


def new_array(
    shape: Shape,
    dtype: npt.DTypeLike = float,
    order: Literal["C", "F"] = "C",
    *,
    align: int | None = None,
    hints: int | None = None,
    clear: bool = True,
) -> Array:
    """Return a new array in symmetric memory, zeros if ``clear``. See :func:`alloc`."""
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise InvalidTypeError(f"PE {pg.my_pe()}: symmetric memory cannot hold Python objects")
    mem = alloc(_elements(shape), dtype.itemsize, align, hints, clear)
    return fromalloc(mem, shape, dtype, order)


def del_array(a: Array) -> None:
    """Free an array. See :func:`free`."""
    if not isinstance(a, np.ndarray):
        raise InvalidTypeError(f"PE {pg.my_pe()}: del_array takes an array")
    free(a)


def array(
    obj: Any,
    dtype: npt.DTypeLike | None = None,
    *,
    order: Literal["K", "A", "C", "F"] = "K",
    align: int | None = None,
    hints: int | None = None,
) -> Array:
    """Return a new array in symmetric memory with the contents of ``obj`` on each PE.

    ``dtype`` and ``order`` are those of :func:`numpy.array`. The shape and the dtype must be
    the same on all PEs, the contents need not.
    """
    source = np.asarray(obj, dtype, order=order)
    flat = new_array(source.size, source.dtype, align=align, hints=hints, clear=False)
    # A dense array in any axis order is a transposed C-ordered one; "K" keeps that order.
    axes = sorted(range(source.ndim), key=lambda axis: -abs(source.strides[axis]))
    dense = flat.reshape([source.shape[axis] for axis in axes])
    result: Array = dense.transpose(np.argsort(axes)) if axes else dense
    np.copyto(result, source, casting="no")
    pg.sync_all()
    return result


def empty(
    shape: Shape,
    dtype: npt.DTypeLike = float,
    order: Literal["C", "F"] = "C",
    *,
    align: int | None = None,
    hints: int | None = None,
) -> Array:
    """Return a new array in symmetric memory with undefined contents. See :func:`alloc`."""
    return new_array(shape, dtype, order, align=align, hints=hints, clear=False)


def zeros(
    shape: Shape,
    dtype: npt.DTypeLike = float,
    order: Literal["C", "F"] = "C",
    *,
    align: int | None = None,
    hints: int | None = None,
) -> Array:
    """Return a new array of zeros in symmetric memory. See :func:`alloc`."""
    return new_array(shape, dtype, order, align=align, hints=hints, clear=True)


def ones(
    shape: Shape,
    dtype: npt.DTypeLike = float,
    order: Literal["C", "F"] = "C",
    *,
    align: int | None = None,
    hints: int | None = None,
) -> Array:
    """Return a new array of ones in symmetric memory. See :func:`alloc`."""
    return full(shape, 1, dtype, order, align=align, hints=hints)


def full(
    shape: Shape,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: Literal["C", "F"] = "C",
    *,
    align: int | None = None,
    hints: int | None = None,
) -> Array:
    """Return a new array in symmetric memory filled with ``fill_value``.

    The dtype is that of ``fill_value`` if ``None``. See :func:`alloc`.
    """
    if dtype is None:
        dtype = np.asarray(fill_value).dtype
    a = new_array(shape, dtype, order, align=align, hints=hints, clear=False)
    np.copyto(a, np.asarray(fill_value), casting="unsafe")
    pg.sync_all()
    return a


def ptr(target: Array, pe: int) -> Array | None:
    """Return PE ``pe``'s instance of a symmetric array as an array for loads and stores.

    The result has the shape, strides and dtype of ``target``, and is read-only if that is.
    ``None`` if the memory of ``pe`` is not mapped into this process.
    """
    if not isinstance(target, np.ndarray):
        raise InvalidTypeError(f"PE {pg.my_pe()}: ptr takes an array, not {type(target).__name__}")
    block = _block(target)
    theirs = _native.peer_array(block, pe)
    if theirs is None:
        return None
    offset = _address(target) - _address(block)
    view: Array = np.ndarray(target.shape, target.dtype, theirs, offset, target.strides)
    view.flags.writeable = target.flags.writeable
    return view


def addr_accessible(addr: Array, pe: int) -> bool:
    """Return whether PE ``pe`` has an instance of this array that can be reached from here."""
    if not isinstance(addr, np.ndarray):
        raise InvalidTypeError(f"PE {pg.my_pe()}: addr_accessible takes an array")
    return pe_accessible(pe) and pg.is_symmetric(_block(addr))


def pe_accessible(pe: int) -> bool:
    """Return whether ``pe`` is the number of a PE that can be reached from here."""
    return 0 <= pe < pg.n_pes()


def _block(array: Array) -> Array:
    """Return the array of bytes that an array of symmetric memory is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _elements(shape: Shape) -> int:
    return math.prod(shape) if isinstance(shape, Sequence) else int(shape)
