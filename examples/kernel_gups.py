#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""Random updates of a distributed table, made by a kernel on each PE, and undone again.

pypgas run -n 4 examples/kernel_gups.py

Each thread draws random numbers; each number says which element of which PE's table to change. Applying the same
updates twice must restore the table, since exclusive or undoes itself: one lost update would show.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import pypgas as pg

SOURCE = r"""
#include <pypgas.cuh>

__device__ pgas::u64 next_random(pgas::u64 x) {  // Marsaglia's xorshift
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ (x << 17);
}

__global__ void update(pgas::u64 *table, long size, long updates) {
  const int n = pgas::n_pes();
  const pgas::u64 thread = (pgas::u64(pgas::my_pe()) * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
  pgas::u64 x = (thread + 1) * 0x9e3779b97f4a7c15ull;
  for (long i = 0; i < updates; i++) {
    x = next_random(x);
    pgas::atomic_xor(table + (x >> 20) % size, x, int(x % n));
  }
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--table", type=int, default=1 << 16, help="elements on each PE")
    parser.add_argument("--updates", type=int, default=20_000, help="updates by each thread")
    options = parser.parse_args()
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        update = pg.kernel(SOURCE, "update")
        table = pg.zeros(options.table, dtype="u8")
        before = np.arange(options.table, dtype="u8") + me
        table[:] = before
        pg.barrier_all()
        blocks, threads = 2, 16
        start = time.perf_counter()
        for _ in range(2):
            update[blocks, threads](table, options.table, options.updates)
        pg.synchronize()
        pg.barrier_all()
        seconds = time.perf_counter() - start
        wrong = int(pg.reduce(np.count_nonzero(table.local != before), op="sum"))
        if me == 0:
            rate = 2 * n * blocks * threads * options.updates / seconds / 1e6
            print(
                f"kernel gups: {rate:.1f} million updates/s, {wrong} errors: {'WRONG' if wrong else 'correct'}"
            )
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
