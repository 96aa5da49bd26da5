# SPDX-License-Identifier: Apache-2.0
"""The element types pypgas computes with, and the enumerations its operations take."""

from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np

from .errors import InvalidTypeError

__all__ = [
    "DTYPES",
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "SIGNAL_ADD",
    "SIGNAL_SET",
    "Compare",
    "SignalOp",
    "bfloat16",
    "check_dtype",
]

bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)

# The order is that of pgas::DType in device/include/pypgas/types.cuh.
DTYPES: tuple[np.dtype[Any], ...] = (
    *(np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)),
    *(np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)),
    np.dtype(bool),
    np.dtype("float16"),
    bfloat16,
    np.dtype("float32"),
    np.dtype("float64"),
    np.dtype("complex64"),
    np.dtype("complex128"),
)


class Compare(enum.Enum):
    """How a wait or test compares a variable with a value: ``variable <op> value``."""

    EQ = "=="
    NE = "!="
    GT = ">"
    GE = ">="
    LT = "<"
    LE = "<="


class SignalOp(enum.Enum):
    """How a signal is updated."""

    SET = "set"
    ADD = "add"


EQ, NE, GT, GE, LT, LE = Compare
SIGNAL_SET, SIGNAL_ADD = SignalOp


def check_dtype(operation: str, dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` as a NumPy dtype that pypgas has operations for.

    Raises:
        InvalidTypeError: it has none; the message lists those that do.
    """
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise InvalidTypeError(f"{operation}: dtype = {dtype!r} is not a NumPy dtype") from None
    if found not in DTYPES or not found.isnative:
        names = ", ".join(known.name for known in DTYPES)
        raise InvalidTypeError(
            f"{operation}: dtype = {found} is not supported; use one of {names}, in native byte order"
        )
    return found
