# SPDX-License-Identifier: Apache-2.0
"""Time limits of collective calls: who is missing is named, and the team can be used again."""

import time

import numpy as np
import pytest

import pypgas as pg
from pypgas.testing import exchange, pes

CALLS = {
    "barrier": lambda **k: pg.barrier(**k),
    "barrier_all": lambda **k: pg.barrier_all(**k),
    "sync_all": lambda **k: pg.sync_all(**k),
    "reduce": lambda **k: pg.reduce(1, **k),
    "broadcast": lambda **k: pg.broadcast(np.zeros(100_000), 0, **k),
    "collect": lambda **k: pg.collect(np.zeros(pg.my_pe() + 1), **k),
    "alltoall": lambda **k: pg.alltoall(np.zeros((pg.n_pes(), 3)), **k),
    "inclusive_scan": lambda **k: pg.inclusive_scan(np.arange(1000), **k),
}


@pes(2, 3, 4)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_giving_up_and_going_on(call):
    last = pg.n_pes() - 1
    start = time.monotonic()
    if pg.my_pe() != last:
        with pytest.raises(pg.WaitTimeoutError) as caught:
            call(timeout=0.05)
        assert time.monotonic() - start < 5
        assert last in caught.value.missing
        assert pg.my_pe() not in caught.value.missing
    exchange(None)  # without pypgas: everybody has given up
    call()
    assert pg.reduce(1) == pg.n_pes()


@pes(2, 3, 4)
def test_late_is_in_time():
    for late in range(pg.n_pes()):
        if pg.my_pe() == late:
            time.sleep(0.1)
        pg.barrier_all(timeout=20)
        assert pg.reduce(1, timeout=20) == pg.n_pes()


@pes(2, 3, 4)
def test_giving_up_races_with_arriving():
    """Whatever each PE experiences, it fits: all pass, or those that gave up have not been counted."""
    me, n = pg.my_pe(), pg.n_pes()
    team = pg.TEAM_WORLD.split(0)
    rng = np.random.default_rng(me)
    for _ in range(60):
        time.sleep(rng.random() * 0.002)
        passed = False
        while not passed:
            try:
                pg.sync(team, timeout=rng.random() * 0.002)
                passed = True
            except pg.WaitTimeoutError:
                pass
    counts = pg.fcollect(np.array([60]))
    assert list(counts) == [60] * n
    team.destroy()
