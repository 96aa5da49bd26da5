# SPDX-License-Identifier: Apache-2.0
"""Making and freeing symmetric arrays. All of these are collective over all PEs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _native
from ..dtypes import check_dtype
from ..errors import InvalidTypeError, InvalidValueError
from . import heap
from .array import SymmetricArray
from .heap import HeapStatistics

__all__ = ["alloc", "array", "empty", "free", "full", "heap_statistics", "is_symmetric", "ones", "zeros"]

_DEFAULT_ALIGN = 64  # a cache line
_LARGEST_ALIGN = 1 << 21


def _shape(operation: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    here = f"PE {_native.my_pe()}: {operation}"
    try:
        lengths = (
            tuple(map(operator.index, shape)) if isinstance(shape, Iterable) else (operator.index(shape),)
        )
    except TypeError:
        raise InvalidTypeError(
            f"{here}: shape = {shape!r} is not an integer or a sequence of integers"
        ) from None
    if any(length < 0 for length in lengths):
        raise InvalidValueError(f"{here}: shape = {shape!r} has a negative length")
    return lengths


def _make(
    operation: str,
    shape: int | Sequence[int],
    dtype: Any,
    memory: str,
    align: int | None,
    *,
    zeroed: bool,
) -> SymmetricArray:
    space = heap.current(operation)
    lengths = _shape(operation, shape)
    here = f"PE {_native.my_pe()}: {operation}"
    kind = check_dtype(here, dtype)
    if memory not in ("device", "host"):
        raise InvalidValueError(f"{here}: memory = {memory!r} is not 'device' or 'host'")
    if align is None:
        align = _DEFAULT_ALIGN
    elif not hasattr(align, "__index__"):
        raise InvalidTypeError(f"{here}: align = {align!r} is not an integer")
    elif align < 1 or align & (align - 1) or align > _LARGEST_ALIGN:
        raise InvalidValueError(
            f"{here}: align = {align} is not a power of two between 1 and {_LARGEST_ALIGN}"
        )
    nbytes = kind.itemsize
    for length in lengths:
        nbytes *= length
    allocation = space.allocate(operation, nbytes, max(align, _DEFAULT_ALIGN), zeroed=zeroed)
    return SymmetricArray(_native.local_array(allocation, kind, lengths), allocation)


def empty(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = float,
    *,
    memory: str = "device",
    align: int | None = None,
) -> SymmetricArray:
    """Return a symmetric array whose elements are not set (collective).

    Args:
        shape: Lengths of the dimensions, the same on every PE. Zero lengths are allowed.
        dtype: Element type, see `pypgas.DTYPES`.
        memory: ``"device"`` or ``"host"``; on the CPU both are the same heap.
        align: Alignment of the first element in bytes, a power of two up to 2 MiB; at least 64 is always given.

    Raises:
        HeapExhaustedError: the heap has no block of that size; the message lists what is alive.
        CollectiveMismatchError: the PEs asked for different sizes; raised on every PE.
        InvalidTypeError, InvalidValueError: a bad argument, on the PE that gave it.
    """
    return _make("empty", shape, dtype, memory, align, zeroed=False)


def zeros(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = float,
    *,
    memory: str = "device",
    align: int | None = None,
) -> SymmetricArray:
    """Return a symmetric array of zeros (collective). Memory never used before is not touched. See `empty`."""
    return _make("zeros", shape, dtype, memory, align, zeroed=True)


def ones(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = float,
    *,
    memory: str = "device",
    align: int | None = None,
) -> SymmetricArray:
    """Return a symmetric array of ones (collective). See `empty`."""
    return _filled("ones", shape, 1, dtype, memory, align)


def full(
    shape: int | Sequence[int],
    value: Any,
    dtype: npt.DTypeLike | None = None,
    *,
    memory: str = "device",
    align: int | None = None,
) -> SymmetricArray:
    """Return a symmetric array of ``value``, which may differ between PEs (collective).

    The dtype is that of ``value`` by default. See `empty`.
    """
    return _filled("full", shape, value, np.asarray(value).dtype if dtype is None else dtype, memory, align)


def _filled(
    operation: str, shape: int | Sequence[int], value: Any, dtype: Any, memory: str, align: int | None
) -> SymmetricArray:
    heap.current(operation)
    # Converted before the allocation, so that a value that doesn't fit raises with nothing allocated.
    kind = check_dtype(f"PE {_native.my_pe()}: {operation}", dtype)
    try:
        filling = np.asarray(value).astype(kind) if hasattr(value, "dtype") else np.asarray(value, kind)
        np.broadcast_to(filling, _shape(operation, shape))
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, (InvalidTypeError, InvalidValueError)):
            raise
        raise InvalidValueError(f"PE {_native.my_pe()}: {operation}: value = {value!r}: {error}") from None
    result = _make(operation, shape, dtype, memory, align, zeroed=False)
    result.local[...] = filling
    _native.sync_all()  # peers may read at once
    return result


def array(
    obj: Any, dtype: npt.DTypeLike | None = None, *, memory: str = "device", align: int | None = None
) -> SymmetricArray:
    """Return a symmetric array with this PE's copy of ``obj``: an array, nested lists, or a DLPack object (collective).

    Shape and dtype must be the same on every PE, the values need not. See `empty`.
    """
    heap.current("array")
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        obj = np.from_dlpack(obj)
    try:
        source = np.asarray(obj, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidTypeError(f"PE {_native.my_pe()}: array: {error}") from None
    result = _make("array", source.shape, source.dtype, memory, align, zeroed=False)
    result.local[...] = source
    _native.sync_all()
    return result


def alloc(nbytes: int, align: int = _DEFAULT_ALIGN, *, memory: str = "device") -> SymmetricArray:
    """Return ``nbytes`` of symmetric memory as a uint8 array whose elements are not set (collective). See `empty`."""
    return _make("alloc", nbytes, np.uint8, memory, align, zeroed=False)


def free(array: SymmetricArray | npt.NDArray[Any] | None) -> None:
    """Release a symmetric array on all PEs (collective, with a barrier on entry). ``None`` does nothing.

    ``array`` may be a NumPy array over symmetric memory that starts where the allocation does.

    Raises:
        DoubleFreeError: it was freed before.
        InvalidTypeError: it is not symmetric.
        InvalidValueError: it is a view from further inside.
    """
    if array is not None:
        heap.current("free").free(array)


def is_symmetric(obj: Any) -> bool:
    """Whether ``obj`` is an array wholly in live symmetric memory: a symmetric array or any view of one."""
    return _native.symmetric_offset(obj) is not None


def heap_statistics() -> HeapStatistics:
    """Return size, free memory, largest free block and what is alive in this PE's heap (local)."""
    return heap.current("heap_statistics").statistics()
