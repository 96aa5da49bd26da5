# SPDX-License-Identifier: Apache-2.0
"""The offset allocator against a model that keeps a plain list of live ranges."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
)

from pypgas.memory.allocator import OffsetAllocator, OutOfSpace

SIZE = 64 * 64
UNIT = 64


class AgainstModel(RuleBasedStateMachine):
    """Two allocators that make the same calls, and the live ranges as a dictionary."""

    live = Bundle("live")

    def __init__(self) -> None:
        super().__init__()
        self.one = OffsetAllocator(SIZE)
        self.other = OffsetAllocator(SIZE)
        self.ranges: dict[int, int] = {}  # offset -> end
        self.highest = 0

    def gaps(self) -> list[tuple[int, int]]:
        gaps, at = [], 0
        for start, end in sorted(self.ranges.items()):
            if start > at:
                gaps.append((at, start))
            at = end
        return [*gaps, (at, SIZE)] if at < SIZE else gaps

    @rule(
        target=live,
        nbytes=st.integers(0, 1500),
        align=st.sampled_from([1, 8, 64, 128, 512, 2048]),
    )
    def allocate(self, nbytes: int, align: int) -> object:
        need = -(-max(nbytes, 1) // UNIT) * UNIT
        fits = [(start, end) for start, end in self.gaps() if -(-start // align) * align + need <= end]
        if not fits:
            with pytest.raises(OutOfSpace) as caught:
                self.one.allocate(nbytes, align)
            error = caught.value
            assert error.size == need
            assert error.free == sum(end - start for start, end in self.gaps())
            assert error.largest == max((end - start for start, end in self.gaps()), default=0)
            with pytest.raises(OutOfSpace):
                self.other.allocate(nbytes, align)
            return multiple()
        offset = self.one.allocate(nbytes, align)
        assert self.other.allocate(nbytes, align) == offset, "PEs would disagree"
        assert offset % max(align, UNIT) == 0
        assert any(start <= offset and offset + need <= end for start, end in fits)
        if align <= UNIT:
            best = min(end - start for start, end in fits)
            assert offset == min(start for start, end in fits if end - start == best)
        self.ranges[offset] = offset + need
        self.highest = max(self.highest, offset + need)
        return offset

    @rule(offset=consumes(live))
    def free(self, offset: int) -> None:
        assert self.one.block_size(offset) == self.ranges.pop(offset) - offset
        self.one.free(offset)
        self.other.free(offset)
        with pytest.raises(KeyError):
            self.one.free(offset)

    @precondition(lambda self: self.ranges)
    @rule(offset=st.integers(-1, SIZE))
    def free_unknown(self, offset: int) -> None:
        if offset not in self.ranges:
            with pytest.raises(KeyError):
                self.one.free(offset)

    @invariant()
    def statistics_match(self) -> None:
        gaps = self.gaps()
        now = self.one.statistics()
        assert now == self.other.statistics()
        assert now.size == SIZE
        assert now.used == sum(end - start for start, end in self.ranges.items())
        assert now.free == SIZE - now.used
        assert now.n_live == len(self.ranges) == len(self.one)
        assert now.n_free_blocks == len(gaps), "free neighbours were not joined"
        assert now.largest_free == max((end - start for start, end in gaps), default=0)
        assert 0.0 <= now.fragmentation < 1.0
        assert self.one.high_water == self.highest
        assert all(offset in self.one for offset in self.ranges)


AgainstModel.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestAgainstModel = AgainstModel.TestCase


def test_zero_bytes_give_unique_offsets() -> None:
    allocator = OffsetAllocator(1 << 12)
    offsets = [allocator.allocate(0) for _ in range(8)]
    assert len(set(offsets)) == 8


def test_everything_freed_is_one_block_again() -> None:
    allocator = OffsetAllocator(1 << 20)
    offsets = [allocator.allocate(100 + 37 * i, 1 << (i % 12)) for i in range(200)]
    random.Random(1).shuffle(offsets)
    for offset in offsets:
        allocator.free(offset)
    now = allocator.statistics()
    assert (now.n_free_blocks, now.largest_free, now.used, now.fragmentation) == (1, 1 << 20, 0, 0)
    assert allocator.allocate(1 << 20) == 0


def test_holes_are_used_before_the_untouched_end() -> None:
    allocator = OffsetAllocator(1 << 30)
    blocks = [allocator.allocate(4096) for _ in range(100)]
    mark = allocator.high_water
    for offset in blocks[::2]:
        allocator.free(offset)
    again = [allocator.allocate(4000) for _ in blocks[::2]]
    assert again == blocks[::2]
    assert allocator.high_water == mark


def test_alignment_beyond_the_unit_uses_a_block_that_starts_well() -> None:
    allocator = OffsetAllocator(8192)
    assert allocator.allocate(8192, 4096) == 0


@pytest.mark.parametrize("nbytes", [1 << 40, (1 << 40) + 1, 1 << 80])
def test_too_much_is_refused_with_the_figures(nbytes: int) -> None:
    allocator = OffsetAllocator(1 << 30)
    allocator.allocate(64)
    with pytest.raises(OutOfSpace) as caught:
        allocator.allocate(nbytes)
    assert caught.value.size >= nbytes
    assert caught.value.free == caught.value.largest == (1 << 30) - 64
    assert allocator.statistics().n_live == 1


def test_sizes_beyond_32_bits() -> None:
    allocator = OffsetAllocator(1 << 46)
    first = allocator.allocate(5 << 40)
    second = allocator.allocate(3 << 40, 1 << 30)
    assert first == 0
    assert second == 5 << 40
    assert allocator.high_water == 8 << 40


def test_an_empty_range_refuses_everything() -> None:
    for size in (0, 63):
        allocator = OffsetAllocator(size)
        assert allocator.statistics().size == 0
        with pytest.raises(OutOfSpace):
            allocator.allocate(0)


@pytest.mark.parametrize(("nbytes", "align"), [(-1, 64), (8, 0), (8, -64), (8, 3), (8, 96)], ids=str)
def test_bad_arguments(nbytes: int, align: int) -> None:
    allocator = OffsetAllocator(1 << 12)
    with pytest.raises(ValueError, match=r"negative|power of two"):
        allocator.allocate(nbytes, align)
    assert allocator.statistics().n_live == 0


def test_bad_construction() -> None:
    with pytest.raises(ValueError, match="negative"):
        OffsetAllocator(-1)
    with pytest.raises(ValueError, match="power of two"):
        OffsetAllocator(1 << 12, 48)


@given(st.integers(1, 1 << 50), st.integers(1, 1 << 50))
def test_classes_keep_the_order_of_sizes(one: int, other: int) -> None:
    allocator = OffsetAllocator(0)
    smaller, larger = sorted((one * UNIT, other * UNIT))
    assert allocator._class_of(smaller) <= allocator._class_of(larger)
