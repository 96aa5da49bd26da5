#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""A work queue: PEs take the next piece of work when they are free, and share the best result.

pypgas run -n 4 examples/work_queue.py --limit 100000

The work: which number below a limit has the longest Collatz sequence (n -> n / 2 if even, else
3 n + 1, until 1)? Pieces take unequal time, so nobody gets a fixed share. A counter on PE 0 is the
whole queue: ``atomic_fetch_add`` takes a ticket. The best result is two numbers that belong together,
hence the lock around reading and writing them.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import pypgas as pg

PIECE = 2_000  # numbers taken at a time


def longest(first: int, stop: int) -> tuple[int, int]:
    """Return the length of the longest sequence that starts in a range, and its smallest start."""
    start = np.arange(first, stop)
    value, steps = start.copy(), np.zeros(start.size, dtype="i8")
    active = value > 1
    while active.any():
        steps += active
        value = np.where(active, np.where(value % 2 == 0, value // 2, 3 * value + 1), 1)
        active = value > 1
    best = int(steps.argmax())
    return int(steps[best]), int(start[best])


def work(limit: int) -> tuple[int, int, int]:
    """Search all numbers below the limit; return length, start, and pieces done here (collective)."""
    ticket = pg.zeros((), dtype="i8")  # that of PE 0 counts
    best = pg.zeros(2, dtype="i8")  # length and start, on PE 0
    lock = pg.Lock()
    pg.barrier_all()

    pieces = 0
    while (first := 1 + PIECE * int(pg.atomic_fetch_add(ticket, 1, 0))) < limit:
        length, start = longest(first, min(first + PIECE, limit))
        pieces += 1
        with lock:  # whoever gets it next sees what was put under it
            best_length, best_start = best.at(0)[:].get()
            if (length, -start) > (best_length, -best_start):
                pg.put(best, np.array([length, start]), 0)
    pg.barrier_all()
    length, start = pg.broadcast(best.local.copy(), root=0)
    return int(length), int(start), pieces


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limit", type=int, default=100_000, help="search below this number")
    limit = parser.parse_args().limit
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        length, start, pieces = work(limit)
        shares = pg.gather(np.array([pieces]), root=0)
        good = True
        if me == 0:
            complete = int(shares.sum()) == -(-(limit - 1) // PIECE)
            good = complete and (length, start) == longest(1, limit)
            print(
                f"work queue: below {limit}, {start} takes the most steps, {length}; "
                f"{n} PEs did {shares.ravel().tolist()} pieces: {'correct' if good else 'WRONG'}"
            )
        return 0 if pg.broadcast(int(good), root=0) else 1


if __name__ == "__main__":
    sys.exit(main())
