# SPDX-License-Identifier: Apache-2.0
"""What this installation and job consist of."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

import numpy as np

from . import _native
from .core import runtime
from .devices.cpu import CpuDevice

__all__ = ["VERSION", "info"]

VERSION = "0.1.0"


def info() -> dict[str, Any]:
    """Return facts on the machine and, while a runtime is live, on the job and the path to each PE. Local."""
    device = CpuDevice()
    facts: dict[str, Any] = {
        "pypgas": VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "executable": sys.executable,
        "pid": os.getpid(),
        "processors": device.processors(),
        "memory_bytes": device.memory_bytes(),
        "devices": ["cpu"],
        "initialized": runtime.is_initialized(),
    }
    if facts["initialized"]:
        job = runtime.current_runtime("info")
        facts.update(
            pe=_native.my_pe(),
            n_pes=_native.n_pes(),
            bootstrap=job.bootstrap.name,
            device=job.device.name,
            heap_bytes=job.heap.size,
            paths=dict.fromkeys(job.shared.pes, "direct"),
            settings=vars(job.settings),
        )
    return facts
