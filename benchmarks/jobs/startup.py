# SPDX-License-Identifier: Apache-2.0
"""What pypgas adds to importing mpi4py and MPI's own initialisation, in time and resident memory.

    pypgas run -n 4 benchmarks/jobs/startup.py RESULT.json

Each PE does first what an mpi4py program with arrays does, then what pypgas adds. Between the steps the PEs wait for
each other without taking a core, so that a step's time is that of its slowest PE and of nothing else.
"""

from __future__ import annotations

import os
import sys
import time

from record import record, status

start = time.perf_counter(), time.process_time()
# The components that pypgas spares MPI belong to MPI's own time, so neither side gets to load them.
os.environ.setdefault("OMPI_MCA_btl", "^ofi")
os.environ.setdefault("OMPI_MCA_osc", "^ucx")
from mpi4py import MPI  # noqa: E402

NAMES = ("mpi4py and MPI", "import numpy", "import pypgas", "init")
times: list[tuple[float, float, int]] = []


def step_done() -> tuple[float, float]:
    """Record a step; returns wall and processor time at the start of the next one."""
    ends = time.perf_counter(), time.process_time()
    times.append((ends[0] - start[0], ends[1] - start[1], status("VmRSS")))
    request = MPI.COMM_WORLD.Ibarrier()
    while not request.Test():
        time.sleep(0.001)
    return time.perf_counter(), time.process_time()


start = step_done()
import numpy as np  # noqa: E402

start = step_done()
import pypgas as pg  # noqa: E402

start = step_done()
with pg.init():
    start = step_done()
    wall, processor, memory = (
        pg.reduce(np.array(column, float), "max").tolist() for column in zip(*times, strict=True)
    )
    if pg.my_pe() == 0:
        figures = {
            "seconds": dict(zip(NAMES, wall, strict=True)),
            "processor seconds": dict(zip(NAMES, processor, strict=True)),
            "resident bytes after": dict(zip(NAMES, memory, strict=True)),
            "import and init": wall[2] + wall[3],
            "added bytes": memory[3] - memory[0],
        }
        record(sys.argv[1], figures)
