# SPDX-License-Identifier: Apache-2.0
"""Starting real jobs in the launcher's tests, and finding what they leave behind."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# The programs number themselves from the environment: importing MPI takes longer than all else.
PE = """
import os, signal, sys, time
def number():
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        if name in os.environ:
            return int(os.environ[name])
    return 0
pe = number()
"""

_MARK = "LAUNCHER_TEST"
PATIENCE = 60  # s; far more than any job here takes


@dataclasses.dataclass
class Job:
    """A running ``pypgas run`` and the mark by which its processes are found."""

    process: subprocess.Popen[str]
    mark: str

    def finish(self, timeout: float = PATIENCE) -> tuple[int, str, str]:
        """Wait for the end; returns exit code, output, errors."""
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def processes(self) -> list[int]:
        """The job's processes that are alive."""
        return marked(self.mark)

    def wait_for_files(self, folder: Path, names: list[str]) -> None:
        """Wait until the PEs have created these files."""
        deadline = time.monotonic() + PATIENCE
        while not all((folder / name).exists() for name in names):
            assert time.monotonic() < deadline, "the PEs did not come up"
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.02)

    def gone(self, within: float = 5.0) -> bool:
        """Whether all processes of the job disappear within some seconds."""
        deadline = time.monotonic() + within
        while self.processes():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


def marked(mark: str) -> list[int]:
    """Processes, zombies aside, that have this mark in their environment."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # it has just ended
            continue
    return found


@contextmanager
def job(*arguments: str, environ: Mapping[str, str] | None = None, **options: object) -> Iterator[Job]:
    """A job whose processes are all gone when the block is left."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, "-m", "pypgas", "run", *arguments],
        stdin=options.pop("stdin", subprocess.DEVNULL),  # type: ignore[arg-type]
        stdout=options.pop("stdout", subprocess.PIPE),  # type: ignore[arg-type]
        stderr=options.pop("stderr", subprocess.PIPE),  # type: ignore[arg-type]
        text=True,
        env={**os.environ, **(environ or {}), _MARK: mark},
        **options,  # type: ignore[call-overload]
    )
    running = Job(process, mark)
    try:
        yield running
    finally:
        # Its other processes remove the job's folder when the command has gone.
        process.kill()
        running.gone()
        for pid in running.processes():
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def run(*arguments: str, **options: object) -> tuple[int, str, str]:
    """Run a job to its end. Returns exit code, output, errors; fails if a process is left."""
    with job(*arguments, **options) as running:
        result = running.finish()
        assert running.gone(), "the job has left processes"
    return result


def code(text: str) -> tuple[str, str]:
    """The arguments that run this text, with `PE` before it."""
    return "-c", PE + text
