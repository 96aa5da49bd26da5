# SPDX-License-Identifier: Apache-2.0
"""``tsunami.py --kernel``: time steps and the exchange of borders in one kernel (``tsunami_kernel.cu``)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tsunami_scheme import ShallowWater

import pypgas as pg

SOURCE = Path(__file__).with_name("tsunami_kernel.cu")
BLOCKS = 2  # on the CPU a block is one thread of the system; each takes every BLOCKS-th row
THREADS = 1  # of a block, which on the CPU take turns


class KernelWater:
    """The water over this PE's block, advanced by a kernel that talks to the neighbours itself."""

    def __init__(
        self,
        water: ShallowWater,
        states: pg.SymmetricArray,
        signals: pg.SymmetricArray,
        sides: Iterable[tuple[int, int, int, tuple[slice, slice], tuple[slice, slice]]],
    ) -> None:
        """Prepare the kernel (collective).

        ``sides`` lists, for each neighbour, its PE, its signal that this PE raises, this PE's signal that it
        raises, and where the cells are that it gets: here, and there.
        """
        table = [
            (pe, theirs, mine, y.start, x.start, to_y.start, to_x.start, y.stop - y.start, x.stop - x.start)
            for pe, theirs, mine, (y, x), (to_y, to_x) in sides
        ]
        self.sides = np.array(table, dtype=np.int64).reshape(-1, 9)
        self.still = np.ascontiguousarray(water.still)
        self.simulate = pg.kernel(SOURCE, "simulate")
        self.parts = (
            *(states, water.bed, self.still, water.peak, signals, self.sides),
            *(states[0, 0].size, states.shape[-1], water.rows, water.columns, len(table)),
            *(water.dt, water.per_dx, water.per_dy, water.top_speed),
        )

    def run(self, first: int, last: int) -> None:
        """Take the steps from ``first`` to ``last`` in one launch, and wait for them."""
        self.simulate[BLOCKS, THREADS](first, last, *self.parts, cooperative=True)
        pg.synchronize()
