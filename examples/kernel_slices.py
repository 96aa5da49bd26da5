#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""Compute and send from the same kernel: each block makes a slice of a tensor, one thread sends it off.

pypgas run -n 4 examples/kernel_slices.py

This is what communication by the device exists for: a slice travels as soon as it is ready, while other blocks still
compute. The receiver's kernel takes up each slice when its signal comes.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import pypgas as pg

SOURCE = r"""
#include <pypgas.cuh>

// Each block computes slices of `length` elements and sends them to the right-hand neighbour.
__global__ void produce(float *inbox, float *work, pgas::u64 *ready, int slices, int length) {
  const int me = pgas::my_pe(), right = (me + 1) % pgas::n_pes();
  for (int s = blockIdx.x; s < slices; s += gridDim.x) {
    float *slice = work + long(s) * length;
    for (int i = threadIdx.x; i < length; i += blockDim.x) slice[i] = float(me + 1) * float(s) + float(i);
    __syncthreads();  // the slice is complete
    if (threadIdx.x == 0)
      pgas::put_signal(inbox + long(s) * length, slice, length, ready + s, 1, pgas::SignalOp::set, right);
  }
}

// Each block takes up slices as they come: here, their sums.
__global__ void consume(const float *inbox, double *sums, pgas::u64 *ready, int slices, int length) {
  __shared__ double partial[256];
  for (int s = blockIdx.x; s < slices; s += gridDim.x) {
    if (threadIdx.x == 0) pgas::signal_wait_until(ready + s, pgas::Compare::eq, 1);
    __syncthreads();
    double sum = 0;
    for (int i = threadIdx.x; i < length; i += blockDim.x) sum += inbox[long(s) * length + i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
      if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) sums[s] = partial[0];
    __syncthreads();
  }
}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--slices", type=int, default=24)
    parser.add_argument("--length", type=int, default=1000, help="elements of a slice")
    options = parser.parse_args()
    slices, length = options.slices, options.length
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        module = pg.Module(SOURCE)
        produce, consume = module.kernel("produce"), module.kernel("consume")
        inbox, work = pg.zeros((slices, length), dtype="f4"), pg.zeros((slices, length), dtype="f4")
        ready, sums = pg.zeros(slices, dtype="u8"), np.zeros(slices)
        receiving = pg.Stream()  # its kernel waits while the other one computes
        consume[4, 64](inbox, sums, ready, slices, length, stream=receiving)
        produce[4, 64](inbox, work, ready, slices, length)
        receiving.synchronize()
        pg.synchronize()
        left = (me - 1) % n
        expected = (left + 1) * np.arange(slices) * length + length * (length - 1) / 2
        good = bool(pg.reduce(int(np.array_equal(sums, expected)), op="min"))
        if me == 0:
            print(
                f"{slices} slices from each of {n} PEs, sent as they were computed: {'correct' if good else 'WRONG'}"
            )
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
