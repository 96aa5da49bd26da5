# SPDX-License-Identifier: Apache-2.0
"""Where and by what a result was measured."""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import pypgas as pg

__all__ = ["commit", "facts", "processor"]


def processor() -> str:
    """Return the processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    for line in text.splitlines():
        if line.startswith(("model name", "Hardware", "cpu model")):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def commit(folder: Path | None = None) -> str | None:
    """Return the commit of the checkout that pypgas runs from, ``None`` if it runs from none.

    "-modified" is added if tracked files have changed since.
    """
    where = folder or Path(__file__).resolve().parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=-modified"],
            cwd=where,
            capture_output=True,
            text=True,
            timeout=20,
        )
        tracked = subprocess.run(
            ["git", "ls-files", "--error-unmatch", str(where)], cwd=where, capture_output=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # A package installed somewhere below an unrelated checkout is not that checkout's.
    return described.stdout.strip() or None if described.returncode == tracked.returncode == 0 else None


def facts(command: list[str]) -> dict[str, Any]:
    """Return date, command, commit, hardware and software as JSON can hold them."""
    uname = platform.uname()
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "command": command,
        "commit": commit(),
        "machine": {
            "processor": processor(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "system": f"{uname.system} {uname.release} {uname.machine}",
            "load_average": list(os.getloadavg()),
        },
        "versions": {
            "pypgas": pg.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "executable": Path(sys.executable).name,
        },
    }
