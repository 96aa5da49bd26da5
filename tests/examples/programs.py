# SPDX-License-Identifier: Apache-2.0
"""How the tests run an example: as a user does, by ``pypgas run``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(
    program: str | Path, pes: int, *options: object, time_limit: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a program of ``examples/`` on some PEs and return what became of it."""
    command = [sys.executable, "-m", "pypgas", "run", "-n", str(pes), str(EXAMPLES / program)]
    return subprocess.run(
        [*command, *map(str, options)],
        capture_output=True,
        text=True,
        timeout=time_limit,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )


def explain(job: subprocess.CompletedProcess[str]) -> str:
    """Return a job's output, for the message of a failed assertion."""
    return f"exit code {job.returncode}\n{job.stdout}\n{job.stderr}"
