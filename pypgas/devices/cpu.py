# SPDX-License-Identifier: Apache-2.0
"""The CPU as a device: heap memory is a ``memfd``, visible to no other process until it is passed on."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["CpuDevice"]


class CpuDevice:
    """Memory and processors of this host."""

    name = "cpu"

    def create_segment(self, nbytes: int) -> int:
        """Return a file descriptor of ``nbytes`` of zeroed memory, of which no page exists yet."""
        fd = os.memfd_create("pypgas", os.MFD_CLOEXEC)
        try:
            os.ftruncate(fd, nbytes)
        except OSError:
            os.close(fd)
            raise
        return fd

    def processors(self) -> int:
        """Number of processors this process may run on."""
        return len(os.sched_getaffinity(0))

    def memory_bytes(self) -> int:
        """Memory of the host, or of the control group that limits this process, in bytes."""
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        for path in self._limit_files():
            try:
                text = path.read_text().strip()
            except OSError:
                continue
            if text.isdecimal():
                total = min(total, int(text))
        return total

    @staticmethod
    def _limit_files() -> list[Path]:
        root = Path("/sys/fs/cgroup")
        files = [root / "memory.max", root / "memory" / "memory.limit_in_bytes"]
        try:
            for line in Path("/proc/self/cgroup").read_text().splitlines():
                _, controllers, path = line.split(":", 2)
                if not controllers:
                    files.append(root / path.lstrip("/") / "memory.max")
        except (OSError, ValueError):
            return files  # no /proc: the host's memory is the answer
        return files
