# SPDX-License-Identifier: Apache-2.0
"""Starting and ending: once and again, on any communicator, with and without a launcher.

Each test runs programs of their own, because the job that runs the tests must stay as it is.
"""

import os
import subprocess
import sys
import textwrap

import pytest

from pypgas.testing import pes, time_limit

pytestmark = [pes(1), time_limit(120)]

LAUNCHERS = (
    "OMPI_",
    "OPAL_",
    "PRTE_",
    "PMI",
    "MPI_",
    "MPIR_",
    "HYDRA",
    "HYDI_",
    "SLURM_",
    "PYPGAS_",
    "SHMEM4PY_",
)
BEGIN = """
import warnings
import numpy as np
import pypgas as pg
from pypgas import errors

def ring():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.full(3, -1, "i4")
    pg.put(x, np.full(3, me, "i4"), (me + 1) % n)
    pg.barrier_all()
    assert np.all(x.local == (me - 1) % n)
    assert pg.reduce(1) == n
    return x
"""


def run(n, program, tmp_path, **environ):
    """Run a program on n PEs, or without a launcher if n is 0."""
    path = tmp_path / "program.py"
    path.write_text(BEGIN + textwrap.dedent(program))
    launcher = ["-m", "pypgas", "run", "-n", str(n)] if n else []
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    return subprocess.run(
        [sys.executable, *launcher, str(path)],
        env=clean | environ,
        capture_output=True,
        text=True,
        timeout=110,
    )


def succeed(n, program, tmp_path, **environ):
    result = run(n, program, tmp_path, **environ)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.mark.parametrize("n", [0, 2, 3])
def test_again_and_again(n, tmp_path):
    program = f"""
    assert not pg.is_initialized()
    for round in range(3):
        first = pg.init()
        assert first is pg.init()
        assert pg.is_initialized() and first.live
        assert pg.n_pes() == {max(n, 1)}
        x = ring()
        team, lock, ctx = pg.TEAM_WORLD.split(0), pg.Lock(), pg.Context()
        local = x.local
        if round:
            # What belongs to an earlier runtime says so.
            for use in (
                lambda: pg.put(old, np.zeros(3, "i4"), 0),
                lambda: pg.get(np.zeros(3, "i4"), old, 0),
                lambda: pg.put(old_local, np.zeros(3, "i4"), 0),
                lambda: pg.free(old), lambda: old.local, lambda: old.at(0)[...].get(),
                lambda: pg.sync(old_team), old_lock.acquire, lambda: pg.quiet(old_ctx),
            ):
                try:
                    use()
                except errors.PgasError:
                    continue
                raise AssertionError("a stale object was used")
        old, old_local, old_team, old_lock, old_ctx = x, local, team, lock, ctx
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pg.finalize()
        assert any(w.category is pg.LeakWarning and "program.py" in str(w.message) for w in caught), caught
        pg.finalize()  # nothing
        assert not pg.is_initialized() and not first.live
        try:
            pg.my_pe()
        except errors.NotInitializedError:
            pass
    """
    succeed(n, program, tmp_path)


@pytest.mark.parametrize("n", [0, 2])
def test_with_blocks_and_quiet_ends(n, tmp_path):
    program = """
    with pg.init() as runtime:
        ring().free()
    assert not pg.is_initialized()
    with pg.init():
        ring().free()
        pg.finalize()  # earlier than the block ends
    x = None
    pg.init()
    x = ring()  # the program's end finalizes
    print("done", flush=True)
    """
    result = succeed(n, program, tmp_path)
    assert result.stdout.count("done") == max(n, 1)


def test_on_a_part_of_the_processes(tmp_path):
    program = """
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    half = world.Split(world.rank % 2, -world.rank)
    pg.init(half)
    assert (pg.my_pe(), pg.n_pes()) == (half.rank, half.size)
    ring().free()
    pg.finalize()
    pg.init()
    assert (pg.my_pe(), pg.n_pes()) == (world.rank, world.size)
    ring().free()
    pg.finalize()
    alone = MPI.COMM_SELF
    with pg.init(alone):
        assert (pg.my_pe(), pg.n_pes()) == (0, 1)
        ring()
    if world.rank < 2:
        pair = world.Create_group(world.group.Incl([1, 0]))
        with pg.init(pair):
            assert pg.my_pe() == 1 - world.rank
            ring()
    assert not MPI.Is_finalized()
    assert world.allreduce(1) == 3
    """
    succeed(3, program, tmp_path)


def test_who_initialises_mpi_finalises_it(tmp_path):
    program = """
    import atexit
    import mpi4py
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    from mpi4py import MPI
    MPI.Init_thread(MPI.THREAD_MULTIPLE)
    pg.init()
    ring()
    pg.finalize()
    assert not MPI.Is_finalized()
    assert MPI.COMM_WORLD.allreduce(1) == 2
    MPI.Finalize()
    """
    succeed(2, program, tmp_path)


def test_communicators_that_are_none(tmp_path):
    program = """
    for wrong in (3, "world", object()):
        try:
            pg.init(wrong)
        except (TypeError, ValueError, errors.BootstrapError):
            assert not pg.is_initialized()
            continue
        raise AssertionError(wrong)
    pg.init()
    ring()
    """
    succeed(0, program, tmp_path)
    succeed(2, program, tmp_path)


def test_settings(tmp_path):
    program = """
    pg.init(heap_size="96M", wait_timeout=7.5)
    assert 95 * 2**20 < pg.heap_statistics().size <= 96 * 2**20
    try:
        pg.empty(2**27, "u1")
    except MemoryError as error:
        assert "heap_size" in str(error) and "PE" in str(error)
    else:
        raise AssertionError
    assert pg.info()
    pg.finalize()
    for wrong in (dict(heap_size="much"), dict(heap_size=-1), dict(no_such=1), dict(wait_timeout="x"), dict(device="tpu")):
        try:
            pg.init(**wrong)
        except (ValueError, TypeError):
            assert not pg.is_initialized()
            continue
        raise AssertionError(wrong)
    ring_again = pg.init()
    ring()
    """
    succeed(0, program, tmp_path)
    succeed(2, program, tmp_path)


def test_settings_in_the_environment(tmp_path):
    program = """
    pg.init()
    print(pg.heap_statistics().size)
    """
    result = succeed(0, program, tmp_path, PYPGAS_HEAP_SIZE="80M")
    assert int(result.stdout) == 80 * 2**20
    for wrong in ({"PYPGAS_HEAP_SIZE": "lots"}, {"PYPGAS_HAEP_SIZE": "80M"}):
        result = run(0, program, tmp_path, **wrong)
        assert result.returncode != 0
        assert "ConfigError" in result.stderr
        assert "PYPGAS_HEAP_SIZE" in result.stderr


def test_settings_must_agree(tmp_path):
    program = """
    from mpi4py import MPI
    try:
        pg.init(wait_timeout=50 + MPI.COMM_WORLD.rank)
    except errors.ConfigError as error:
        assert "wait_timeout" in str(error)
    else:
        raise AssertionError
    pg.init()
    ring()
    """
    succeed(3, program, tmp_path)


@pytest.mark.parametrize("end", ["pg.abort({})", "from pypgas import shmem; shmem.global_exit({})"])
@pytest.mark.parametrize("code", [0, 9])
def test_one_pe_ends_the_job(end, code, tmp_path):
    program = f"""
    pg.init()
    ring()
    if pg.my_pe() == 1:
        {end.format(code)}
    pg.barrier_all()
    print("went on")
    """
    result = run(3, program, tmp_path)
    assert result.returncode == code
    assert "went on" not in result.stdout


def test_shmem_again_and_again(tmp_path):
    program = """
    from pypgas import shmem
    for _ in range(3):
        me, n = shmem.my_pe(), shmem.n_pes()
        assert shmem.TEAM_WORLD.n_pes() == n
        a = shmem.zeros(1, "i4")
        lock = shmem.Lock()
        shmem.atomic_inc(a, (me + 1) % n)
        shmem.barrier_all()
        assert a[0] == 1
        shmem.finalize()
        shmem.init()
    try:
        shmem.put(a, np.zeros(1, "i4"), 0)
    except ValueError:
        pass
    else:
        raise AssertionError("a stale array was used")
    """
    succeed(2, program, tmp_path)
