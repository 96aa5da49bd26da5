# SPDX-License-Identifier: Apache-2.0
"""The direct path: the segments of all PEs of a node, mapped side by side into one address range.

A segment is a PE's runtime area (status, synchronisation, staging) followed by its heap. What is
mapped is plain memory: a put is a store, an atomic an instruction.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from .. import _native

__all__ = ["DirectMapping"]

_HUGE_PAGE = 2 << 20


class DirectMapping:
    """Address space for ``n_pes`` segments of ``area_bytes`` + ``heap_bytes`` each.

    Attributes:
        areas: Address of each PE's runtime area here, 0 where it is not mapped.
        heaps: Address of each PE's heap here, 0 where it is not mapped.
        segment_bytes: Size of one segment.
    """

    def __init__(self, n_pes: int, area_bytes: int, heap_bytes: int) -> None:
        # Heaps start on a huge-page boundary relative to their segment, so that they can use huge pages.
        self._heap_start = -(-area_bytes // _HUGE_PAGE) * _HUGE_PAGE
        self.segment_bytes = self._heap_start + -(-heap_bytes // _HUGE_PAGE) * _HUGE_PAGE
        self.bytes = n_pes * self.segment_bytes
        self.address = _native.reserve(self.bytes)
        self.areas = [0] * n_pes
        self.heaps = [0] * n_pes

    def map(self, descriptors: Mapping[int, int]) -> None:
        """Map the segment of each PE in ``descriptors`` and close the descriptor.

        Raises:
            OSError: a segment can't be mapped; what was mapped stays until `release`.
        """
        for pe, fd in descriptors.items():
            start = self.address + pe * self.segment_bytes
            try:
                _native.map_at(start, fd, self.segment_bytes)
            finally:
                os.close(fd)
            self.areas[pe] = start
            self.heaps[pe] = start + self._heap_start

    def release(self) -> None:
        """Unmap everything. Not to be called once the runtime has taken the mapping over."""
        _native.unmap(self.address, self.bytes)
