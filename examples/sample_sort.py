#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""Integer sample sort: numbers spread over all PEs end up in order, PE 0 holding the smallest.

pypgas run -n 4 examples/sample_sort.py --keys 200000

1. Each PE sorts its keys and offers a sample; from all samples everybody derives the same splitters.
2. ``alltoall`` tells each PE how many keys come from whom, hence where in its memory they belong.
3. Each PE puts its keys straight into their places, in the memory of the PE that they belong to.
4. Each PE sorts what it has received.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

import pypgas as pg

OVERSAMPLING = 32
Keys = NDArray[np.int64]


def sample_sort(keys: Keys) -> Keys:
    """Sort the keys of all PEs; return this PE's part of the result (collective)."""
    me, n = pg.my_pe(), pg.n_pes()
    keys = np.sort(keys)

    positions = np.linspace(0, keys.size - 1, OVERSAMPLING).astype(int)
    samples = np.sort(pg.fcollect(keys[positions]))
    splitters = samples[OVERSAMPLING::OVERSAMPLING]

    edges = np.concatenate([[0], np.searchsorted(keys, splitters), [keys.size]])
    counts = np.diff(edges)  # of my keys for each PE
    incoming = pg.alltoall(counts)  # keys for me from each PE
    offsets = np.cumsum(incoming) - incoming
    places = pg.alltoall(offsets)  # where my keys begin on each PE

    received = int(incoming.sum())
    bucket = pg.empty(int(pg.reduce(received, op="max")), dtype="i8")
    for step in range(n):
        pe = (me + step) % n  # not everybody to the same PE at once
        if counts[pe]:
            target = bucket[int(places[pe]) : int(places[pe] + counts[pe])]
            pg.put(target, keys[edges[pe] : edges[pe + 1]], pe)
    pg.barrier_all()
    result = np.sort(bucket.local[:received])
    bucket.free()
    return result


def verify(before: Keys, after: Keys) -> bool:
    """Return whether all PEs' keys are the same as before, and in order (collective)."""
    whole_before, whole_after = pg.collect(before), pg.collect(after)
    return np.array_equal(np.sort(whole_before), whole_after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--keys", type=int, default=200_000, help="keys on each PE, about")
    options = parser.parse_args()
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        random = np.random.default_rng([7, me])
        size = options.keys + int(random.integers(0, 100))  # not the same everywhere
        keys = (random.standard_normal(size) * 1e6).astype("i8")  # small ones are more frequent

        result = sample_sort(keys)
        good = bool(pg.reduce(int(verify(keys, result)), op="min"))
        total, largest = pg.reduce(result.size, op="sum"), pg.reduce(result.size, op="max")
        if me == 0:
            print(
                f"sample sort: {total} keys on {n} PEs, the fullest has "
                f"{largest * n / total:.2f} of the average: {'correct' if good else 'WRONG'}"
            )
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
