# SPDX-License-Identifier: Apache-2.0
"""Puts with signals, waits and tests."""

import time

import numpy as np
import pytest

import pypgas as pg
from pypgas.testing import pes

DTYPES = ["i2", "i4", "i8", "u2", "u4", "u8"]
HOLDS = {  # whether 5 compares to 4, 5, 6
    "EQ": (False, True, False),
    "NE": (True, False, True),
    "GT": (True, False, False),
    "GE": (True, True, False),
    "LT": (False, False, True),
    "LE": (False, True, True),
}


def ring():
    me, n = pg.my_pe(), pg.n_pes()
    return me, (me + 1) % n, (me - 1) % n


@pytest.mark.parametrize("put", ["put_signal", "put_signal_nbi"])
@pytest.mark.parametrize("size", [0, 1, 7, 1000, 300_000])
def test_who_sees_the_signal_sees_the_data(put, size):
    me, to, of = ring()
    x = pg.zeros(size, "i4")
    signal = pg.zeros(2, "u8")
    for step in range(1, 11):
        source = np.full(size, 100 * me + step, "i4")
        getattr(pg, put)(x, source, signal[0], step, to)
        assert pg.signal_wait_until(signal[0], pg.GE, step) == step
        assert np.all(x.local == 100 * of + step)
        pg.quiet()
        pg.signal_add(signal[1], 1, of)
        pg.signal_wait_until(signal[1], pg.GE, step)


def test_strided_put_with_signal():
    me, to, of = ring()
    x = pg.zeros((6, 8), "f8")
    signal = pg.zeros((), "u8")
    pg.put_signal(x[::-2, 1::3], np.arange(9.0).reshape(3, 3).T + me, signal, 1, to)
    pg.signal_wait_until(signal, pg.EQ, 1)
    expected = np.zeros((6, 8))
    expected[::-2, 1::3] = np.arange(9.0).reshape(3, 3).T + of
    assert np.array_equal(x.local, expected)


def test_signal_operations():
    me, to, of = ring()
    x = pg.zeros(1, "i4")
    signal = pg.zeros(1, "u8")
    pg.put_signal(x, np.array([me], "i4"), signal, 5, to, op=pg.SIGNAL_SET)
    pg.signal_wait_until(signal, pg.EQ, 5)
    pg.barrier_all()
    pg.put_signal(x, np.array([me], "i4"), signal, 7, to, op=pg.SIGNAL_ADD)
    assert pg.signal_wait_until(signal, pg.NE, 5) == 12
    pg.barrier_all()
    pg.signal_set(signal, 2**64 - 1, to)
    pg.signal_wait_until(signal, pg.EQ, 2**64 - 1)
    pg.barrier_all()
    pg.signal_add(signal, 2, to)  # wraps around
    assert pg.signal_wait_until(signal, pg.LT, 10) == 1
    assert pg.signal_fetch(signal) == 1
    assert type(pg.signal_fetch(signal)) is int
    assert x.local[0] == of


def test_added_signals_are_counted():
    n = pg.n_pes()
    x = pg.zeros(n, "i8")
    signal = pg.zeros(1, "u8")
    for _ in range(50):
        pg.put_signal(x[pg.my_pe()], np.array(pg.my_pe() + 1), signal, 1, 0, op=pg.SIGNAL_ADD)
    if pg.my_pe() == 0:
        assert pg.signal_wait_until(signal, pg.EQ, 50 * n) == 50 * n
        assert np.array_equal(x.local, np.arange(1, n + 1))
    pg.barrier_all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_comparison(dtype):
    x = pg.full(1, 5, dtype)
    for name, expected in HOLDS.items():
        cmp = getattr(pg, name)
        assert cmp is pg.Compare[name]
        for value, holds in zip((4, 5, 6), expected, strict=True):
            assert pg.test(x, cmp, value) is holds
            if holds:
                pg.wait_until(x, cmp, value)
            else:
                with pytest.raises(pg.WaitTimeoutError):
                    pg.wait_until(x, cmp, value, timeout=0.0)


def test_comparison_in_the_variables_own_type():
    for dtype in ("u2", "u4", "u8"):
        x = pg.full(1, np.iinfo(dtype).max // 2 + 1, dtype)
        assert pg.test(x, pg.GT, 1)
        assert not pg.test(x, pg.LT, 1)
    for dtype in ("i2", "i4", "i8"):
        x = pg.full(1, -1, dtype)
        assert pg.test(x, pg.LT, 0)
        assert pg.test(x, pg.EQ, -1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_waits_see_puts_of_every_size(dtype):
    _, to, of = ring()
    x = pg.zeros(3, dtype)
    for step in range(1, 30):
        pg.p(x[1], step, to)
        pg.wait_until(x[1], pg.GE, step)
        pg.p(x[2], step, of)
        pg.wait_until(x[2], pg.GE, step)
    assert x.local[0] == 0


def test_waiting_for_several():
    me, n = pg.my_pe(), pg.n_pes()
    flags = pg.zeros(n, "i4")
    for pe in range(n):
        pg.atomic_set(flags[me], me + 1, pe)
    pg.wait_until_all(flags, pg.NE, 0)
    assert np.array_equal(flags.local, np.arange(1, n + 1))
    pg.wait_until_all(flags, pg.EQ, np.arange(1, n + 1))
    for pe in range(n):
        where = np.arange(n) == pe
        assert pg.wait_until_any(flags, pg.GT, 0, where=where) == pe
        assert list(pg.wait_until_some(flags, pg.GT, 0, where=list(where))) == [pe]
    assert list(pg.wait_until_some(flags, pg.GT, 0)) == list(range(n))


def test_arrivals_are_taken_one_by_one():
    me, n = pg.my_pe(), pg.n_pes()
    flags = pg.zeros(n, "i8")
    if me:
        time.sleep(0.002 * (n - me))
        pg.p(flags[me], me, 0)
    else:
        left = np.arange(n) > 0
        while (pe := pg.wait_until_any(flags, pg.NE, 0, where=left)) is not None:
            assert left[pe]
            assert flags.local[pe] == pe
            left[pe] = False
        assert not left.any()
    pg.barrier_all()


def test_tests_of_several():
    x = pg.array(np.array([3, 1, 4, 1, 5]))
    assert pg.test_all(x, pg.GT, 0) is True
    assert pg.test_all(x, pg.GT, 1) is False
    assert pg.test_all(x, pg.GT, 1, where=[True, False, True, False, True]) is True
    assert pg.test_any(x, pg.GT, 4) == 4
    assert pg.test_any(x, pg.GT, 9) is None
    assert list(pg.test_some(x, pg.EQ, 1)) == [1, 3]
    assert list(pg.test_some(x, pg.GT, 9)) == []
    assert pg.test_all(x, pg.EQ, [3, 1, 4, 1, 5])
    assert pg.test_any(x, pg.EQ, [0, 0, 4, 0, 0]) == 2
    assert list(pg.test_some(x, pg.LE, [3, 0, 4, 0, 9])) == [0, 2, 4]


def test_any_returns_every_index_in_the_end():
    x = pg.ones(7, "i4")
    assert {pg.test_any(x, pg.EQ, 1) for _ in range(50)} == set(range(7))


def test_nothing_to_wait_for():
    for x, where in [(pg.zeros(0, "i4"), None), (pg.zeros(3, "i4"), [False] * 3)]:
        pg.wait_until_all(x, pg.EQ, 1, where=where)
        assert pg.wait_until_any(x, pg.EQ, 1, where=where) is None
        assert len(pg.wait_until_some(x, pg.EQ, 1, where=where)) == 0
        assert pg.test_all(x, pg.EQ, 1, where=where)
        assert pg.test_any(x, pg.EQ, 1, where=where) is None
        assert len(pg.test_some(x, pg.EQ, 1, where=where)) == 0


def test_waits_on_strided_views():
    x = pg.zeros((4, 3), "i4")
    x.local[:, 1] = [1, 2, 3, 4]
    pg.wait_until_all(x[:, 1], pg.EQ, [1, 2, 3, 4])
    assert pg.test_any(x[::-1, 1], pg.EQ, 4) == 0
    assert list(pg.test_some(x.local[::2, 1], pg.GT, 0)) == [0, 1]


def test_time_limits():
    x = pg.zeros(3, "i4")
    signal = pg.zeros(1, "u8")
    for wait in (
        lambda: pg.wait_until(x[0], pg.NE, 0, timeout=0.05),
        lambda: pg.wait_until_all(x, pg.NE, 0, timeout=0.05),
        lambda: pg.wait_until_any(x, pg.NE, 0, timeout=0.05),
        lambda: pg.wait_until_some(x, pg.NE, 0, timeout=0.05),
        lambda: pg.signal_wait_until(signal, pg.NE, 0, timeout=0.05),
    ):
        start = time.monotonic()
        with pytest.raises(TimeoutError) as caught:
            wait()
        assert isinstance(caught.value, pg.WaitTimeoutError)
        assert 0.04 < time.monotonic() - start < 5
    pg.barrier_all()  # the job goes on


@pes(2, 3)
def test_a_wait_leaves_other_threads_running():
    import threading

    me, to, _ = ring()
    x = pg.zeros(1, "i8")
    counted = []
    stop = threading.Event()

    def count():
        while not stop.is_set():
            counted.append(1)
            time.sleep(0.001)

    pg.barrier_all()
    if me == 0:
        thread = threading.Thread(target=count)
        thread.start()
        pg.wait_until(x, pg.EQ, 1)
        stop.set()
        thread.join()
        assert len(counted) > 5
    elif me == pg.n_pes() - 1:
        time.sleep(0.2)
        pg.p(x, 1, 0)
    pg.barrier_all()
    assert to == (me + 1) % pg.n_pes()


def test_errors():
    me, to, _ = ring()
    x = pg.zeros(2, "i4")
    signal = pg.zeros(1, "u8")
    one = np.ones(2, "i4")
    n = pg.n_pes()
    bad = [
        (TypeError, lambda: pg.wait_until(x[0], "==", 0)),
        (TypeError, lambda: pg.wait_until(x[0], 0, 0)),
        (TypeError, lambda: pg.wait_until(x[0], pg.SIGNAL_SET, 0)),
        (TypeError, lambda: pg.signal_wait_until(signal, pg.SIGNAL_ADD, 0)),
        (TypeError, lambda: pg.put_signal(x, one, signal, 1, to, op=pg.EQ)),
        (TypeError, lambda: pg.put_signal(x, one, signal, 1, to, op=1)),
        (ValueError, lambda: pg.wait_until(x, pg.EQ, 0)),
        (TypeError, lambda: pg.wait_until(x[0], pg.EQ, None)),
        (TypeError, lambda: pg.wait_until(x[0], pg.EQ, 0.5)),
        (ValueError, lambda: pg.wait_until_all(x, pg.EQ, [0, 0, 0])),
        (ValueError, lambda: pg.wait_until_all(x, pg.EQ, 0, where=[True])),
        (ValueError, lambda: pg.wait_until(np.zeros(1, "i4"), pg.EQ, 0)),
        (ValueError, lambda: pg.wait_until(x[0], pg.EQ, 0, timeout=-1)),
        (TypeError, lambda: pg.signal_fetch(x[0])),
        (TypeError, lambda: pg.signal_set(x[0], 1, to)),
        (ValueError, lambda: pg.signal_set(pg_signals, 1, to)),
        (ValueError, lambda: pg.signal_set(signal, -1, to)),
        (ValueError, lambda: pg.signal_set(signal, 2**64, to)),
        (TypeError, lambda: pg.signal_add(signal, 1.0, to)),
        (ValueError, lambda: pg.signal_add(signal, 1, n)),
        (TypeError, lambda: pg.put_signal(x, one, x[0], 1, to)),
        (ValueError, lambda: pg.put_signal(x, one, signal, 1, n)),
        (ValueError, lambda: pg.put_signal(x, one[:1], signal, 1, to)),
        (TypeError, lambda: pg.put_signal(x, one.astype("f4"), signal, 1, to)),
    ]
    pg_signals = pg.zeros(2, "u8")
    for error, call in bad:
        with pytest.raises(error):
            call()
    pg.barrier_all()
    assert not x.local.any()
    assert not signal.local.any()
    assert me == pg.my_pe()
