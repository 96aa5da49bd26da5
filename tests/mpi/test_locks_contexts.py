# SPDX-License-Identifier: Apache-2.0
"""Locks and contexts."""

import threading
import time

import numpy as np
import pytest

import pypgas as pg
from pypgas.testing import pes


def ring():
    me, n = pg.my_pe(), pg.n_pes()
    return me, (me + 1) % n, (me - 1) % n


def add_without_atomics(x, pe):
    value = np.zeros(1, x.dtype)
    pg.get(value, x, pe)
    value += 1
    pg.put(x, value, pe)


def test_a_lock_excludes():
    n = pg.n_pes()
    lock = pg.Lock()
    x = pg.zeros(1, "i8")
    for i in range(60):
        if i % 2:
            lock.acquire()
            add_without_atomics(x, 0)
            lock.release()  # completes the put first
        else:
            with lock:
                add_without_atomics(x, 0)
    pg.barrier_all()
    assert pg.g(x, 0) == 60 * n


def test_several_locks():
    n = pg.n_pes()
    locks = [pg.Lock() for _ in range(3)]
    x = pg.zeros(3, "i8")
    for i in range(30):
        with locks[i % 3]:
            add_without_atomics(x[i % 3 : i % 3 + 1], i % n)
    pg.barrier_all()
    assert pg.reduce(int(x.local.sum())) == 30 * n


def test_trying():
    me = pg.my_pe()
    lock = pg.Lock()
    x = pg.zeros(1, "i8")
    if me == 0:
        assert lock.test()
    pg.barrier_all()
    if me:
        assert not lock.test()
        with pytest.raises(TimeoutError):
            lock.acquire(timeout=0.05)
    pg.barrier_all()
    if me == 0:
        lock.release()
    pg.barrier_all()
    while not lock.test():
        time.sleep(0)
    add_without_atomics(x, 0)
    lock.release()
    pg.barrier_all()
    assert pg.g(x, 0) == pg.n_pes()


def test_a_lock_given_up_for_a_time_limit_still_works():
    me, n = pg.my_pe(), pg.n_pes()
    lock = pg.Lock()
    if me == 0:
        lock.acquire()
    pg.barrier_all()
    if me:
        with pytest.raises(TimeoutError):
            lock.acquire(timeout=0.02)
    pg.barrier_all()
    if me == 0:
        lock.release()
    with lock:
        pass
    pg.barrier_all()
    assert n == pg.n_pes()


def test_a_lock_is_released_when_its_block_raises():
    lock = pg.Lock()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), lock:
            1 / 0  # noqa: B018
    lock.acquire(timeout=20)
    lock.release()
    pg.barrier_all()


def test_misused_locks():
    lock = pg.Lock()
    with pytest.raises(pg.PgasError):
        lock.release()  # not held
    lock.acquire()
    with pytest.raises(pg.PgasError):
        lock.acquire()  # not reentrant: would wait for itself
    lock.release()
    pg.barrier_all()
    lock.free()
    with pytest.raises(pg.StaleArrayError):
        lock.acquire()


def test_a_context_has_every_operation():
    me, to, of = ring()
    x = pg.zeros(8, "i8")
    signal = pg.zeros(1, "u8")
    with pg.Context() as ctx:
        ctx.put(x[:4], np.full(4, me), to)
        ctx.fence()
        ctx.put_nbi(x[4:6], np.full(2, me + 1), to)
        ctx.p(x[6], me + 2, to)
        ctx.iput(x[7:], np.array([me + 3]), 1, 1, 1, to)
        ctx.atomic_add(x[0], 10, to)
        ctx.quiet()
        pg.barrier_all()
        assert list(x.local) == [of + 10, of, of, of, of + 1, of + 1, of + 2, of + 3]
        pg.barrier_all()
        got = np.zeros(8, "i8")
        ctx.get(got, x, to)
        assert got[0] == me + 10
        ctx.get_nbi(got[::-1], x, to)
        ctx.quiet()
        assert got[7] == me + 10
        assert ctx.g(x[6], to) == me + 2
        ctx.iget(got, x, 2, 1, 4, to)
        assert list(got[::2]) == [me + 10, me, me, me]
        assert ctx.atomic_fetch_add(x[0], 1, to) == me + 10
        assert ctx.atomic_fetch(x[0], to) == me + 11
        ctx.put_signal(x[1:2], np.array([7]), signal, 3, to)
        pg.signal_wait_until(signal, pg.EQ, 3)
        assert x.local[1] == 7
        pg.barrier_all()


def test_contexts_as_an_argument():
    me, to, of = ring()
    x = pg.zeros(2, "i4")
    ctx = pg.Context()
    pg.put(x, np.full(2, me, "i4"), to, ctx=ctx)
    pg.fence(ctx)
    pg.atomic_inc(x[1], to, ctx=ctx)
    pg.quiet(ctx)
    pg.barrier_all()
    assert list(x.local) == [of, of + 1]
    ctx.destroy()


def test_pes_count_in_the_contexts_team():
    me, n = pg.my_pe(), pg.n_pes()
    backwards = pg.TEAM_WORLD.split_strided(n - 1, -1, n)
    x = pg.full(1, -1, "i4")
    with pg.Context(backwards) as ctx:
        ctx.put(x, np.array([me], "i4"), me)
        ctx.quiet()
        with pytest.raises(pg.InvalidPEError):
            ctx.put(x, np.array([me], "i4"), n)
    pg.barrier_all()
    assert x.local[0] == n - 1 - me
    backwards.destroy()


def test_many_contexts():
    me, to, of = ring()
    contexts = [pg.Context() for _ in range(40)]
    x = pg.zeros(40, "i4")
    for i, ctx in enumerate(contexts):
        ctx.put_nbi(x[i : i + 1], np.array([100 * me + i], "i4"), to)
    for ctx in contexts:
        ctx.quiet()
    pg.barrier_all()
    assert np.array_equal(x.local, 100 * of + np.arange(40))
    for ctx in contexts:
        ctx.destroy()


def test_a_destroyed_context():
    _, to, _ = ring()
    x = pg.zeros(1, "i4")
    ctx = pg.Context()
    ctx.destroy()
    for call in (
        lambda: ctx.put(x, np.ones(1, "i4"), to),
        lambda: pg.put(x, np.ones(1, "i4"), to, ctx=ctx),
        ctx.quiet,
        ctx.fence,
    ):
        with pytest.raises(pg.PgasError):
            call()
    with pytest.raises(TypeError):
        pg.put(x, np.ones(1, "i4"), to, ctx=5)
    pg.barrier_all()
    assert x.local[0] == 0


@pes(1, 2, 3)
def test_threads_with_their_own_contexts():
    me, to, of = ring()
    x = pg.zeros((4, 100), "i8")
    total = pg.zeros(1, "i8")

    def work(row):
        with pg.Context() as ctx:
            for i in range(100):
                ctx.p(x[row, i], 1000 * me + i, to)
                ctx.atomic_add(total, 1, to)
            ctx.quiet()

    threads = [threading.Thread(target=work, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pg.barrier_all()
    assert np.all(x.local == 1000 * of + np.arange(100))
    assert total.local[0] == 400
