#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""GUPS, giga-updates per second: random elements of a table spread over all PEs change all the time.

pypgas run -n 4 examples/gups.py --table 65536 --updates 262144

Every PE draws random numbers ``r`` and applies ``table[r % size] ^= r``, wherever that element lives.
The updates are atomic, so none is lost, and an exclusive or undoes itself: the same updates once more
must restore the table exactly.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import pypgas as pg

BATCH = 65_536  # updates per call


def update(table: pg.SymmetricArray, updates: int) -> None:
    """Apply this PE's random updates to the table of all PEs (``table.size`` elements on each)."""
    random = np.random.default_rng([2024, pg.my_pe()])
    for start in range(0, updates, BATCH):
        count = min(BATCH, updates - start)
        values = random.integers(0, 2**64, size=count, dtype="u8")
        where = (values % np.uint64(pg.n_pes() * table.size)).astype("i8")
        pe, index = np.divmod(where, table.size)
        pg.atomic_xor(table, values, pe, index=index)
    pg.barrier_all()  # everybody's updates are complete


def main() -> int:
    options = parse()
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        first = np.arange(me * options.table, (me + 1) * options.table, dtype="u8")
        table = pg.array(first)
        pg.barrier_all()

        start = time.perf_counter()
        update(table, options.updates)
        seconds = time.perf_counter() - start
        changed = pg.reduce(np.count_nonzero(table.local != first), op="sum")

        pg.barrier_all()  # everybody has counted
        update(table, options.updates)
        wrong = pg.reduce(np.count_nonzero(table.local != first), op="sum")

        good = wrong == 0 and changed > 0
        if me == 0:
            rate = n * options.updates / seconds / 1e9
            print(
                f"gups: {n * options.updates} updates of {n * options.table} elements on {n} PEs, "
                f"{rate:.4f} GUPS, {wrong} errors: {'correct' if good else 'WRONG'}"
            )
        return 0 if good else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--table", type=int, default=65_536, help="elements on each PE")
    parser.add_argument("--updates", type=int, default=4 * 65_536, help="updates by each PE")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
