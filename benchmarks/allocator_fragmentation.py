# SPDX-License-Identifier: Apache-2.0
"""Fragmentation and cost of the heap's allocator under random workloads.

    python benchmarks/allocator_fragmentation.py [--json FILE]

Each workload keeps the number of live blocks near a target, freeing a random block and allocating
one of random size, for many rounds. Reported: the address range touched (high water) over the
most bytes ever live at once (1.0 is perfect), the fragmentation of the free bytes below the
high-water mark, and the time of an allocation and a free with 10 and 10,000 live blocks.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from pypgas.memory.allocator import OffsetAllocator

HEAP = 1 << 44

Sizes = Callable[[random.Random], int]

WORKLOADS: dict[str, Sizes] = {
    "equal 4 KiB": lambda _: 4096,
    "uniform 1 B to 64 KiB": lambda rng: rng.randint(1, 1 << 16),
    "log-uniform 64 B to 16 MiB": lambda rng: int(64 * 2 ** rng.uniform(0, 18)),
    "powers of two 64 B to 1 MiB": lambda rng: 64 << rng.randint(0, 14),
    "mostly small, some 8 MiB": lambda rng: 8 << 20 if rng.random() < 0.02 else rng.randint(1, 4096),
}


def fragmentation(sizes: Sizes, live: int, rounds: int, seed: int = 1) -> dict[str, float]:
    """Run one workload; return its figures."""
    rng = random.Random(seed)
    allocator = OffsetAllocator(HEAP)
    blocks: list[int] = []
    peak = 0
    for _ in range(rounds):
        # Freed slightly less often than allocated: the number hovers below `live`.
        if blocks and (len(blocks) >= live or rng.random() < 0.45):
            index = rng.randrange(len(blocks))
            blocks[index], blocks[-1] = blocks[-1], blocks[index]
            allocator.free(blocks.pop())
        else:
            blocks.append(allocator.allocate(sizes(rng)))
            peak = max(peak, allocator.statistics().used)
    now = allocator.statistics()
    # The block that reaches past the high-water mark is not a hole.
    untouched = HEAP - allocator.high_water
    holes = now.free - untouched
    return {
        "live": len(blocks),
        "range_over_peak": allocator.high_water / peak,
        "holes_over_used": holes / now.used if now.used else 0.0,
        "free_blocks": now.n_free_blocks,
    }


def cost(live: int, trials: int = 7, operations: int = 2000) -> dict[str, float]:
    """Return median microseconds of an allocation and of a free with ``live`` blocks alive."""
    rng = random.Random(2)
    allocator = OffsetAllocator(HEAP)
    blocks = [allocator.allocate(rng.randint(1, 1 << 16)) for _ in range(live)]
    # Churn first, so that the free lists hold what a long run leaves.
    for _ in range(4 * live):
        index = rng.randrange(live)
        allocator.free(blocks[index])
        blocks[index] = allocator.allocate(rng.randint(1, 1 << 16))
    allocating, freeing = [], []
    for _ in range(trials):
        indices = [rng.randrange(live) for _ in range(operations)]
        sizes = [rng.randint(1, 1 << 16) for _ in range(operations)]
        spent_freeing = spent_allocating = 0.0
        for index, size in zip(indices, sizes, strict=True):
            start = time.perf_counter()
            allocator.free(blocks[index])
            middle = time.perf_counter()
            blocks[index] = allocator.allocate(size)
            spent_allocating += time.perf_counter() - middle
            spent_freeing += middle - start
        allocating.append(1e6 * spent_allocating / operations)
        freeing.append(1e6 * spent_freeing / operations)
    return {
        "allocate_us": statistics.median(allocating),
        "free_us": statistics.median(freeing),
        "free_blocks": allocator.statistics().n_free_blocks,
    }


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50_000)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()

    figures: dict[str, dict[str, dict[str, float]]] = {"fragmentation": {}, "cost": {}}
    print(f"{'workload':30} {'live':>6} {'range/peak':>10} {'holes/used':>10} {'holes':>6}")
    for name, sizes in WORKLOADS.items():
        row = fragmentation(sizes, live=1000, rounds=options.rounds)
        figures["fragmentation"][name] = row
        print(
            f"{name:30} {row['live']:6.0f} {row['range_over_peak']:10.3f} "
            f"{row['holes_over_used']:10.3f} {row['free_blocks']:6.0f}"
        )
    print(f"\n{'live blocks':>11} {'allocate µs':>12} {'free µs':>8} {'holes':>6}")
    for live in (10, 10_000):
        row = cost(live)
        figures["cost"][str(live)] = row
        print(f"{live:11} {row['allocate_us']:12.2f} {row['free_us']:8.2f} {row['free_blocks']:6.0f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
