# SPDX-License-Identifier: Apache-2.0
"""The time of an allocation and its release with 10 and with 10,000 arrays alive.

    pypgas run -n 2 benchmarks/jobs/allocation.py RESULT.json

A tenth of what was allocated is freed again before, at random, so that the heap has holes.
"""

from __future__ import annotations

import random
import sys
import time

from record import record

import pypgas as pg
from pypgas.bench.timing import ratio

FEW, MANY = 10, 10_000
TRIALS = 5
ROUNDS = 200


def populate(keep: list[pg.SymmetricArray], count: int, rng: random.Random) -> None:
    """Grow or shrink to ``count`` live arrays of differing sizes."""
    while len(keep) < count + count // 10:
        keep.append(pg.empty(rng.randint(1, 200), "u1"))
    rng.shuffle(keep)
    while len(keep) > count:
        keep.pop().free()


def round_time() -> float:
    """Lower quartile, in seconds, of ``empty`` and ``free``: the fast rounds are those in which nobody waited for a core."""
    times = []
    for nbytes in range(ROUNDS):
        start = time.perf_counter()
        pg.empty(1 + nbytes, "u1").free()
        times.append(time.perf_counter() - start)
    return float(pg.broadcast(sorted(times)[ROUNDS // 4]))


def main() -> None:
    with pg.init(heap_size="1G"):
        rng = random.Random(1)  # the same on every PE
        keep: list[pg.SymmetricArray] = []
        times: dict[int, list[float]] = {FEW: [], MANY: []}
        for _ in range(TRIALS):
            for count in (FEW, MANY):
                populate(keep, count, rng)
                times[count].append(round_time())
        if pg.my_pe() == 0:
            figures = {"growth": ratio(times[MANY], times[FEW]), "few": times[FEW], "many": times[MANY]}
            record(sys.argv[1], figures)
        while keep:
            keep.pop().free()


main()
