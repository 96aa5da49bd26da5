# SPDX-License-Identifier: Apache-2.0
"""Handles on other PEs' pieces: nothing is read or written until asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from .array import Index

__all__ = ["RemoteHandle", "cast_to"]


def cast_to(value: Any, target: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    """Return ``value`` with the target's shape and dtype: broadcast, and cast within its kind.

    Raises:
        InvalidTypeError: the cast would change the kind (float to integer, complex to float).
        InvalidValueError: the shape does not broadcast.
    """
    if isinstance(value, np.ndarray) and value.dtype == target.dtype and value.shape == target.shape:
        return value
    result = np.empty(target.shape, target.dtype)
    try:
        np.copyto(result, value, casting="same_kind")
    except TypeError as error:
        source = np.asarray(value)
        if "V" in (source.dtype.kind, target.dtype.kind) and {source.dtype.kind, target.dtype.kind} <= set(
            "Vfiub"
        ):
            np.copyto(result, source, casting="unsafe")  # bfloat16, whose casts NumPy doesn't classify
            if source.dtype.kind == "V" and target.dtype.kind not in "Vf":
                raise InvalidTypeError(
                    f"{what}: bfloat16 does not cast to {target.dtype} without changing its kind"
                ) from None
            return result
        raise InvalidTypeError(f"{what}: {error}") from None
    except ValueError as error:
        raise InvalidValueError(f"{what}: {error}") from None
    except OverflowError as error:
        raise InvalidValueError(f"{what}: {error}") from None
    return result


class RemoteHandle(_native.HandleBase):
    """A view of a symmetric array as one PE has it, made by ``x.at(pe)``.

    ``get()`` (or ``numpy.asarray``) reads, assignment to an index writes, and the handle is a target for `put`,
    `put_signal` and the atomics, which then need no ``pe``.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.array.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.array.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.array.size

    def __getitem__(self, index: Index) -> RemoteHandle:
        return RemoteHandle(self.array[index], self.pe)

    def __setitem__(self, index: Index, value: Any) -> None:
        target = self[index]
        _native.put(target, cast_to(value, target.array.local, "x.at(pe)[...] ="), None)
        _native.quiet()

    def get(self) -> Any:
        """Read the elements: an array of this PE, or a NumPy scalar from a handle on one element."""
        result = np.empty(self.shape, self.dtype)
        _native.get(result, self, None)
        return result[()]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise InvalidValueError(
                "numpy.asarray(x.at(pe), copy=False): reading another PE's memory is a copy"
            )
        return np.asarray(self.get(), dtype)

    def __repr__(self) -> str:
        return f"RemoteHandle(pe={self.pe}, shape={self.shape}, dtype={self.dtype})"

    def _refuse(self, other: object) -> NoReturn:
        raise InvalidTypeError(
            "x.at(pe)[...] += v would read, add and write in three steps, and lose what other PEs do in between; "
            "use pypgas.atomic_add(x[i], v, pe), or x.at(pe)[i] = value"
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = _refuse
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = __imatmul__ = _refuse

    def __eq__(self, other: object) -> NoReturn:
        raise InvalidTypeError("a RemoteHandle is not the data; compare x.at(pe)[...].get()")

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise InvalidTypeError("a RemoteHandle has no truth value; read it with .get()")
