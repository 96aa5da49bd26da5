# SPDX-License-Identifier: Apache-2.0
"""64 MiB put and get beside numpy.copyto into memory shared between two processes.

    pypgas run -n 2 benchmarks/jobs/large_copies.py RESULT.json

The yardstick is an MPI shared-memory window, whose pages are touched like ours, and, to tell the copy from the memory,
numpy.copyto into the peer's piece of the same symmetric array. Where in memory the pages of an array happen to lie
moves its bandwidth by some percent for as long as it lives, so several arrays and windows take turns. What is timed is
processor time: a copy waits for nobody, and other jobs' turns on the core are not its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from record import record

import pypgas as pg
from pypgas.bench.timing import interleave, ratio
from pypgas.bootstrap.mpi import initialize_mpi

NBYTES = 64 << 20
PLACES = 3
TRIALS = 15

Copy = Callable[[int], Any]  # takes the number of the place


def timed(copy: Copy) -> Callable[[], float]:
    """A trial: PE 0 copies once at each place, while the others sleep in the barrier."""

    def trial() -> float:
        taken = 0.0
        if pg.my_pe() == 0:
            start = time.process_time()
            for place in range(PLACES):
                copy(place)
            taken = (time.process_time() - start) / PLACES
        pg.barrier_all()
        return taken

    return trial


def main() -> None:
    with pg.init():
        mpi = initialize_mpi()
        peer = 1 % pg.n_pes()
        arrays, windows = [], []
        for _ in range(PLACES):
            arrays.append(pg.zeros(NBYTES // 8))
            windows.append(mpi.Win.Allocate_shared(NBYTES, 1, comm=mpi.COMM_WORLD))
            # Each process makes its own pages, in both.
            arrays[-1].fill(0)
            windows[-1].tomemory()[:] = bytes(1) * NBYTES
        shared = [np.frombuffer(window.Shared_query(peer)[0], np.float64) for window in windows]
        direct: list[npt.NDArray[Any]] = []
        for x in arrays:
            piece = x.peer(peer)
            assert piece is not None
            direct.append(piece)
        mine = np.arange(NBYTES // 8, dtype=np.float64)
        pg.barrier_all()
        times = interleave(
            {
                "put": timed(lambda i: pg.put(arrays[i], mine, peer)),
                "copyto window": timed(lambda i: np.copyto(shared[i], mine)),
                "copyto peer": timed(lambda i: np.copyto(direct[i], mine)),
            },
            TRIALS,
        )
        if pg.my_pe() == 0:
            assert all(np.array_equal(piece, mine) for piece in (*direct, *shared))
        times |= interleave(
            {
                "get": timed(lambda i: pg.get(mine, arrays[i], peer)),
                "copyto from window": timed(lambda i: np.copyto(mine, shared[i])),
                "copyto from peer": timed(lambda i: np.copyto(mine, direct[i])),
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
                    "processor seconds": times,
                },
            )
        pg.barrier_all()
        for window in windows:
            window.Free()


main()
