#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""Two kernels that run all the time: a producer on one PE feeds a consumer on the next through a ring of places.

pypgas run -n 4 examples/kernel_pipeline.py

`filled` counts the items that have arrived, `taken` those that the consumer has taken out. The producer waits where
all places are full, so that it never runs ahead of the consumer by more than the ring holds.
"""

from __future__ import annotations

import argparse
import sys

import pypgas as pg

SOURCE = r"""
#include <pypgas.cuh>

constexpr int places = 4, length = 64;

// Sends `items` items to the PE on the right. `taken` is raised by the consumer there.
__global__ void produce(long *ring, pgas::u64 *filled, pgas::u64 *taken, long items) {
  __shared__ long item[length];
  const int me = pgas::my_pe(), right = (me + 1) % pgas::n_pes();
  for (long k = 0; k < items; k++) {
    item[threadIdx.x] = k * (me + 1) + threadIdx.x;
    if (threadIdx.x == 0 && k >= places) pgas::signal_wait_until(taken, pgas::Compare::gt, pgas::u64(k - places));
    __syncthreads();
    pgas::put_signal<pgas::block>(ring + k % places * length, item, length, filled, 1, pgas::SignalOp::add, right);
  }
}

// Takes `items` items from the ring that the PE on the left fills, and counts those that are not what they should be.
__global__ void consume(long *ring, pgas::u64 *filled, pgas::u64 *taken, long items, int *errors) {
  const int me = pgas::my_pe(), n = pgas::n_pes(), left = (me - 1 + n) % n;
  for (long k = 0; k < items; k++) {
    if (threadIdx.x == 0) pgas::signal_wait_until(filled, pgas::Compare::gt, pgas::u64(k));
    __syncthreads();
    if (ring[k % places * length + threadIdx.x] != k * (left + 1) + threadIdx.x) atomicAdd(errors, 1);
    __syncthreads();
    if (threadIdx.x == 0) pgas::signal_add(taken, 1, left);
  }
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--items", type=int, default=2000)
    options = parser.parse_args()
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        module = pg.Module(SOURCE)
        ring = pg.zeros((4, 64), dtype="i8")
        filled, taken = pg.zeros(1, dtype="u8"), pg.zeros(1, dtype="u8")
        errors = pg.zeros(1, dtype="i4")
        producing, consuming = pg.Stream(), pg.Stream()
        module.kernel("produce")[1, 64](ring, filled, taken, options.items, stream=producing)
        module.kernel("consume")[1, 64](ring, filled, taken, options.items, errors, stream=consuming)
        producing.synchronize()
        consuming.synchronize()
        wrong = int(pg.reduce(errors.local[0], op="sum"))
        if me == 0:
            print(
                f"{n} pipelines of {options.items} items, {wrong} errors: {'WRONG' if wrong else 'correct'}"
            )
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
