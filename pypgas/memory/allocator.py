# SPDX-License-Identifier: Apache-2.0
"""Dividing the symmetric heap: offsets only, no memory is touched here.

Every PE runs its own allocator and makes the same calls in the same order, so all must come to
the same offsets. Nothing here depends on addresses, hashes, time or random numbers.

The policy is best fit, the lowest offset among equals, with free neighbours joined at once. It
keeps the untouched end of the heap whole for as long as holes below can serve, so that memory
beyond the high-water mark need not exist yet.

Free blocks are kept in size classes, each power of two divided into eight, and sorted within
their class. A bit mask of the classes in use finds the next larger one. An allocation costs two
binary searches and a short move within one class, and freeing is the same after two dictionary
lookups for the neighbours.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, insort
from collections.abc import Iterator

__all__ = ["AllocatorStatistics", "OffsetAllocator", "OutOfSpace"]

_CLASS_BITS = 3  # a power of two is divided into 2**3 classes


class OutOfSpace(Exception):  # noqa: N818 - a condition the heap turns into its own error
    """No free block can hold the request.

    Attributes:
        size: Bytes that were asked for, rounded up to whole units.
        free: Bytes that are free in all.
        largest: Bytes of the largest free block.
    """

    def __init__(self, size: int, free: int, largest: int) -> None:
        super().__init__(f"{size} bytes asked for, {free} free, {largest} in the largest block")
        self.size = size
        self.free = free
        self.largest = largest


@dataclasses.dataclass(frozen=True)
class AllocatorStatistics:
    """State of an `OffsetAllocator`; all sizes are in bytes.

    Attributes:
        size: The whole range.
        used: In live blocks, their rounding included.
        free: ``size - used``.
        largest_free: In the largest free block.
        n_live: Number of live blocks.
        n_free_blocks: Number of free blocks; no two of them touch.
    """

    size: int
    used: int
    free: int
    largest_free: int
    n_live: int
    n_free_blocks: int

    @property
    def fragmentation(self) -> float:
        """Share of the free bytes outside the largest free block: 0 (none) to 1."""
        return 1.0 - self.largest_free / self.free if self.free else 0.0


class OffsetAllocator:
    """Hands out disjoint ranges of ``0 … size - 1``.

    Args:
        size: Bytes in all; what exceeds a multiple of ``min_align`` is not used.
        min_align: Power of two to which offsets and block sizes are rounded.

    Raises:
        ValueError: ``size`` is negative or ``min_align`` is no power of two.
    """

    def __init__(self, size: int, min_align: int = 64) -> None:
        if size < 0:
            raise ValueError(f"size {size} is negative")
        _check_power_of_two(min_align, "min_align")
        self._unit = min_align
        self._size = size - size % min_align
        self._used = 0
        self._high_water = 0
        self._live: dict[int, int] = {}  # offset -> bytes
        self._free_at: dict[int, int] = {}  # offset -> bytes
        self._free_to: dict[int, int] = {}  # end -> offset
        # Entries of a class are (bytes << shift | offset): one integer sorts by size, then offset.
        self._shift = self._size.bit_length()
        self._classes: dict[int, list[int]] = {}
        self._in_use = 0  # bit c: class c has entries
        if self._size:
            self._insert(0, self._size)

    @property
    def high_water(self) -> int:
        """Offset at and above which nothing was ever handed out."""
        return self._high_water

    def allocate(self, nbytes: int, align: int = 64) -> int:
        """Return the offset of a block of at least ``nbytes`` bytes.

        A request of 0 bytes takes the smallest block, so that every live offset is unique.

        Args:
            nbytes: Bytes wanted.
            align: Power of two that divides the offset.

        Raises:
            OutOfSpace: no free block can hold it; nothing has changed.
            ValueError: ``nbytes`` is negative or ``align`` is no power of two.
        """
        if nbytes < 0:
            raise ValueError(f"nbytes {nbytes} is negative")
        _check_power_of_two(align, "align")
        need = -(-max(nbytes, 1) // self._unit) * self._unit
        found = self._find(need, align)
        if found is None:
            statistics = self.statistics()
            raise OutOfSpace(need, statistics.free, statistics.largest_free)
        start, length = found
        offset = -(-start // align) * align
        end = offset + need
        self._remove(start, length)
        if offset > start:
            self._insert(start, offset - start)
        if end < start + length:
            self._insert(end, start + length - end)
        self._live[offset] = need
        self._used += need
        self._high_water = max(self._high_water, end)
        return offset

    def free(self, offset: int) -> None:
        """Give back the block at ``offset``.

        Raises:
            KeyError: no live block starts there; nothing has changed.
        """
        length = self._live.pop(offset)
        self._used -= length
        start, end = offset, offset + length
        below = self._free_to.get(start)
        if below is not None:
            self._remove(below, start - below)
            start = below
        above = self._free_at.get(end)
        if above is not None:
            self._remove(end, above)
            end += above
        self._insert(start, end - start)

    def block_size(self, offset: int) -> int:
        """Return the bytes of the live block at ``offset``.

        Raises:
            KeyError: no live block starts there.
        """
        return self._live[offset]

    def statistics(self) -> AllocatorStatistics:
        """Return the present state."""
        largest = 0
        if self._in_use:
            largest = self._classes[self._in_use.bit_length() - 1][-1] >> self._shift
        return AllocatorStatistics(
            size=self._size,
            used=self._used,
            free=self._size - self._used,
            largest_free=largest,
            n_live=len(self._live),
            n_free_blocks=len(self._free_at),
        )

    def __len__(self) -> int:
        """Number of live blocks."""
        return len(self._live)

    def __contains__(self, offset: int) -> bool:
        """Whether a live block starts at ``offset``."""
        return offset in self._live

    def _find(self, need: int, align: int) -> tuple[int, int] | None:
        """Return (offset, bytes) of the free block to cut the request from."""
        if align <= self._unit:
            return next(self._blocks_from(need), None)
        # Any block of this size has an aligned range of `need` bytes wherever it starts.
        found = next(self._blocks_from(need + align - self._unit), None)
        if found is not None:
            return found
        # Before refusing, try the smaller ones that happen to start well.
        for start, length in self._blocks_from(need):
            if -(-start // align) * align + need <= start + length:
                return start, length
        return None

    def _blocks_from(self, need: int) -> Iterator[tuple[int, int]]:
        """Yield (offset, bytes) of the free blocks of at least ``need`` bytes, best fit first."""
        number = self._class_of(need)
        mask = (1 << self._shift) - 1
        entries = self._classes.get(number, [])
        position = bisect_left(entries, need << self._shift)
        while True:
            for index in range(position, len(entries)):
                yield entries[index] & mask, entries[index] >> self._shift
            larger = self._in_use >> (number + 1)
            if not larger:
                return
            number += (larger & -larger).bit_length()
            entries, position = self._classes[number], 0

    def _class_of(self, length: int) -> int:
        units = length // self._unit
        power = units.bit_length()
        if power <= _CLASS_BITS:
            return units
        step = power - 1 - _CLASS_BITS
        return (step << _CLASS_BITS) + (units >> step)

    def _insert(self, offset: int, length: int) -> None:
        self._free_at[offset] = length
        self._free_to[offset + length] = offset
        number = self._class_of(length)
        insort(self._classes.setdefault(number, []), length << self._shift | offset)
        self._in_use |= 1 << number

    def _remove(self, offset: int, length: int) -> None:
        del self._free_at[offset]
        del self._free_to[offset + length]
        number = self._class_of(length)
        entries = self._classes[number]
        del entries[bisect_left(entries, length << self._shift | offset)]
        if not entries:
            self._in_use &= ~(1 << number)


def _check_power_of_two(value: int, name: str) -> None:
    if value <= 0 or value & (value - 1):
        raise ValueError(f"{name} {value} is not a power of two")
