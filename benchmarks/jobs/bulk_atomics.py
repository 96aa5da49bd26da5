# SPDX-License-Identifier: Apache-2.0
"""Bulk atomic_add at random elements of a table of 65,536 per PE, over all PEs, beside the same loop in C.

    pypgas run -n 2 benchmarks/jobs/bulk_atomics.py RESULT.json

All PEs update at the same time. The C loop works on the same memory, through the mappings that `peer` gives.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from record import record

import pypgas as pg
from pypgas.bench.timing import interleave, ratio

TABLE = 1 << 16
UPDATES = 1 << 16  # of each PE in one call: as many as its table has elements
TRIALS = 15  # short ones


def compile_loop() -> Any:
    """The C loop as a function of five addresses and numbers."""
    source = Path(__file__).with_name("atomic_loop.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "loop.so")
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O3", "-shared", "-fPIC", "-o", library, source], check=True)
        return ctypes.CDLL(str(library)).add


def main() -> None:
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        add = compile_loop()
        table = pg.zeros(TABLE, np.int64)
        table.fill(0)
        rng = np.random.default_rng(me)
        pes, index = rng.integers(n, size=UPDATES), rng.integers(TABLE, size=UPDATES)
        values = rng.integers(1, 100, size=UPDATES)
        pieces = [table.peer(pe) for pe in range(n)]
        tables = (ctypes.c_void_p * n)(*[piece.ctypes.data for piece in pieces if piece is not None])
        addresses = [ctypes.c_void_p(a.ctypes.data) for a in (pes, index, values)]

        def timed(call: Callable[[], Any]) -> Callable[[], float]:
            def trial() -> float:
                pg.barrier_all()
                start = time.perf_counter()
                call()
                taken = time.perf_counter() - start
                # A PE that had to wait for a core took part in nobody's race: the fastest counts.
                return float(pg.reduce(taken, "min"))

            return trial

        times = interleave(
            {
                "ours": timed(lambda: pg.atomic_add(table, values, pes, index=index)),
                "loop": timed(lambda: add(tables, *addresses, ctypes.c_int64(UPDATES))),
                "ours, one value": timed(lambda: pg.atomic_add(table, 1, pes, index=index)),
                "ours, one PE": timed(lambda: pg.atomic_add(table, values, (me + 1) % n, index=index)),
            },
            TRIALS,
        )
        pg.barrier_all()
        # Every update counts: three calls of a trial added the values, one added ones.
        added = TRIALS * (3 * int(values.sum()) + UPDATES)
        assert int(pg.reduce(int(table.local.sum()), "sum")) == int(pg.reduce(added, "sum"))
        if me == 0:
            record(
                sys.argv[1],
                {
                    # rates, ours over the loop's
                    "bulk": 1 / ratio(times["ours"], times["loop"]),
                    "million a second": UPDATES / sorted(times["ours"])[TRIALS // 2] / 1e6,
                    "million a second in C": UPDATES / sorted(times["loop"])[TRIALS // 2] / 1e6,
                    "seconds": times,
                },
            )


main()
