# SPDX-License-Identifier: Apache-2.0
"""What a runtime holds: pages of a fresh array, bookkeeping of many arrays, descriptors, sockets and threads.

pypgas run -n 2 benchmarks/jobs/footprint.py RESULT.json
"""

from __future__ import annotations

import contextlib
import gc
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from record import record, status

import pypgas as pg

ARRAYS = 10_000


def held() -> dict[str, int]:
    """Descriptors, sockets among them, and threads of this process."""
    kinds: Counter[str] = Counter()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            kinds["sockets" if str(link.readlink()).startswith("socket:") else "other"] += 1
    threads = len(list(Path("/proc/self/task").iterdir()))
    return {"descriptors": kinds.total(), "sockets": kinds["sockets"], "threads": threads}


def heavy_use() -> None:
    """Something of everything, with every PE as a target."""
    n = pg.n_pes()
    x, counter = pg.zeros((64, 64)), pg.zeros(4, np.uint64)
    for round_number in range(20):
        with contextlib.ExitStack() as stack:
            team = stack.enter_context(pg.TEAM_WORLD.split_strided(0, 1, n))
            context = stack.enter_context(pg.Context())
            for pe in range(n):
                pg.put(x, np.ones((64, 64)), pe)
                context.put(x, np.ones((64, 64)), pe)
                pg.get(np.empty((64, 64)), x, pe)
                pg.atomic_fetch_add(counter, 1, pe, index=1)
                pg.put_signal(x[3], np.ones(64), counter[0], 1, pe, op=pg.SIGNAL_ADD)
            pg.signal_wait_until(counter[0], pg.GE, n * (round_number + 1))
            pg.reduce(np.ones(100_000), team=team)
            pg.alltoall(np.ones((n, 10)))
            pg.collect(np.ones(pg.my_pe()))
            lock = pg.Lock()
            with lock:
                pg.atomic_inc(counter, 0, index=2)
            pg.zeros(1000).free()
    x.free()
    counter.free()


def main() -> None:
    with pg.init(heap_size="2G"):
        after_init = held()
        heavy_use()
        gc.collect()
        pg.barrier_all()
        after_use = held()

        before, start = status("VmRSS"), time.perf_counter()
        big = pg.zeros(1 << 27)  # 1 GiB
        taken = time.perf_counter() - start
        touched = status("VmRSS") - before
        big.free()

        # Heap pages are shared memory; what is anonymous memory is bookkeeping, of Python and C++ together.
        keep: list[pg.SymmetricArray] = [pg.zeros(1) for _ in range(100)]
        before = status("RssAnon")
        keep += [pg.zeros(1) for _ in range(ARRAYS)]
        bookkeeping = (status("RssAnon") - before) / ARRAYS
        del keep
        gc.collect()
        pg.barrier_all()

        largest = pg.reduce(np.array([touched, bookkeeping, taken], np.float64), "max").tolist()
        same = bool(pg.reduce(int(after_init == after_use), "min"))
        if pg.my_pe() == 0:
            record(
                sys.argv[1],
                {
                    "touched by zeros of 1 GiB": largest[0],
                    "seconds of zeros of 1 GiB": largest[2],
                    "bytes per live array": largest[1],
                    "constant": same,
                    "after init": after_init,
                    "after heavy use": after_use,
                },
            )


main()
