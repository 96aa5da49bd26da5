# SPDX-License-Identifier: Apache-2.0
"""The symmetric heap of this PE: which blocks exist, where they came from, and how they end.

Every PE makes the same sequence of allocations and releases, so the allocators of all PEs agree on
every offset without talking. Releases come in two ways: ``free()``, a collective call, and garbage
collection, which only marks a block. Marked blocks are released at a later barrier or allocation, once
every PE has marked them (the native gate brings the marks together and calls `Heap.release`).
"""

from __future__ import annotations

import dataclasses
import gc
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _native
from ..errors import DoubleFreeError, HeapExhaustedError, InvalidTypeError, InvalidValueError
from .allocator import OffsetAllocator, OutOfSpace

__all__ = ["Heap", "HeapStatistics", "LiveBlock", "current", "set_current"]

_log = logging.getLogger("pypgas")


@dataclasses.dataclass(frozen=True)
class LiveBlock:
    """An allocation that has not been released.

    Attributes:
        id: Ordinal of the allocation, equal on all PEs.
        offset: Where it starts in the heap, in bytes.
        nbytes: Size asked for, in bytes.
        site: ``"file:line"`` of the call that made it on this PE.
    """

    id: int
    offset: int
    nbytes: int
    site: str


@dataclasses.dataclass(frozen=True)
class HeapStatistics:
    """What the heap of this PE holds.

    Attributes:
        size: Upper limit of the heap, in bytes.
        used: Bytes in live blocks, alignment included.
        free: ``size - used``.
        largest_free: Size of the largest block that can be allocated, in bytes.
        fragmentation: ``1 - largest_free / free``: 0 if the free memory is one block.
        dropped: Arrays this PE has dropped that wait for the other PEs to drop them too.
        live: Every live block, by offset, with the place that allocated it.
    """

    size: int
    used: int
    free: int
    largest_free: int
    fragmentation: float
    dropped: int
    live: tuple[LiveBlock, ...]

    def __str__(self) -> str:
        lines = [
            f"heap of {self.size} bytes: {self.used} used by {len(self.live)} blocks, {self.free} free, "
            f"largest free block {self.largest_free}, fragmentation {self.fragmentation:.2f}"
        ]
        lines += [f"  {b.nbytes} bytes at offset {b.offset}, allocated at {b.site}" for b in self.live]
        return "\n".join(lines)


class Heap:
    """Blocks of the symmetric heap, by the ordinal of their allocation."""

    def __init__(self, size: int, address: int, call_site: Callable[[], str]) -> None:
        self.size = size
        self.address = address
        self._call_site = call_site
        self._allocator = OffsetAllocator(size)
        self._blocks: dict[int, tuple[int, int, str]] = {}  # id: offset, nbytes, site
        self._next_id = 0

    def allocate(self, operation: str, nbytes: int, align: int, *, zeroed: bool) -> _native.Allocation:
        """Allocate a block on every PE (collective); it is usable by peers when this returns.

        Raises:
            HeapExhaustedError: no free block is large enough, on every PE alike.
            CollectiveMismatchError: the PEs did not ask for the same size.
        """
        clean_from = self._allocator.high_water
        offset = self._take(nbytes, align)
        if offset is None:
            gc.collect()  # arrays in reference cycles may be all that stands in the way
            _native.agree(operation, "allocate", None, nbytes, align, None)  # releases what all PEs dropped
            clean_from = self._allocator.high_water
            offset = self._take(nbytes, align)
            if offset is None:
                raise self._exhausted(operation, nbytes)
        try:
            if zeroed and nbytes and offset < clean_from:
                # Memory above the high-water mark was never handed out and is zero without being touched.
                _native.zero(self.address + offset, min(nbytes, clean_from - offset))
            _native.agree(operation, "allocate", None, nbytes, align, None)
        except BaseException:
            self._allocator.free(offset)
            raise
        block = self._next_id
        self._next_id += 1
        self._blocks[block] = (offset, nbytes, self._call_site())
        return _native.allocation(offset, nbytes, block)

    def _take(self, nbytes: int, align: int) -> int | None:
        try:
            return self._allocator.allocate(nbytes, align)
        except OutOfSpace:
            return None

    def _exhausted(self, operation: str, nbytes: int) -> HeapExhaustedError:
        now = self._allocator.statistics()
        biggest = sorted(self._blocks.values(), key=lambda block: -block[1])[:3]
        holders = "; ".join(f"{size} bytes from {site}" for _, size, site in biggest)
        return HeapExhaustedError(
            f"PE {_native.my_pe()}: {operation}: no block of {nbytes} bytes in the symmetric heap: size {self.size}, "
            f"free {now.free}, largest free block {now.largest_free}, {len(self._blocks)} arrays alive"
            + (f" (largest: {holders})" if holders else "")
            + ". Free arrays, or raise the limit with init(heap_size=...) or PYPGAS_HEAP_SIZE"
        )

    def free(self, array: Any) -> None:
        """Release the block of ``array`` on every PE (collective, with a barrier on entry).

        Raises:
            DoubleFreeError: it was freed before.
            InvalidTypeError: ``array`` is not symmetric.
            InvalidValueError: ``array`` is a view that does not start where its allocation does.
        """
        here = f"PE {_native.my_pe()}: free"
        allocation = _native.block_at(array)
        if allocation is None:
            raise InvalidTypeError(f"{here}: {type(array).__name__} is not a symmetric array")
        if not allocation.live:
            raise DoubleFreeError(f"{here}: the array was freed before, or belongs to an earlier runtime")
        view: npt.NDArray[Any] = array if isinstance(array, np.ndarray) else array._view
        start = view.__array_interface__["data"][0] - self.address
        if view.nbytes and start != allocation.offset:
            raise InvalidValueError(
                f"{here}: this is a view that starts {start - allocation.offset} bytes into its array; free the array itself"
            )
        _native.agree("free", "free", None, allocation.id, 0, None)
        _native.end_allocation(allocation)
        self.release([allocation.id])

    def release(self, blocks: list[int]) -> None:
        """Return blocks to the allocator; every PE calls this with the same ids at the same point."""
        for block in blocks:
            offset, _, _ = self._blocks.pop(block)
            self._allocator.free(offset)

    def statistics(self) -> HeapStatistics:
        """Return what the heap holds now. Local, not collective."""
        now = self._allocator.statistics()
        live = tuple(LiveBlock(block, *facts) for block, facts in self._blocks.items())
        return HeapStatistics(
            size=self.size,
            used=now.used,
            free=now.free,
            largest_free=now.largest_free,
            fragmentation=now.fragmentation,
            dropped=_native.garbage_count(),
            live=tuple(sorted(live, key=lambda block: block.offset)),
        )


_current: Heap | None = None


def set_current(heap: Heap | None) -> None:
    """Make ``heap`` the one that `current` returns."""
    global _current
    _current = heap


def current(operation: str) -> Heap:
    """Return the heap of the live runtime.

    Raises:
        NotInitializedError: no runtime is live, or this process is a fork of a PE.
    """
    _native.check(operation)
    assert _current is not None
    return _current
