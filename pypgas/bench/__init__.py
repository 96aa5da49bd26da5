# SPDX-License-Identifier: Apache-2.0
"""``pypgas bench``: what operations cost on this machine, beside mpi4py's and shmem4py's in the same run."""

from __future__ import annotations

from .cli import main

__all__ = ["main"]
