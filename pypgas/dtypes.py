# SPDX-License-Identifier: Apache-2.0
"""The element types pypgas computes with, and the enumerations its operations take."""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Any

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
    "find_bfloat16",
    "name_of_code",
]

# The order is that of pgas::DType in device/include/pypgas/types.cuh; bfloat16 stands at `_BFLOAT16`.
_NAMES = (
    *(f"int{bits}" for bits in (8, 16, 32, 64)),
    *(f"uint{bits}" for bits in (8, 16, 32, 64)),
    "bool",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
_NUMPY = {np.dtype(name) for name in _NAMES if name != "bfloat16"}

if TYPE_CHECKING:
    bfloat16: np.dtype[Any]
    DTYPES: tuple[np.dtype[Any], ...]


def __getattr__(name: str) -> Any:
    # NumPy has no bfloat16; the package that brings it takes long to import, and few programs need it.
    if name in ("bfloat16", "DTYPES"):
        import ml_dtypes

        brain: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        if name == "bfloat16":
            return brain
        return tuple(brain if known == "bfloat16" else np.dtype(known) for known in _NAMES)
    raise AttributeError(f"module 'pypgas.dtypes' has no attribute {name!r}")


def find_bfloat16() -> np.dtype[Any] | None:
    """Return bfloat16 if anything has imported it; before that no array can have it."""
    return __getattr__("bfloat16") if "ml_dtypes" in sys.modules else None


def name_of_code(code: int) -> str:
    """Return the name of the type with that code in the device library."""
    return _NAMES[code]


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
        found: np.dtype[Any] = __getattr__("bfloat16") if dtype == "bfloat16" else np.dtype(dtype)
    except TypeError:
        raise InvalidTypeError(f"{operation}: dtype = {dtype!r} is not a NumPy dtype") from None
    if found.isnative and (found in _NUMPY or (found.kind == "V" and found == find_bfloat16())):
        return found
    raise InvalidTypeError(
        f"{operation}: dtype = {found} is not supported; use one of {', '.join(_NAMES)}, in native byte order"
    )
