# SPDX-License-Identifier: Apache-2.0
"""What init adds to importing mpi4py and MPI's own initialisation, in time and resident memory.

    pypgas run -n 4 benchmarks/jobs/startup.py RESULT.json

One process does first what an mpi4py program does, then what pypgas adds. NumPy, which an mpi4py program with arrays
imports as well, is timed by itself.
"""

from __future__ import annotations

import os
import sys
import time

from record import record, status

clock = time.perf_counter
start = clock()
# The components that pypgas spares MPI belong to MPI's own time, so neither side gets to load them.
os.environ.setdefault("OMPI_MCA_btl", "^ofi")
os.environ.setdefault("OMPI_MCA_osc", "^ucx")
from mpi4py import MPI  # noqa: E402

MPI.COMM_WORLD.Barrier()
mpi, mpi_memory = clock(), status("VmRSS")
import numpy as np  # noqa: E402

MPI.COMM_WORLD.Barrier()
numpy, numpy_memory = clock(), status("VmRSS")
import pypgas as pg  # noqa: E402

imported, imported_memory = clock(), status("VmRSS")
with pg.init():
    ready, memory = clock(), status("VmRSS")
    # The slowest PE is the one that the job waits for.
    steps = np.array(
        [mpi - start, numpy - mpi, imported - numpy, ready - imported, ready - numpy, ready - mpi]
    )
    slowest = pg.reduce(steps, "max").tolist()
    parts = np.array(
        [mpi_memory, numpy_memory - mpi_memory, imported_memory - numpy_memory, memory - imported_memory]
    )
    largest = pg.reduce(parts, "max").tolist()
    added = int(pg.reduce(memory - mpi_memory, "max"))
    if pg.my_pe() == 0:
        names = ["mpi4py and MPI", "import numpy", "import pypgas", "init", "import pypgas and init"]
        record(
            sys.argv[1],
            {
                "seconds": dict(zip([*names, "all but MPI"], slowest, strict=True)),
                "bytes": dict(zip(names, largest, strict=False)),
                "added bytes": added,
            },
        )
