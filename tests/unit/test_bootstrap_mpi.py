# SPDX-License-Identifier: Apache-2.0
"""The MPI bootstrap in real jobs, started by the mpirun beside this Python (or on the path)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]

LAUNCHER_PREFIXES = ("OMPI_", "PMI", "PMIX_", "MPI_LOCAL", "SLURM_", "PRTE_", "MV2_")

PREAMBLE = """
import os, sys, time
from pypgas.bootstrap import NodeSockets, choose
from pypgas.bootstrap import mpi as mpi_module
from pypgas.errors import BootstrapError
"""


def mpirun() -> list[str]:
    """Return the command that starts PEs, without their number."""
    beside = Path(sys.executable).parent / "mpirun"
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if found is None:
        pytest.skip("no mpirun")
    version = subprocess.run(
        [found, "--version"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    return [found, "--oversubscribe"] if "Open MPI" in version else [found]


def run_job(n: int, code: str, *, limit: float = 60, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` on ``n`` PEs and return the finished job."""
    pytest.importorskip("mpi4py")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_PREFIXES)}
    clean |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    program = PREAMBLE + textwrap.dedent(code)
    return subprocess.run(
        [*mpirun(), "-n", str(n), sys.executable, "-c", program],
        env={**clean, "PYTHONPATH": str(REPO), **environ},
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def assert_ok(job: subprocess.CompletedProcess[str], lines: list[str]) -> None:
    assert job.returncode == 0, job.stdout + job.stderr
    assert sorted(job.stdout.split("\n")) == sorted([*lines, ""])
    assert job.stderr == ""


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_job(n: int) -> None:
    job = run_job(
        n,
        """
        b = choose()
        assert b.allgather(("pe", b.rank)) == [("pe", pe) for pe in range(b.size)]
        assert [b.bcast(b.rank, root) for root in range(b.size)] == list(range(b.size))
        b.barrier()
        sockets = NodeSockets(b)
        assert len(sockets.peers) == b.size - 1
        sockets.close()
        os.write(1, f"{b.name} {b.rank}/{b.size} {b.thread_multiple}\\n".encode())
        b.finalize()
        b.finalize()
        """,
    )
    assert_ok(job, [f"mpi {pe}/{n} True" for pe in range(n)])


def test_one_pe_under_mpirun_needs_no_mpi() -> None:
    job = run_job(1, "sys.modules['mpi4py'] = None; print(choose().name)")
    assert_ok(job, ["single"])


def test_bootstrapping_twice_in_one_process() -> None:
    job = run_job(
        2,
        """
        for round in range(3):
            b = choose()
            assert b.allgather(round) == [round] * 2
            b.finalize()
        """,
    )
    assert_ok(job, [])


def test_sub_communicators_are_jobs_of_their_own() -> None:
    job = run_job(
        4,
        """
        from mpi4py import MPI
        world = MPI.COMM_WORLD
        half = world.Split(world.rank % 2, key=-world.rank)
        b = choose(half)
        assert (b.rank, b.size) == (half.rank, 2)
        assert b.allgather(world.rank) == sorted([world.rank, (world.rank + 2) % 4], reverse=True)
        assert sorted(NodeSockets(b).peers) == [1 - b.rank]
        # A message of the program that is under way is not taken for one of ours.
        request = half.isend("theirs", dest=1 - half.rank)
        assert b.allgather(b.rank) == [0, 1]
        assert half.recv(source=1 - half.rank) == "theirs"
        request.wait()
        b.finalize()
        half.Free()
        """,
    )
    assert_ok(job, [])


def test_an_mpi_that_the_program_initialised_stays_the_programs() -> None:
    job = run_job(
        2,
        """
        import mpi4py
        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        from mpi4py import MPI
        MPI.Init_thread(MPI.THREAD_SERIALIZED)
        b = choose()
        assert not b.thread_multiple or MPI.Query_thread() == MPI.THREAD_MULTIPLE
        b.barrier()
        b.finalize()
        assert MPI.COMM_WORLD.allgather(1) == [1, 1]
        import atexit
        # Registered last, runs first; ours would be among the hooks that run before the next.
        mpi_module.atexit.register(lambda: MPI.Is_finalized() or MPI.Finalize())
        """,
    )
    assert_ok(job, [])


def test_mpi4py_that_initialised_mpi_at_import_finalises_it() -> None:
    job = run_job(
        2,
        """
        import atexit
        from mpi4py import MPI
        atexit.register(lambda: os.write(1, b"finalized %d\\n" % MPI.Is_finalized()))
        b = choose()
        b.barrier()
        """,
    )
    assert_ok(job, ["finalized 0"] * 2)


def test_pypgas_finalises_what_it_initialised_only_at_exit() -> None:
    job = run_job(
        2,
        """
        import atexit
        atexit.register(lambda: os.write(1, b"at exit %d\\n" % MPI.Is_finalized()))
        b = choose()
        b.finalize()
        from mpi4py import MPI
        assert not MPI.Is_finalized()
        """,
    )
    assert_ok(job, ["at exit 1"] * 2)


def test_an_mpi_finalised_early_is_left_alone() -> None:
    job = run_job(
        2,
        """
        b = choose()
        from mpi4py import MPI
        MPI.Finalize()
        try: b.barrier()
        except BootstrapError as error: os.write(1, f"{error}\\n".encode())
        b.finalize()
        try: choose()
        except BootstrapError as error: os.write(1, f"{error}\\n".encode())
        """,
    )
    assert job.returncode == 0, job.stderr
    assert job.stdout.count(": barrier: MPI has been finalized") == 2
    assert job.stdout.count("can't be initialized again") == 2


@pytest.mark.parametrize("hook", ["", "sys.excepthook = lambda *parts: os.write(2, b'boom')"])
def test_leaving_by_an_exception_does_not_wait_for_the_others(hook: str) -> None:
    job = run_job(
        2,
        f"""
        import atexit
        atexit.register(lambda: os.write(1, b"early hook %d\\n" % b.rank))
        b = choose()
        {hook}
        if b.rank == 1:
            print("buffered", end="")
            raise ValueError("boom")
        b.barrier()
        """,
        limit=30,
    )
    assert job.returncode == 1
    assert "early hook 1" in job.stdout
    assert "buffered" in job.stdout
    assert job.stderr.count("boom") >= 1


def test_an_interrupt_ends_a_pe_as_an_interrupt() -> None:
    job = run_job(
        2,
        """
        import signal
        b = choose()
        if b.rank == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        b.barrier()
        """,
        limit=30,
    )
    assert job.returncode in (130, 2, -2)
    assert "KeyboardInterrupt" in job.stderr


def test_an_exception_that_a_tool_showed_and_survived_is_no_reason_to_skip_mpi() -> None:
    job = run_job(
        2,
        """
        import atexit
        atexit.register(lambda: os.write(1, b"finalized %d\\n" % MPI.Is_finalized()))
        b = choose()
        from mpi4py import MPI
        def cell():
            raise ValueError("shown")
        try:
            cell()
        except ValueError as error:
            # What a notebook does after a failed cell; its frames start in the cell.
            error.__traceback__ = error.__traceback__.tb_next
            sys.last_type, sys.last_value, sys.last_traceback = (
                type(error), error, error.__traceback__)
        """,
    )
    assert_ok(job, ["finalized 1"] * 2)


def test_exit_codes_pass_through() -> None:
    assert run_job(2, "b = choose(); sys.exit(0)").returncode == 0
    assert run_job(2, "b = choose(); sys.exit(7)").returncode == 7


def test_leave_without_mpi_holds_to_the_end() -> None:
    job = run_job(
        2,
        """
        b = choose()
        if b.rank == 1:
            mpi_module.leave_without_mpi()
            try: b.barrier()
            except BootstrapError as error: assert "may not enter MPI" in str(error)
            b.finalize()
            try: choose()
            except BootstrapError as error: assert "start the program again" in str(error)
            sys.stdout.write("bye")
            sys.exit(5)
        b.barrier()
        """,
        limit=30,
    )
    assert job.returncode == 5
    assert "bye" in job.stdout


def test_a_forked_child_never_touches_mpi() -> None:
    job = run_job(
        2,
        """
        b = choose()
        pid = os.fork()
        if pid == 0:
            assert not mpi_module.mpi_is_usable()
            sys.exit(0)  # runs the exit hooks it inherited
        assert os.waitpid(pid, 0)[1] == 0
        assert b.allgather(b.rank) == [0, 1]
        """,
        limit=30,
    )
    assert_ok(job, [])


def test_a_job_inside_a_job_of_one_pe() -> None:
    """A child process of a PE inherits the launcher's variables, and COMM_SELF is its way out."""
    job = run_job(
        2,
        """
        # Opening it is left to the child: MPI may be initialised once per PE only.
        b = choose()
        b.barrier()
        from mpi4py import MPI
        alone = choose(MPI.COMM_SELF)
        assert (alone.rank, alone.size) == (0, 1)
        alone.finalize()
        """,
    )
    assert_ok(job, [])


def test_one_sided_windows_of_the_program_are_silent() -> None:
    job = run_job(
        2,
        """
        b = choose()
        from mpi4py import MPI
        MPI.Win.Allocate(64, comm=MPI.COMM_WORLD).Free()
        """,
    )
    assert_ok(job, [])


def test_mpich_under_open_mpis_launcher_is_explained() -> None:
    mpi = pytest.importorskip("mpi4py")
    del mpi
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_PREFIXES)}
    vendor = subprocess.run(
        [
            sys.executable,
            "-c",
            "import mpi4py; mpi4py.rc.initialize = False\nfrom mpi4py import MPI; print(MPI.get_vendor()[0])",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=clean,
    ).stdout.strip()
    if vendor != "MPICH":
        pytest.skip("needs mpi4py on MPICH")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PREAMBLE + "try: choose()\nexcept BootstrapError as error: print(error)",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={
            **clean,
            "PYTHONPATH": str(REPO),
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_RANK": "1",
            "PMIX_RANK": "1",
        },
    )
    assert done.stdout.startswith("PE 1: init: Open MPI's mpirun started 2 processes"), done.stderr
    assert "can't talk to that launcher" in done.stdout
    assert "MPICH" in done.stdout
