# SPDX-License-Identifier: Apache-2.0
"""What the OpenSHMEM interface accepts as arrays, and how it reads them.

OpenSHMEM knows flat runs of elements; an array stands for its elements in memory order.
Everything else (is it symmetric, is the PE valid, does the dtype suit the operation) is
checked by the operation that is called.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import pypgas as pg
from pypgas.dtypes import check_dtype
from pypgas.errors import InvalidTypeError, InvalidValueError

Array: TypeAlias = npt.NDArray[Any]


def flat(array: object, *, writable: bool = False) -> Array:
    """Return the elements of a contiguous array (C or Fortran order) as one dimension.

    Raises:
        InvalidTypeError: not a NumPy array (a ``TypeError``).
        InvalidValueError: read-only where ``writable`` is asked, or not contiguous.
    """
    if not isinstance(array, np.ndarray):
        raise InvalidTypeError(
            f"PE {pg.my_pe()}: an operand must be a NumPy array, not {type(array).__name__}"
        )
    flags = array.flags
    if writable and not flags.writeable:
        raise InvalidValueError(f"PE {pg.my_pe()}: the array to be written is read-only")
    if not flags.c_contiguous:
        if not flags.f_contiguous:
            raise InvalidValueError(
                f"PE {pg.my_pe()}: the array is not contiguous; pass a contiguous part, or use iput and iget"
            )
        array = array.T
    return array if array.ndim == 1 else np.asarray(array).reshape(-1)


def single(array: object, *, writable: bool = False) -> Array:
    """Return the one element of an array as a one-element array.

    Raises:
        InvalidValueError: there is not exactly one element.
    """
    one = flat(array, writable=writable)
    if one.size != 1:
        raise InvalidValueError(
            f"PE {pg.my_pe()}: the operation takes an array of one element, not {one.size}"
        )
    return one


def same_dtype(target: Array, source: Array) -> None:
    """Raise InvalidTypeError unless both arrays have one dtype."""
    if target.dtype != source.dtype:
        raise InvalidTypeError(
            f"PE {pg.my_pe()}: target and source must have one dtype, not {target.dtype} and {source.dtype}"
        )


def count(size: int | None, available: int) -> int:
    """Return the number of elements to use: ``size``, or all that are available.

    Raises:
        InvalidTypeError: ``size`` is no integer.
        InvalidValueError: ``size`` is negative or more than there is.
    """
    if size is None:
        return available
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool):
        raise InvalidTypeError(f"PE {pg.my_pe()}: size must be an integer, not {type(size).__name__}")
    if not 0 <= size <= available:
        raise InvalidValueError(
            f"PE {pg.my_pe()}: size is {size}, but the arrays have room for 0 to {available}"
        )
    return int(size)


def strided_count(size: int, stride: int) -> int:
    """Return how many elements a run of ``size`` holds at a stride of 1 or more elements."""
    if not isinstance(stride, (int, np.integer)) or isinstance(stride, bool):
        raise InvalidTypeError(f"PE {pg.my_pe()}: a stride must be an integer, not {type(stride).__name__}")
    if stride < 1:
        raise InvalidValueError(f"PE {pg.my_pe()}: a stride must be at least 1, not {stride}")
    return -(-size // int(stride))


@functools.cache
def has_operations(dtype: np.dtype[Any]) -> bool:
    """Return whether the device library computes with this dtype."""
    try:
        check_dtype("has_operations", dtype)
    except InvalidTypeError:
        return False
    return True


@functools.cache
def _carrier(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype to move elements of ``dtype`` as; ``None`` if it needs no change.

    C's long double, characters and records have no arithmetic in the device library, but can
    be moved: bit for bit, in elements of the same size, or of one byte if no size fits.
    """
    if has_operations(dtype):
        return None
    if dtype.hasobject or dtype.itemsize == 0:
        raise InvalidTypeError(f"PE {pg.my_pe()}: arrays of dtype {dtype} cannot be moved")
    sizes = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}
    return np.dtype(sizes.get(dtype.itemsize, "u1"))


# Character codes of what NumPy shares with the device library: found faster than a dtype is hashed.
_PLAIN = frozenset("?bhilqBHILQefdFD")


def movable(array: Array) -> Array:
    """Return a flat array as a dtype that put, get and the moving collectives accept."""
    dtype = array.dtype
    if dtype.char in _PLAIN and dtype.isnative:
        return array
    carrier = _carrier(array.dtype)
    return array if carrier is None else array.view(carrier)


def movable_strided(array: Array) -> Array:
    """As :func:`movable`, for operations that count in elements.

    Raises:
        InvalidTypeError: no element the device library knows has this size.
    """
    carrier = _carrier(array.dtype)
    if carrier is None:
        return array
    if carrier.itemsize != array.dtype.itemsize:
        raise InvalidTypeError(
            f"PE {pg.my_pe()}: strided operations cannot move elements of {array.dtype}; use put and get"
        )
    return array.view(carrier)


def pair(target: object, source: object, size: int | None) -> tuple[Array, Array]:
    """Return equal runs of a writable target and a source, ready to be moved."""
    to = flat(target, writable=True)
    of = flat(source)
    same_dtype(to, of)
    n = count(size, min(to.size, of.size))
    return movable(to if n == to.size else to[:n]), movable(of if n == of.size else of[:n])
