#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""A ring all-reduce in one kernel: n - 1 steps that add, n - 1 steps that pass the sums on.

pypgas run -n 4 examples/kernel_allreduce.py

In every step a PE sends one piece of its vector to its right-hand neighbour with `put_signal` and waits for the piece
from the left. Received pieces lie in a buffer with a place for each step, so that nothing is overwritten before it is
used.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import pypgas as pg

SOURCE = r"""
#include <pypgas.cuh>

// x: n pieces of `piece` elements; buffer: one piece for each of the n - 1 adding steps; signals: two for each step.
__global__ void allreduce(double *x, double *buffer, pgas::u64 *signals, long piece) {
  const int me = pgas::my_pe(), n = pgas::n_pes(), right = (me + 1) % n;
  for (int step = 0; step < n - 1; step++) {
    double *send = x + (me - step + n) % n * piece, *sum = x + (me - step - 1 + n) % n * piece;
    pgas::put_signal<pgas::block>(buffer + step * piece, send, piece, signals + step, 1, pgas::SignalOp::set, right);
    if (threadIdx.x == 0) pgas::signal_wait_until(signals + step, pgas::Compare::eq, 1);
    __syncthreads();
    for (long i = threadIdx.x; i < piece; i += blockDim.x) sum[i] += buffer[step * piece + i];
    __syncthreads();
  }
  for (int step = 0; step < n - 1; step++) {
    double *send = x + (me + 1 - step + n) % n * piece;
    pgas::u64 *signal = signals + n + step;
    pgas::put_signal<pgas::block>(send, send, piece, signal, 1, pgas::SignalOp::set, right);
    if (threadIdx.x == 0) pgas::signal_wait_until(signal, pgas::Compare::eq, 1);
    __syncthreads();
  }
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--piece", type=int, default=1000, help="elements of each PE's piece")
    options = parser.parse_args()
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        allreduce = pg.kernel(SOURCE, "allreduce")
        x, buffer = pg.zeros((n, options.piece)), pg.zeros((max(n - 1, 1), options.piece))
        signals = pg.zeros(2 * n, dtype="u8")
        x[...] = np.arange(n * options.piece).reshape(n, -1) * (me + 1)
        expected = pg.reduce(
            x
        )  # the library's own, for comparison: whole numbers, so the order doesn't matter
        pg.barrier_all()
        allreduce[1, 64](x, buffer, signals, options.piece)
        pg.synchronize()
        good = bool(pg.reduce(int(np.array_equal(x.local, expected)), op="min"))
        if me == 0:
            print(f"ring all-reduce of {x.size} numbers over {n} PEs: {'correct' if good else 'WRONG'}")
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
