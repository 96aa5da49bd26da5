# SPDX-License-Identifier: Apache-2.0
"""Turning what callers pass (lists, scalars, arrays of other libraries) into NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import InvalidTypeError, InvalidValueError

__all__ = ["as_array", "pe_prefix"]


def pe_prefix() -> str:
    """``"PE <n>: "`` for messages, empty where no runtime is live."""
    return f"PE {_native.my_pe()}: " if _native.is_active() else ""


def as_array(obj: Any, dtype: npt.DTypeLike | None, operation: str, name: str) -> npt.NDArray[Any]:
    """Return ``obj`` as a contiguous array of ``dtype``, or of its own dtype if that is ``None``.

    Arrays are cast where the cast is of the same kind; Python numbers are cast where they fit.
    No copy is made of what needs none.

    Raises:
        InvalidTypeError: ``obj`` is no array, or the cast loses its kind (float to int, say).
        InvalidValueError: a Python number does not fit the dtype.
    """
    if dtype is None and type(obj) is np.ndarray and obj.flags.c_contiguous:
        return obj  # the usual case, and on the path of every collective
    where = f"{pe_prefix()}{operation}: {name}"
    try:
        if (
            hasattr(obj, "__dlpack__")
            and not isinstance(obj, (np.ndarray, np.generic))
            and not hasattr(obj, "__array__")
        ):
            found = np.from_dlpack(obj)
        else:
            found = np.asarray(obj)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise InvalidTypeError(f"{where} can't be used as an array: {error}") from error
    if found.dtype == object:
        raise InvalidTypeError(f"{where} = {type(obj).__name__} is not an array of numbers")
    if dtype is None:
        return np.ascontiguousarray(found).reshape(found.shape)
    wanted = np.dtype(dtype)
    if found.dtype != wanted:
        found = _cast(obj, found, wanted, where)
    return np.ascontiguousarray(found).reshape(found.shape)


def _cast(obj: Any, found: npt.NDArray[Any], wanted: np.dtype[Any], where: str) -> npt.NDArray[Any]:
    if found.size == 0 and not hasattr(obj, "dtype"):
        return found.astype(wanted)  # an empty list has no type of its own
    weak = not hasattr(obj, "dtype")  # Python numbers adapt to the array they meet, as in NumPy
    integers = found.dtype.kind in "iu" and wanted.kind in "iu"
    # NumPy knows no casting rules for bfloat16; it stands for a floating-point type like float16.
    source = np.dtype("float16") if found.dtype.kind == "V" else found.dtype
    target = np.dtype("float16") if wanted.kind == "V" else wanted
    if not integers and not np.can_cast(source, target, "same_kind"):
        raise InvalidTypeError(
            f"{where} has dtype {found.dtype}, which does not cast to {wanted} without changing its kind"
        )
    if integers and (weak or not np.can_cast(source, target, "same_kind")) and found.size:
        limits = np.iinfo(wanted)
        low, high = int(found.min()), int(found.max())
        if low < limits.min or high > limits.max:
            wrong = low if low < limits.min else high
            raise InvalidValueError(
                f"{where} = {wrong} does not fit in {wanted}, {limits.min} to {limits.max}"
            )
    return found.astype(wanted)
