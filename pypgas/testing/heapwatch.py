# SPDX-License-Identifier: Apache-2.0
"""Noticing symmetric allocations that a test leaves behind."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

import pypgas as pg

__all__ = ["HeapWatch"]


class HeapWatch:
    """Compares what is allocated with what is known to stay."""

    def __init__(self) -> None:
        self._allowed: set[int] = set()  # ordinals of allocations, equal on all PEs

    def begin(self) -> None:
        """Accept everything that is allocated now."""
        self._allowed = _live()

    @contextlib.contextmanager
    def allowing(self, lasting: bool) -> Iterator[None]:
        """Accept what is allocated inside the block, if ``lasting``."""
        before = _live() if lasting else set()
        yield
        if lasting:
            self._allowed |= _live() - before

    def suspect(self) -> bool:
        """Whether something is allocated that a test may have left behind."""
        return not _live() <= self._allowed

    def sweep(self) -> list[str]:
        """Collect garbage together with all other PEs (collective); say what is left after that."""
        gc.collect()
        # Arrays dropped on all PEs are made known before one barrier and released after the next.
        pg.barrier_all()
        pg.barrier_all()
        left = [block for block in pg.heap_statistics().live if block.id not in self._allowed]
        self._allowed = _live()  # each is reported once
        return [f"{block.nbytes} bytes allocated at {block.site}" for block in left]


def _live() -> set[int]:
    if not pg.is_initialized():
        return set()  # a test finalized the runtime, which another complaint will be about
    return {block.id for block in pg.heap_statistics().live}
