# SPDX-License-Identifier: Apache-2.0
"""Which MPI launcher is chosen, what it is told, and a PE out of the parent's reach."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pypgas.launcher import child, launchers
from pypgas.launcher.launchers import Launcher, LauncherError, find_launcher, installed_mpi, without_job

SAYS = {
    "openmpi": "mpirun (Open MPI) 5.0.3",
    "mpich": "HYDRA build details:\n    Version:                                 4.2.1",
    "other": "a mail program 1.0",
}


def make_launcher(folder: Path, kind: str, name: str = "mpirun") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{SAYS[kind]}\nEND\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Choose for a Python in tmp_path/env/bin whose mpi4py uses `mpi`; PATH is tmp_path/path."""

    def choose(mpi: str | None, choice: str | None = None, **environ: str) -> Launcher:
        monkeypatch.setattr(launchers, "installed_mpi", lambda: mpi)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "env/bin/python"))
        path = f"{tmp_path / 'path'}:{os.environ['PATH']}" if choice is None else str(tmp_path / "path")
        return find_launcher(choice, {"PATH": path, **environ})

    return choose


def test_the_one_beside_python_comes_first(tmp_path: Path, choose) -> None:  # type: ignore[no-untyped-def]
    make_launcher(tmp_path / "path", "openmpi")
    ours = make_launcher(tmp_path / "env/bin", "openmpi", "mpiexec")
    assert choose("openmpi").path == str(ours)


def test_one_of_another_library_is_passed_over(tmp_path: Path, choose) -> None:  # type: ignore[no-untyped-def]
    make_launcher(tmp_path / "env/bin", "openmpi")
    fitting = make_launcher(tmp_path / "path", "mpich")
    found = choose("mpich")
    assert (found.path, found.kind, found.major) == (str(fitting), "mpich", 4)
    assert choose(None).kind == "openmpi"


def test_no_fitting_launcher_says_what_was_found_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_launcher(tmp_path, "openmpi")
    monkeypatch.setattr(launchers, "installed_mpi", lambda: "mpich")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(LauncherError, match=r"(?s)Open MPI.*but mpi4py uses MPICH.*pip install mpich"):
        find_launcher(None, {"PATH": ""})


def test_srun_comes_first_only_on_several_nodes(tmp_path: Path, choose) -> None:  # type: ignore[no-untyped-def]
    make_launcher(tmp_path / "path", "openmpi")
    make_launcher(tmp_path / "path", "other", "srun")
    allocation = {"SLURM_JOB_ID": "7"}
    assert choose("openmpi").kind == "openmpi"
    assert choose("openmpi", **allocation, SLURM_JOB_NUM_NODES="1").kind == "openmpi"
    assert choose("openmpi", **allocation, SLURM_JOB_NUM_NODES="2").kind == "srun"


def test_options_by_kind_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def options(kind: str, major: int) -> str:
        return " ".join(Launcher("x", kind, "", major).command(3, ["--more"]))

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(launchers, "installed_mpi", lambda: "mpich")
    five, four = options("openmpi", 5), options("openmpi", 4)
    assert "--runtime-options recoverable" in five
    assert "--enable-recovery" in four
    assert "root" not in five + four
    assert "--mpi=pmi2" in options("srun", 0)
    assert "-disable-auto-cleanup" in options("mpich", 4)
    for line in (five, four, options("srun", 0), options("mpich", 4)):
        assert line.endswith(" -n 3 --more")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--allow-run-as-root" in options("openmpi", 5)


def test_installed_mpi_agrees_with_mpi4py() -> None:
    vendor = subprocess.run(
        [sys.executable, "-c", "import mpi4py; mpi4py.rc.initialize = False\n"
         "from mpi4py import MPI; print(MPI.get_vendor()[0])"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert installed_mpi() == {"Open MPI": "openmpi", "MPICH": "mpich"}[vendor]


def test_marks_of_an_outer_job_are_taken_away() -> None:
    outside = {"PATH": "/bin", "OMPI_MCA_btl": "self", "SLURM_JOB_ID": "7"}
    inside = {
        **outside,
        "OMPI_COMM_WORLD_RANK": "0",
        "PMIX_NAMESPACE": "x",
        "PRTE_LAUNCHED": "1",
        "PYPGAS_JOB_DIR": "/nowhere",
        "SLURM_PROCID": "0",
    }
    assert without_job(inside) == outside
    assert without_job(outside) == outside


# ---------------------------------------------------------------- a PE on another node


def far_pe(folder: Path, text: str) -> subprocess.Popen[str]:
    """A PE that can't find the parent's folder, as one on another node."""
    return subprocess.Popen(
        [sys.executable, child.__file__, str(folder / "not-here"), "code", text],
        env={**os.environ, "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_far_pe_runs_and_leaves_nothing(tmp_path: Path) -> None:
    far = far_pe(tmp_path, "import os; print(os.path.isdir(os.environ['PYPGAS_JOB_DIR']))")
    assert far.communicate(timeout=60) == ("True\n", "")
    assert far.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("raise ValueError('far')", 1, "PE 1 ended with exit code 1\nTraceback"),
        ("import os; os.kill(os.getpid(), 9)", 137, "PE 1 was killed by SIGKILL"),
    ],
)
def test_a_far_pe_reports_itself_and_gives_the_others_time(
    tmp_path: Path, text: str, status: int, words: str
) -> None:
    start = time.monotonic()
    far = far_pe(tmp_path, text)
    out, err = far.communicate(timeout=60)
    assert time.monotonic() - start >= child.GRACE
    assert (far.returncode, out) == (status, "")
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_a_far_pe_ends_when_its_launcher_says_so(tmp_path: Path) -> None:
    far = far_pe(tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(100)")
    assert far.stdout is not None
    worker = int(far.stdout.readline())
    far.send_signal(signal.SIGTERM)
    assert far.wait(60) == 137
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    far.communicate()
