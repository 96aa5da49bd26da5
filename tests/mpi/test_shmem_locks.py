# SPDX-License-Identifier: Apache-2.0
"""pypgas.shmem: locks, and what the module says about itself."""

import os
import subprocess
import sys

import numpy as np
import pytest

import pypgas as pg
from pypgas import rc, shmem
from pypgas.testing import pes


def count_once(counter, pe):
    """Add one to a counter on pe without atomics, as only a lock makes safe."""
    value = np.zeros(1, counter.dtype)
    shmem.get(value, counter, pe)
    value += 1
    shmem.put(counter, value, pe)


def test_functions():
    n = shmem.n_pes()
    lock = shmem.new_lock()
    counter = shmem.zeros(1, "i4")
    for pe in range(n):
        shmem.set_lock(lock)
        count_once(counter, pe)
        shmem.clear_lock(lock)
        while shmem.test_lock(lock):
            pass
        count_once(counter, pe)
        shmem.clear_lock(lock)
    shmem.barrier_all()
    assert counter[0] == 2 * n
    shmem.del_lock(lock)


def test_objects():
    n = shmem.n_pes()
    lock = shmem.Lock()
    counter = shmem.zeros(1, "i4")
    for pe in range(n):
        assert lock.acquire() is True
        count_once(counter, pe)
        lock.release()
        while not lock.acquire(blocking=False):
            pass
        count_once(counter, pe)
        lock.release()
        with lock as nothing:
            assert nothing is None
            count_once(counter, pe)
    shmem.barrier_all()
    assert counter[0] == 3 * n
    lock.destroy()
    lock.destroy()
    with pytest.raises(RuntimeError):
        lock.acquire()


def test_only_locks_are_locks():
    with pytest.raises(TypeError):
        shmem.set_lock(np.zeros(1, "i8"))


def test_the_module_knows_what_it_is():
    assert shmem.info_get_version() == (shmem.MAJOR_VERSION, shmem.MINOR_VERSION)
    assert shmem.info_get_version() >= (1, 5)
    assert shmem.info_get_name() == shmem.VENDOR_STRING
    assert pg.__version__ in shmem.VENDOR_STRING
    assert shmem.query_thread() in list(shmem.THREAD)
    assert shmem.init_thread(shmem.THREAD_SINGLE) == shmem.query_thread()
    with pytest.raises(ValueError):
        shmem.init_thread(17)
    shmem.init()  # was done at import
    for level in (0, 1, 2):
        shmem.pcontrol(level)
    assert all(hasattr(shmem, name) for name in shmem.__all__)


def test_options_are_checked():
    with pytest.raises(TypeError):
        rc(no_such_option=1)
    with pytest.raises(TypeError):
        rc.no_such_option = 1
    rc(finalize=rc.finalize, threads=rc.threads)
    rc.thread_level = rc.thread_level
    assert repr(rc) == "<pypgas.rc>"


@pes(1)
@pytest.mark.parametrize(
    ("before", "after", "environ"),
    [
        ("", "assert pg.is_initialized()", {}),
        ("rc.initialize = False", "assert not pg.is_initialized(); shmem.init(); shmem.my_pe()", {}),
        ("", "assert not pg.is_initialized()", {"SHMEM4PY_RC_INITIALIZE": "no"}),
        ("rc.threads = True; rc.thread_level = 'single'", "assert pg.is_initialized()", {}),
        ("", "shmem.finalize(); assert not pg.is_initialized()", {"SHMEM4PY_RC_FINALIZE": "0"}),
        ("", "a = shmem.zeros(4)", {"SHMEM4PY_RC_THREADS": "yes", "SHMEM4PY_RC_THREAD_LEVEL": "single"}),
    ],
)
def test_options_at_import(before, after, environ):
    program = f"import pypgas as pg; from pypgas import rc; {before}\nfrom pypgas import shmem\n{after}"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=alone(environ),
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.returncode == 0, result.stderr


def alone(extra):
    """An environment in which a new process is a job of its own."""
    launchers = ("OMPI_", "PMI", "PMIX", "MPI_LOCAL", "HYDRA", "SLURM_", "PRTE_", "PYPGAS_")
    return {k: v for k, v in os.environ.items() if not k.startswith(launchers)} | extra
