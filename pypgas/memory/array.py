# SPDX-License-Identifier: Apache-2.0
"""Symmetric arrays: the same array on every PE, at the same place of every PE's heap."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import InvalidTypeError, InvalidValueError
from . import heap
from .remote import RemoteHandle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import EllipsisType

    Index = int | slice | EllipsisType | None | tuple[int | slice | EllipsisType | None, ...]

__all__ = ["SymmetricArray", "basic_index"]


def basic_index(index: Any, what: str) -> tuple[Any, ...]:
    """Return ``index`` as a tuple that gives a view even where NumPy would give a scalar.

    Raises:
        InvalidTypeError: it selects by arrays or masks, which gives no view.
    """
    parts = index if isinstance(index, tuple) else (index,)
    checked: list[Any] = []
    for part in parts:
        if part is None or part is Ellipsis or isinstance(part, slice):
            checked.append(part)
        elif isinstance(part, (bool, np.bool_, np.ndarray, list)) or not hasattr(part, "__index__"):
            raise InvalidTypeError(
                f"{what}: index {part!r} is not an integer, slice, Ellipsis or None; selecting by lists, arrays or masks "
                "gives a copy, which is not symmetric memory. Index .local for that, or use the bulk atomics' index="
            )
        else:
            checked.append(operator.index(part))
    return tuple(checked) if Ellipsis in checked else (*checked, Ellipsis)


class SymmetricArray(_native.ArrayBase):
    """An array that every PE has, at the same offset of its heap.

    Made by `pypgas.zeros` and its like, never by calling the class. Indexing with integers and slices, transposing
    and reshaping give symmetric views; ``local`` is this PE's piece as an ordinary ``numpy.ndarray``.
    """

    __slots__ = ("__weakref__",)

    # ---- layout

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        return self._view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self._view.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from an element to the next, in each dimension."""
        return self._view.strides

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._view.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._view.size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._view.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._view.nbytes

    @property
    def offset(self) -> int:
        """Where element 0 lies in the heap, in bytes; equal on all PEs."""
        start: int = self._view.__array_interface__["data"][0]
        if not self.size:
            return self._allocation.offset
        return start - heap.current("offset").address

    # ---- views

    def _wrap(self, view: npt.NDArray[Any]) -> SymmetricArray:
        return SymmetricArray(view, self._allocation)

    def __getitem__(self, index: Index) -> SymmetricArray:
        return self._wrap(self.local[basic_index(index, "SymmetricArray[...]")])

    def __setitem__(self, index: Index, value: Any) -> None:
        _assign(self.local[basic_index(index, "SymmetricArray[...] =")], value, "SymmetricArray[...] =")

    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[SymmetricArray]:
        return (self[i] for i in range(len(self)))

    @property
    def T(self) -> SymmetricArray:  # noqa: N802 - NumPy's name
        """The view with the dimensions in reverse order."""
        return self._wrap(self.local.T)

    def transpose(self, *axes: int) -> SymmetricArray:
        """Return the view with the dimensions permuted, as `numpy.ndarray.transpose`."""
        return self._wrap(self.local.transpose(*axes))

    def reshape(self, *shape: int | Sequence[int]) -> SymmetricArray:
        """Return a view of another shape.

        Raises:
            InvalidValueError: the sizes differ, or this layout has no such view and NumPy would copy.
        """
        local = self.local
        try:
            view = local.reshape(*shape)  # type: ignore[arg-type]  # one sequence or several ints, as in NumPy
        except ValueError as error:
            raise InvalidValueError(f"reshape: {error}") from None
        if view.size and not np.may_share_memory(view, local):
            raise InvalidValueError(
                f"reshape: an array of shape {self.shape} and strides {self.strides} has no view of shape {view.shape}; "
                "a copy would not be symmetric"
            )
        return self._wrap(view)

    def ravel(self) -> SymmetricArray:
        """Return the one-dimensional view; raises InvalidValueError where that needs a copy."""
        return self.reshape(-1) if self.size else self.reshape(0)

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> SymmetricArray:
        """Return the view without dimensions of length one, as `numpy.ndarray.squeeze`."""
        return self._wrap(self.local.squeeze(axis))

    def view(self, dtype: npt.DTypeLike) -> SymmetricArray:
        """Return the same memory as elements of another dtype, as `numpy.ndarray.view`."""
        return self._wrap(self.local.view(dtype))

    # ---- values

    def fill(self, value: Any) -> None:
        """Set every element of this PE's piece."""
        _assign(self.local[...], value, "fill")

    def numpy(self) -> npt.NDArray[Any]:
        """Return a copy of this PE's piece."""
        return self.local.copy()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        local = self.local
        if copy:
            return local.astype(dtype if dtype is not None else local.dtype, copy=True)
        return local if dtype is None else local.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        return self.local.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.local.__dlpack_device__()
        return int(kind), int(number)

    def torch(self) -> Any:
        """Return this PE's piece as a PyTorch tensor over the same memory."""
        import torch

        return torch.from_dlpack(self)

    # ---- other PEs

    def at(self, pe: int, *, team: Any = None) -> RemoteHandle:
        """Return a handle on this array as PE ``pe`` (of ``team``, the world by default) has it; nothing is read.

        ``x.at(pe)[i:j].get()`` reads, ``x.at(pe)[i:j] = v`` writes.

        Raises:
            InvalidPEError: no such PE.
        """
        return RemoteHandle(self, _native.world_pe("at", pe, team))

    def peer(self, pe: int) -> npt.NDArray[Any] | None:
        """Return PE ``pe``'s piece as an array over its memory itself, or ``None`` if that is not mapped here.

        Loads and stores through it are not ordered by `fence`; use waits, atomics or barriers around them.
        """
        return _native.peer_array(self, pe)

    def free(self) -> None:
        """Release the memory on all PEs (collective, with a barrier on entry); views become stale.

        Raises:
            DoubleFreeError: it was freed before.
            InvalidValueError: this is a view that does not start where the array does.
        """
        heap.current("free").free(self)

    # ---- what an array of many PEs can't be

    def __eq__(self, other: object) -> NoReturn:
        raise InvalidTypeError(
            "SymmetricArray == ...: which PE's piece is meant is not clear; compare x.local (this PE's) "
            "or x.at(pe).get() (another's)"
        )

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise InvalidTypeError("a SymmetricArray has no truth value; test x.local, x.size or `x is None`")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidTypeError(
            "a SymmetricArray can't be pickled or deep-copied: it is memory of this job; pickle x.numpy()"
        )

    def __repr__(self) -> str:
        state = "" if self._allocation.live else ", freed"
        return f"SymmetricArray(shape={self.shape}, dtype={self.dtype}{state})"


def _assign(target: npt.NDArray[Any], value: Any, what: str) -> None:
    from .remote import cast_to

    np.copyto(target, cast_to(value, target, what))
