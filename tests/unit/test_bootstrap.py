# SPDX-License-Identifier: Apache-2.0
"""Choosing a bootstrap from the environment, and the job of one PE."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pypgas.bootstrap import SingleBootstrap
from pypgas.bootstrap.mpi import set_open_mpi_defaults
from pypgas.bootstrap.select import detect_launch

REPO = Path(__file__).parents[2]

LAUNCHER_PREFIXES = ("OMPI_", "PMI", "PMIX_", "MPI_LOCAL", "SLURM_", "PRTE_", "MV2_")


def run_alone(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a new process that no launcher started, with ``environ`` added."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_PREFIXES)}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "PYTHONPATH": str(REPO), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "PMIX_RANK": "2"}, (4, 2)),
        ({"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}, (1, 0)),
        ({"PMI_SIZE": "3", "PMI_RANK": "1", "MPI_LOCALNRANKS": "2"}, (3, 1)),
        ({"MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "1"}, (2, 1)),
        ({"PMIX_RANK": "5", "PMIX_NAMESPACE": "x"}, (0, 5)),
        # A step that srun started.
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_NTASKS": "8"}, (8, 3)),
        # A step smaller than its allocation.
        (
            {
                "SLURM_STEP_ID": "1",
                "SLURM_PROCID": "0",
                "SLURM_NTASKS": "8",
                "SLURM_STEP_NUM_TASKS": "2",
            },
            (2, 0),
        ),
        # A batch script: one process, however many tasks the allocation has.
        ({"SLURM_NTASKS": "8", "SLURM_JOB_ID": "17"}, None),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, None),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_STEP_ID": "batch"}, None),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967291"}, None),
        # An interactive allocation's shell is a pseudo-step too.
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967290"}, None),
        # mpirun inside an srun step: the inner launcher counts.
        (
            {
                "SLURM_STEP_ID": "0",
                "SLURM_PROCID": "0",
                "SLURM_NTASKS": "2",
                "PMI_SIZE": "16",
                "PMI_RANK": "9",
            },
            (16, 9),
        ),
        ({"OMPI_COMM_WORLD_SIZE": "", "PMI_SIZE": "junk"}, None),
    ],
    ids=str,
)
def test_launcher_environments(environ: dict[str, str], expected: tuple[int, int | None] | None) -> None:
    launch = detect_launch(environ)
    if expected is None:
        assert launch is None
    else:
        assert launch is not None
        assert (launch.size, launch.rank) == expected
        assert launch.evidence.split("=")[0] in environ


def test_the_single_bootstrap() -> None:
    single = SingleBootstrap()
    assert (single.name, single.rank, single.size) == ("single", 0, 1)
    assert single.allgather("x") == ["x"]
    assert single.bcast(3) == 3
    single.barrier()
    with pytest.raises(ValueError, match="root 1"):
        single.bcast(3, root=1)
    single.finalize()
    single.finalize()


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"},
        {"PMI_SIZE": "1", "PMI_RANK": "0"},
        {"SLURM_NTASKS": "8"},
    ],
    ids=str,
)
def test_alone_touches_no_mpi(environ: dict[str, str]) -> None:
    done = run_alone(
        "import sys; sys.modules['mpi4py'] = None\n"  # importing it would raise
        "from pypgas.bootstrap import choose\n"
        "print(choose().name)",
        **environ,
    )
    assert (done.stdout, done.stderr) == ("single\n", "")


def test_importing_has_no_side_effects() -> None:
    done = run_alone(
        "import sys, threading, atexit, os, logging, weakref, concurrent.futures\n"
        "before, hooks = dict(os.environ), atexit._ncallbacks()\n"
        "import pypgas.bootstrap, pypgas.config\n"
        "assert 'mpi4py' not in sys.modules\n"
        "assert threading.active_count() == 1\n"
        "assert atexit._ncallbacks() == hooks\n"
        "assert dict(os.environ) == before\n"
    )
    assert done.returncode == 0, done.stderr


def test_a_launched_job_without_mpi4py_is_an_error() -> None:
    done = run_alone(
        "import sys; sys.modules['mpi4py'] = None\n"
        "from pypgas.bootstrap import choose\n"
        "from pypgas.errors import BootstrapError\n"
        "try: choose()\n"
        "except BootstrapError as error: print(error)",
        PMI_SIZE="2",
        PMI_RANK="1",
    )
    assert done.stdout.startswith("PE 1: init: started by "), done.stderr
    assert "PMI_SIZE=2" in done.stdout
    assert "pip install mpi4py" in done.stdout


def test_silent_singletons_are_an_error() -> None:
    pytest.importorskip("mpi4py")
    done = run_alone(
        "from pypgas.bootstrap import choose\n"
        "from pypgas.errors import BootstrapError\n"
        "try: choose()\n"
        "except BootstrapError as error: print(error)",
        OMPI_COMM_WORLD_SIZE="2",
        OMPI_COMM_WORLD_RANK="1",
    )
    assert done.stdout.startswith("PE 1: init: Open MPI's mpirun started 2 processes"), done.stderr
    assert "OMPI_COMM_WORLD_SIZE=2" in done.stdout
    assert "run alone" in done.stdout
    assert "pypgas run" in done.stdout
    assert done.returncode == 0


def test_comm_self_is_a_job_of_its_own_whatever_the_environment_says() -> None:
    pytest.importorskip("mpi4py")
    done = run_alone(
        "from mpi4py import MPI\n"
        "from pypgas.bootstrap import choose\n"
        "b = choose(MPI.COMM_SELF)\n"
        "print(b.name, b.rank, b.size)",
        OMPI_COMM_WORLD_SIZE="2",
        OMPI_COMM_WORLD_RANK="1",
    )
    assert done.stdout == "mpi 0 1\n", done.stderr


@pytest.mark.parametrize(
    ("comm", "error"),
    [
        ("3", "InvalidTypeError: PE ?: init: comm must be an mpi4py communicator, not int"),
        ("MPI.COMM_NULL", "BootstrapError: PE ?: init: comm is COMM_NULL"),
    ],
)
def test_bad_communicators(comm: str, error: str) -> None:
    pytest.importorskip("mpi4py")
    done = run_alone(
        "from mpi4py import MPI\n"
        "from pypgas.bootstrap import choose\n"
        f"try: choose({comm})\n"
        "except Exception as error: print(type(error).__name__, error, sep=': ')",
    )
    assert done.stdout.startswith(error), done.stderr


def test_open_mpi_defaults_leave_choices_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_devices = (str(tmp_path / "none"),)
    monkeypatch.setattr("pypgas.bootstrap.mpi._RDMA_CLASSES", no_devices)
    home = {"HOME": str(tmp_path)}

    environ = dict(home)
    set_open_mpi_defaults(environ)
    assert environ == {**home, "OMPI_MCA_btl": "^ofi", "OMPI_MCA_osc": "^ucx"}

    environ = {**home, "OMPI_MCA_btl": "self,sm"}
    set_open_mpi_defaults(environ)
    assert environ == {**home, "OMPI_MCA_btl": "self,sm", "OMPI_MCA_osc": "^ucx"}

    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi" / "mca-params.conf").write_text("btl = tcp,self\n")
    environ = dict(home)
    set_open_mpi_defaults(environ)
    assert environ == home


def test_open_mpi_defaults_spare_machines_with_rdma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypgas.bootstrap.mpi._RDMA_CLASSES", (str(tmp_path / "infiniband"),))
    (tmp_path / "infiniband" / "mlx5_0").mkdir(parents=True)
    environ = {"HOME": str(tmp_path)}
    set_open_mpi_defaults(environ)
    assert environ == {"HOME": str(tmp_path)}
