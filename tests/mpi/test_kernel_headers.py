# SPDX-License-Identifier: Apache-2.0
"""CUDA's headers as published kernels include them, on this device: cooperative groups, halves, the C library."""

from __future__ import annotations

import numpy as np

import pypgas as pg

GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#include <stdint.h>
namespace cg = cooperative_groups;

__global__ void tiles(int *out) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  auto warp = cg::tiled_partition<32>(block);
  auto quarter = cg::tiled_partition<4>(warp);
  int *mine = out + 8 * block.thread_rank();
  mine[0] = int(tile.thread_rank());
  mine[1] = int(tile.meta_group_rank() * 100 + tile.meta_group_size());
  mine[2] = tile.shfl(int(block.thread_rank()), 5);
  mine[3] = cg::reduce(warp, int(block.thread_rank()), cg::plus<int>());
  mine[4] = cg::reduce(quarter, int(block.thread_rank()), cg::greater<int>());
  mine[5] = int(tile.ballot(tile.thread_rank() % 3 == 0));
  mine[6] = tile.shfl_down(int(block.thread_rank()), 2);
  cg::sync(block);
  mine[7] = out[8 * ((block.thread_rank() + 1) % block.size())];
}

__global__ void grid(unsigned *count, unsigned *seen) {
  cg::grid_group all = cg::this_grid();
  for (int round = 1; round <= 5; round++) {
    if (threadIdx.x == 0) atomicAdd(count, 1u);
    all.sync();
    if (*(volatile unsigned *)count != round * all.num_blocks()) seen[all.thread_rank()] = round;
    all.sync();
  }
}
"""

HALVES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void halves(const half *a, const half *b, half *sum, __nv_bfloat16 *rounded, float *products, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  sum[i] = __hadd(a[i], b[i]);
  rounded[i] = __float2bfloat16(__half2float(a[i]));
  half2 pair = __hmul2(__halves2half2(a[i], b[i]), __float2half2_rn(2.0f));
  products[i] = __low2float(pair) + __high2float(pair);
}
"""


def test_tiles() -> None:
    threads = 64
    out = pg.zeros((threads, 8), dtype="i4")
    pg.kernel(GROUPS, "tiles")[1, threads](out)
    pg.synchronize()
    rank = np.arange(threads)
    wanted = np.stack(
        [
            rank % 8,
            rank // 8 * 100 + 8,
            rank // 8 * 8 + 5,
            np.where(rank < 32, 496, 496 + 32 * 32),
            rank // 4 * 4 + 3,
            np.full(threads, 0b01001001),
            np.where(rank % 8 < 6, rank + 2, rank),
            (rank + 1) % threads % 8,
        ],
        axis=1,
    )
    np.testing.assert_array_equal(out.local, wanted)


def test_grid() -> None:
    blocks, threads = 3, 40
    count, seen = pg.zeros(1, dtype="u4"), pg.zeros(blocks * threads, dtype="u4")
    pg.kernel(GROUPS, "grid")[blocks, threads](count, seen, cooperative=True)
    pg.synchronize()
    assert count.local[0] == 5 * blocks
    assert not seen.local.any()


def test_halves() -> None:
    n = 100
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(n).astype("f2") for _ in range(2))
    total, rounded, products = np.zeros(n, "f2"), np.zeros(n, pg.bfloat16), np.zeros(n, "f4")
    pg.kernel(HALVES, "halves")[4, 32](a, b, total, rounded, products, n)
    pg.synchronize()
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(rounded, a.astype("f4").astype(pg.bfloat16))
    np.testing.assert_array_equal(
        products, ((a * np.float16(2)).astype("f4") + (b * np.float16(2)).astype("f4"))
    )
