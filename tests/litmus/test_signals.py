# SPDX-License-Identifier: Apache-2.0
"""Rules 10 to 14: put with signal, and what a wait that ends makes visible."""

import numpy as np
import pytest
from litmus_kit import next_pe, relax, rounds

import pypgas as pg


@pytest.mark.parametrize("op", [pg.SIGNAL_SET, pg.SIGNAL_ADD], ids=["set", "add"])
@pytest.mark.parametrize(
    ("length", "share"), [(1, 1), (300, 1), (50_000, 50)], ids=["short", "medium", "long"]
)
def test_put_signal_brings_its_data(op, length, share):
    """Rule 10: whoever sees the signal sees the data, with no fence."""
    to = next_pe()
    data = pg.zeros(length, "u8")
    signal = pg.zeros(1, "u8")
    mine = np.empty(length, "u8")
    last = max(1, len(rounds(6000)) // share)
    for r in range(1, last + 1):
        mine.fill(r)
        pg.put_signal(data, mine, signal, r if op is pg.SIGNAL_SET else 1, to, op=op)
        seen = pg.signal_fetch(signal)
        assert data.local.min() >= seen
        pg.fence()  # this round's data before the next one's
    pg.signal_wait_until(signal, pg.GE, last)
    assert (data.local == last).all()
    pg.barrier_all()


def test_fence_before_put_signal():
    """Rule 11: an earlier put is behind the signal only because of the fence between them."""
    to = next_pe()
    early, data = pg.zeros(100, "u8"), pg.zeros(4, "u8")
    signal = pg.zeros(1, "u8")
    mine = np.empty(100, "u8")
    for r in rounds(6000):
        mine.fill(r)
        pg.put(early, mine, to)
        pg.fence()
        pg.put_signal_nbi(data, mine[:4], signal, r, to)
        seen = pg.signal_fetch(signal)
        assert early.local.min() >= seen
        assert data.local.min() >= seen
        pg.quiet()  # `mine` is about to change
    pg.signal_wait_until(signal, pg.GE, r)
    assert (early.local == r).all()
    pg.barrier_all()


def _test(flags, r):
    while not pg.test(flags[0], pg.GE, r):
        relax()


def _test_all(flags, r):
    while not pg.test_all(flags, pg.GE, r):
        relax()


def _test_any(flags, r):
    while pg.test_any(flags, pg.GE, r) is None:
        relax()


def _signal_fetch(flags, r):
    while pg.signal_fetch(flags[0]) < r:
        relax()


def _atomic_fetch(flags, r):
    while pg.atomic_fetch(flags, pg.my_pe(), index=0) < r:
        relax()


def _any(flags, r):
    assert pg.wait_until_any(flags, pg.GE, r) in (0, 1)


def _some(flags, r):
    assert len(pg.wait_until_some(flags, pg.GE, r)) >= 1


WAITS = {
    "wait_until": lambda flags, r: pg.wait_until(flags[0], pg.GE, r),
    "signal_wait_until": lambda flags, r: pg.signal_wait_until(flags[0], pg.GE, r),
    "wait_until_all": lambda flags, r: pg.wait_until_all(flags, pg.GE, r),
    "wait_until_any": _any,
    "wait_until_some": _some,
    "test": _test,
    "test_all": _test_all,
    "test_any": _test_any,
    "signal_fetch": _signal_fetch,
    "atomic_fetch": _atomic_fetch,
}


@pytest.mark.parametrize("wait", WAITS)
def test_waits_acquire(wait):
    """Rule 12: after a wait, loads and gets find what the writer did before it raised the flag."""
    me, to = pg.my_pe(), next_pe()
    wait_for = WAITS[wait]
    data = pg.zeros((4, 32), "u8")
    flags = pg.zeros(2, "u8")
    first, second = flags[0], flags[1]
    mine, found = np.empty(32, "u8"), np.empty(32, "u8")
    rows = [data[i] for i in range(4)]
    for r in rounds(1000):
        mine.fill(r)
        pg.put(rows[r % 4], mine, to)
        pg.fence()
        pg.p(first, r, to)
        pg.p(second, r, to)
        wait_for(flags, r)
        # The writer may be ahead of this PE by as many rounds as there are other PEs.
        assert data.local[r % 4].min() >= r
        pg.get(found, rows[r % 4], me)
        assert found.min() >= r
    pg.barrier_all()


def test_signal_wait_returns_what_it_saw():
    """Rule 13: the value returned satisfies the comparison and was in the signal; it brings its data."""
    to = next_pe()
    data = pg.zeros(16, "u8")
    signal = pg.zeros(1, "u8")
    mine = np.empty(16, "u8")
    seen = 0
    count = len(rounds(4000))
    for r in rounds(4000):
        mine.fill(r)
        pg.put_signal(data, mine, signal, r, to)
        if r % 8 == 0:
            value = pg.signal_wait_until(signal, pg.GT, seen, timeout=60) if seen < count else seen
            assert seen <= value <= count
            assert data.local.min() >= value
            seen = value
        pg.fence()  # this round's data before the next one's
    assert pg.signal_wait_until(signal, pg.EQ, count) == count
    pg.barrier_all()


def test_signal_adds_lose_nothing():
    """Rule 14: additions to one signal by all PEs at once all count."""
    me, n = pg.my_pe(), pg.n_pes()
    signal = pg.zeros(1, "u8")
    data = pg.zeros(n, "u8")
    element = data[me : me + 1]
    one = np.ones(1, "u8")
    for _ in rounds(2000):
        for pe in range(n):
            pg.signal_add(signal, 3, pe)
            pg.put_signal(element, one, signal, 1, pe, op=pg.SIGNAL_ADD)
    pg.barrier_all()
    assert pg.signal_fetch(signal) == 4 * n * len(rounds(2000))
    pg.barrier_all()
