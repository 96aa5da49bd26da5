# SPDX-License-Identifier: Apache-2.0
"""Every device function of NVSHMEM, run on the CPU device and checked against NumPy."""

import numpy as np
import pytest
from nvshmem_cases import SLOT, UNTOUCHED, Batch, Job, Kernel, batches

import pypgas as pg
from pypgas.testing import pes, time_limit

THREADS = {"thread": 1, "warp": 32, "block": 48}
BATCHES = batches()
KERNELS = [pytest.param(batch, kernel, id=kernel.name) for batch in BATCHES for kernel in batch.kernels]


@pytest.fixture(scope="module")
def modules():
    """All batches; each PE compiles its share of them into the cache before the first test.

    They are compiled without optimisation: there are some two thousand functions, and each is called once.
    """
    made = {batch.name: pg.Module(batch.source(), options={"cpu": ["-O0"]}) for batch in BATCHES}
    for batch in BATCHES[pg.my_pe() :: pg.n_pes()]:
        made[batch.name].kernel(batch.kernels[0].name)
    return made


def slots(kernel: Kernel, pe: int) -> tuple[np.ndarray, np.ndarray]:
    """What the source and the target of a PE hold before the kernel."""
    random = np.random.default_rng(pe)
    source = random.integers(0, 256, (len(kernel.calls), SLOT), np.uint8)
    target = np.full_like(source, UNTOUCHED)
    same = np.random.default_rng(99)
    for i, call in enumerate(kernel.calls):
        if call.prepare:
            call.prepare(source[i], target[i], same if kernel.name == "atomics" else random)
    return source, target


@pes(2, 3)
@time_limit(240)
@pytest.mark.parametrize(("batch", "kernel"), KERNELS)
def test_functions(modules, batch: Batch, kernel: Kernel):
    me, n = pg.my_pe(), pg.n_pes()
    job = Job(me, n, [slots(kernel, pe)[0] for pe in range(n)])
    expected = slots(kernel, me)[1]
    source, target = pg.array(job.sources[me]), pg.array(expected)
    signals = pg.full(len(kernel.calls), 1000, "u8")
    reversed_team = pg.TEAM_WORLD.split_strided(n - 1, -1, n)
    run = modules[batch.name].kernel(kernel.name)[1, THREADS[kernel.scope]]
    pg.barrier_all()
    run(target, source, signals, job.right, reversed_team)
    pg.barrier_all()
    wanted = np.full(len(kernel.calls), 1000, "u8")
    for i, call in enumerate(kernel.calls):
        call.expect(expected[i], job, i)
        if call.signal:
            wanted[i] = call.signal[1] + (1000 if call.signal[0] == "ADD" else 0)
    wrong = [call.name for i, call in enumerate(kernel.calls) if (target.local[i] != expected[i]).any()]
    assert wrong == []
    assert [call.name for i, call in enumerate(kernel.calls) if signals.local[i] != wanted[i]] == []
    reversed_team.destroy()
    for array in (target, source, signals):
        array.free()


@pes(2)
def test_the_number_of_a_destroyed_team_is_no_team():
    source = """
    #include <nvshmem.h>
    __global__ void ask(int *x, nvshmem_team_t team) { x[0] = nvshmem_team_n_pes(team); }
    __global__ void meet(nvshmem_team_t team) { nvshmem_barrier(team); }
    """
    module = pg.Module(source, name="teams")
    x = np.zeros(1, "i4")
    team = pg.TEAM_WORLD.split_strided(0, 1, 2)
    number = team._id
    module.kernel("ask")[1, 1](x, team)
    pg.synchronize()
    assert x[0] == 2
    team.destroy()
    with pytest.raises(pg.StaleArrayError, match="destroyed"):
        module.kernel("ask")[1, 1](x, team)
    module.kernel("ask")[1, 1](x, number)
    pg.synchronize()
    assert x[0] == -1
    module.kernel("meet")[1, 1](number)
    with pytest.raises(pg.KernelError, match="no team of that number"):
        pg.synchronize()
