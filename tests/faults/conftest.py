# SPDX-License-Identifier: Apache-2.0
"""Jobs that go wrong on purpose: started as users start them, and looked at afterwards."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SETTLE = 5.0  # s within which everything of an ended job must be gone


class Job:
    """A job started by `pypgas run` (or another command) that runs one program on n PEs."""

    def __init__(self, folder, n, program, command=None, environment=None):
        self.folder = folder
        self.n = n
        self.mark = uuid.uuid4().hex
        path = folder / "program.py"
        path.write_text("from kit import *\n" + textwrap.dedent(program))
        command = command or [sys.executable, "-m", "pypgas", "run", "-n", str(n)]
        self.files = {name: (folder / name).open("w+") for name in ("stdout", "stderr")}
        self.process = subprocess.Popen(
            [*command, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=self.files["stdout"],
            stderr=self.files["stderr"],
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
                "FAULT_FOLDER": str(folder),
                "FAULT_MARK": self.mark,
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                **(environment or {}),
            },
        )

    def wait(self, timeout=60):
        """The exit code, as a shell has it."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the job did not end within {timeout} s\n{self.story()}")
        return 128 - code if code < 0 else code

    def events(self, what=None):
        """What the PEs noted, in order of time."""
        found = []
        for path in self.folder.glob("events-*.jsonl"):
            found += [json.loads(line) for line in path.read_text().splitlines()]
        return sorted(
            (event for event in found if what in (None, event["what"])), key=lambda event: event["time"]
        )

    def await_events(self, what, count, timeout=60):
        """Wait until PEs have noted this so often."""
        deadline = time.monotonic() + timeout
        while len(self.events(what)) < count:
            if time.monotonic() > deadline or self.process.poll() is not None:
                pytest.fail(f"{what!r} was not noted {count} times\n{self.story()}")
            time.sleep(0.05)
        return self.events(what)

    @property
    def output(self):
        return (self.folder / "stdout").read_text()

    @property
    def errors(self):
        return (self.folder / "stderr").read_text()

    def story(self):
        lines = [json.dumps(event) for event in self.events()]
        return "\n".join(["--- events", *lines, "--- stdout", self.output, "--- stderr", self.errors])

    def processes(self):
        """The pids of this job that are alive."""
        wanted = f"FAULT_MARK={self.mark}".encode()
        alive = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        alive.append(int(entry.name))
        return alive

    def remains(self):
        """What is left on the machine of a job that has ended: nothing, it should be."""
        left = [f"process {pid}" for pid in self.processes()]
        sockets = set(Path("/proc/net/unix").read_text().split())
        for event in self.events("begun"):
            left += [f"segment {path}" for path in event["segments"] if Path(path).exists()]
            left += [f"socket {name}" for name in event["sockets"] if name in sockets]
            if event["job_dir"] and Path(event["job_dir"]).exists():
                left.append(f"folder {event['job_dir']}")
        return left

    def assert_nothing_remains(self):
        deadline = time.monotonic() + SETTLE
        while (left := self.remains()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not left, self.story()

    def close(self):
        for pid in [*self.processes(), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for file in self.files.values():
            file.close()


@pytest.fixture
def start(tmp_path):
    """Start a job: ``start(n, program, ...)``; it is killed after the test if need be."""
    jobs = []

    def start_job(n, program, **options):
        folder = tmp_path / f"job{len(jobs)}"
        folder.mkdir()
        jobs.append(Job(folder, n, program, **options))
        return jobs[-1]

    yield start_job
    for job in jobs:
        job.close()
