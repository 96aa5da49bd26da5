# SPDX-License-Identifier: Apache-2.0
"""Noticing symmetric allocations that a test leaves behind."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

import pypgas as pg

__all__ = ["HeapWatch"]


class HeapWatch:
    """Compares what is allocated with what is known to stay.

    An allocation is known by where it lies: its offset, size and call site.
    """

    def __init__(self) -> None:
        self._allowed: set[str] = set()

    def begin(self) -> None:
        """Accept everything that is allocated now."""
        self._allowed = _allocations()

    @contextlib.contextmanager
    def allowing(self, lasting: bool) -> Iterator[None]:
        """Accept what is allocated inside the block, if ``lasting``."""
        if not lasting:
            yield
            return
        before = _allocations()
        yield
        self._allowed |= _allocations() - before

    def suspect(self) -> bool:
        """Whether something is allocated that a test may have left behind."""
        return not _allocations() <= self._allowed

    def sweep(self) -> list[str]:
        """Collect garbage together with all other PEs (collective); what is left after that."""
        gc.collect()
        # Arrays dropped on all PEs are published at one barrier and released by the next.
        pg.barrier_all()
        pg.barrier_all()
        now = _allocations()
        leaks = sorted(now - self._allowed)
        self._allowed &= now
        self._allowed |= now  # reported once
        return leaks


def _allocations() -> set[str]:
    return {str(allocation) for allocation in pg.heap_statistics().live}
