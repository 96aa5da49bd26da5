# SPDX-License-Identifier: Apache-2.0
"""64 MiB put and get beside numpy.copyto into memory shared between two processes.

    pypgas run -n 2 benchmarks/jobs/large_copies.py RESULT.json

The yardstick is an MPI shared-memory window, whose pages are touched like ours, and, to tell the copy from the memory,
numpy.copyto into the peer's piece of the same symmetric array.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from record import record

import pypgas as pg
from pypgas.bench.timing import interleave, ratio
from pypgas.bootstrap.mpi import initialize_mpi

NBYTES = 64 << 20
TRIALS = 15


def timed(call: Callable[[], Any]) -> Callable[[], float]:
    """A trial: PE 0 calls once, while the others sleep in the barrier."""

    def trial() -> float:
        taken = 0.0
        if pg.my_pe() == 0:
            start = time.perf_counter()
            call()
            taken = time.perf_counter() - start
        pg.barrier_all()
        return taken

    return trial


def main() -> None:
    with pg.init():
        mpi = initialize_mpi()
        comm = mpi.COMM_WORLD
        peer = 1 % pg.n_pes()
        window = mpi.Win.Allocate_shared(NBYTES, 1, comm=comm)
        shared = np.frombuffer(window.Shared_query(peer)[0], np.float64)
        window.tomemory()[:] = bytes(1) * NBYTES  # each process makes its own pages
        x = pg.zeros(NBYTES // 8)
        x.fill(0)
        mine = np.arange(NBYTES // 8, dtype=np.float64)
        direct = x.peer(peer)
        assert direct is not None
        pg.barrier_all()
        times = interleave(
            {
                "put": timed(lambda: pg.put(x, mine, peer)),
                "copyto window": timed(lambda: np.copyto(shared, mine)),
                "copyto peer": timed(lambda: np.copyto(direct, mine)),
            },
            TRIALS,
        )
        assert pg.my_pe() != 0 or (np.array_equal(direct, mine) and np.array_equal(shared, mine))
        times |= interleave(
            {
                "get": timed(lambda: pg.get(mine, x, peer)),
                "copyto from window": timed(lambda: np.copyto(mine, shared)),
                "copyto from peer": timed(lambda: np.copyto(mine, direct)),
            },
            TRIALS,
        )
        if pg.my_pe() == 0:
            record(
                sys.argv[1],
                {
                    # bandwidths, ours over theirs
                    "put": 1 / ratio(times["put"], times["copyto window"]),
                    "get": 1 / ratio(times["get"], times["copyto from window"]),
                    "put over copyto to the same memory": 1 / ratio(times["put"], times["copyto peer"]),
                    "get over copyto from the same memory": 1
                    / ratio(times["get"], times["copyto from peer"]),
                    "seconds": times,
                },
            )
        pg.barrier_all()
        window.Free()


main()
