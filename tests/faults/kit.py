# SPDX-License-Identifier: Apache-2.0
"""What the programs of the fault tests have in common; imported by every PE.

Each PE writes what happens to it to a file of its own, one JSON object a line, so that the
test can read it however the job ends.
"""

import contextlib
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pypgas as pg

FOLDER = Path(os.environ["FAULT_FOLDER"])
_pe = -1


def note(what, **details):
    """Write an event with the time since boot: PEs of one node share that clock."""
    event = {"pe": _pe, "what": what, "time": time.monotonic(), **details}
    with open(FOLDER / f"events-{os.getpid()}.jsonl", "a") as file:
        file.write(json.dumps(event) + "\n")
        file.flush()


def begin():
    """Note who and what this process is, once pypgas is initialised."""
    global _pe
    _pe = pg.my_pe()
    descriptors = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            descriptors.append(str(entry.readlink()))
    inodes = {match[1] for link in descriptors if (match := re.match(r"socket:\[(\d+)\]", link))}
    sockets = []
    with open("/proc/net/unix") as file:
        for line in file.readlines()[1:]:
            fields = line.split()
            if fields[6] in inodes:
                sockets.append(fields[7] if len(fields) > 7 else fields[6])
    with open("/proc/self/maps") as file:
        mapped = sorted({line.split(maxsplit=5)[5].strip() for line in file if "/dev/shm/" in line})
    note(
        "begun",
        pid=os.getpid(),
        n=pg.n_pes(),
        sockets=sockets,
        segments=[path for path in mapped if not path.endswith("(deleted)")],
        job_dir=os.environ.get("PYPGAS_JOB_DIR"),
    )
    return pg.my_pe(), pg.n_pes()


def die():
    """Be killed as by the kernel, after the others have had time to wait for us."""
    time.sleep(0.6)
    note("dying")
    os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def noting_errors():
    """Note the exception that leaves the block, and let it go on."""
    try:
        yield
    except BaseException as error:
        note(
            "raised",
            type=type(error).__name__,
            bases=[base.__name__ for base in type(error).__mro__],
            text=str(error),
            pes=list(getattr(error, "pes", [])),
        )
        sys.stderr.flush()
        raise
