# SPDX-License-Identifier: Apache-2.0
"""Rules 23 to 31: barriers, collectives, locks, contexts, allocation and threads."""

import threading
import time

import numpy as np
import pytest
from litmus_kit import fall_in, next_pe, relax, rounds

import pypgas as pg


@pytest.mark.parametrize("which", ["world", "team"])
def test_barrier_completes_puts_and_atomics(which):
    """Rule 23: after the barrier every PE finds what any PE of the team did before it, on any PE."""
    me, n = pg.my_pe(), pg.n_pes()
    team = pg.TEAM_WORLD.split_strided(n - 1, -1, n)  # all PEs, in reverse
    barrier = pg.barrier_all if which == "world" else lambda: pg.barrier(team)
    table = pg.zeros((2, n, 24), "u8")  # by parity of the round, so that one barrier is enough
    count = pg.zeros(1, "u8")
    mine, found = np.empty(24, "u8"), np.empty((n, 24), "u8")
    cells = [[table[i, me], table[i]] for i in range(2)]
    for r in rounds(800):
        mine.fill(r)
        cell, whole = cells[r % 2]
        for pe in range(n):
            (pg.put_nbi if r % 3 else pg.put)(cell, mine, pe)
            pg.atomic_inc(count, pe)
        barrier()
        pg.get(found, whole, (me + r) % n)
        assert (found == r).all()
        assert pg.g(count, (me + r) % n) >= r * n
    team.destroy()


def test_sync_completes_local_stores():
    """Rule 24: what a PE stored in its own memory before sync, others read after it."""
    me, to = pg.my_pe(), next_pe()
    x = pg.zeros((2, 64), "u8")
    rows = [x[0], x[1]]
    found = np.empty(64, "u8")
    for r in rounds(1500):
        x.local[r % 2] = r * 10 + me
        pg.sync_all()
        pg.get(found, rows[r % 2], to)
        assert (found == r * 10 + to).all()
        assert int(x.peer(to)[r % 2, 5]) == r * 10 + to


def test_quiet_and_sync_make_a_barrier():
    """Rule 25: quiet completes the puts, sync brings the PEs together: the two are a barrier."""
    to = next_pe()
    x = pg.zeros((2, 64), "u8")
    rows = [x[0], x[1]]
    mine = np.empty(64, "u8")
    with pg.Context() as context:
        for r in rounds(1500):
            mine.fill(r)
            (context if r % 2 else pg).put_nbi(rows[r % 2], mine, to)
            (context if r % 2 else pg).quiet()
            pg.sync_all()
            assert (x.local[r % 2] == r).all()


@pytest.mark.parametrize("kind", ["scalar", "plain", "symmetric", "staged"])
def test_collectives_take_what_each_pe_passed(kind):
    """Rule 26: a result consists of every PE's values of that call; sources may change on return."""
    me, n = pg.my_pe(), pg.n_pes()
    length = {"scalar": 1, "plain": 200, "symmetric": 200, "staged": 50_000}[kind]
    x = pg.zeros(length, "i8") if kind == "symmetric" else np.zeros(length, "i8")
    local = x.local if kind == "symmetric" else x
    everyone = n * (n - 1) // 2
    for r in rounds(60 if kind == "staged" else 400, 10):
        root = r % n
        if kind == "scalar":
            assert pg.broadcast(r * 10 + me, root) == r * 10 + root
            assert pg.reduce(r + me, "sum") == n * r + everyone
            assert pg.exclusive_scan(r, "sum") == r * me
            assert (pg.fcollect(r * 10 + me) == r * 10 + np.arange(n)).all()
            continue
        local.fill(r + me)
        total = pg.reduce(x, "sum")
        local.fill(-1)  # the source is this PE's again
        assert (total == n * r + everyone).all()
        local.fill(r * 10 + me)
        pg.broadcast(x, root)
        assert (local == r * 10 + root).all()
        local.fill(r * 10 + me)
        collected = pg.fcollect(x)
        local.fill(-2)
        assert (collected.reshape(n, length) == r * 10 + np.arange(n)[:, None]).all()


def test_lock_hands_over():
    """Rule 27: the next holder sees all that the last one did, stores, puts and atomics alike."""
    me, n, to = pg.my_pe(), pg.n_pes(), next_pe()
    lock, turn = pg.Lock(), pg.zeros(1, "u8")
    home = n - 1
    block = pg.zeros(32, "i8")
    trail = pg.zeros(1, "i8")
    found = np.empty(32, "i8")
    for r in rounds(600):
        if r % 2 == 0:
            fall_in(turn, r, to)
        with lock:
            pg.get(found, block, home)
            value = int(found[0])
            assert (found == value).all()
            assert pg.g(trail, home) == value
            if me == home:
                block.local[:] = value + 1  # the owner stores
            else:
                pg.put(block, np.full(32, value + 1), home)
            pg.atomic_inc(trail, home)
    pg.barrier_all()
    assert (pg.reduce(block.local[0], "max")) == n * len(rounds(600))
    lock.free()


def test_contexts_are_independent():
    """Rule 28: each context orders and completes its own operations, whatever others have under way."""
    to = next_pe()
    a, b = pg.Context(), pg.Context()
    data = pg.zeros((3, 40), "u8")
    flags = pg.zeros(3, "u8")
    rows, elements = [data[i] for i in range(3)], [flags[i] for i in range(3)]
    mine = [np.empty(40, "u8") for _ in range(3)]
    for r in rounds(1500):
        for source in mine:
            source.fill(r)
        a.put(rows[0], mine[0], to)
        b.put_nbi(rows[1], mine[1], to)
        pg.put_nbi(rows[2], mine[2], to)
        a.fence()
        a.p(elements[0], r, to)
        b.quiet()
        b.p(elements[1], r, to)
        pg.quiet()
        pg.p(elements[2], r, to)
        for i in range(3):
            seen = pg.signal_fetch(elements[i])
            assert data.local[i].min() >= seen
    pg.barrier_all()
    # Destroying a context completes it.
    mine[0].fill(r + 1)
    b.put_nbi(rows[0], mine[0], to)
    b.destroy()
    a.destroy()
    pg.sync_all()
    assert (data.local[0] == r + 1).all()
    pg.barrier_all()


def test_fresh_memory_is_usable_at_once():
    """Rule 29: a PE whose zeros() has returned may write to the others; nobody's clearing comes after."""
    to = next_pe()
    mine = np.empty(512, "u8")
    for r in rounds(250):
        x = pg.zeros(512, "u8") if r % 2 else pg.full(512, 7, "u8")
        mine.fill(r + 10)
        pg.put(x, mine, to)
        pg.barrier_all()
        assert (x.local == r + 10).all()  # and the block is dirty for the next round
        x.free()


def test_free_waits_for_all():
    """Rule 30: memory is not reused before every PE has called free."""
    me, n, to = pg.my_pe(), pg.n_pes(), next_pe()
    found = np.empty(512, "u8")
    for r in rounds(150):
        x = pg.full(512, r, "u8")
        if r % n == me:
            time.sleep(0.0002)  # the others are in free() by now
        for _ in range(3):
            pg.get(found, x, to)
            assert (found == r).all()
        x.free()
        y = pg.zeros(512, "u8")  # takes the same place
        pg.free(y)


def test_threads_share_the_rules():
    """Rule 31: a thread may wait while another communicates; quiet covers what happened before it in any thread."""
    me, n, to = pg.my_pe(), pg.n_pes(), next_pe()
    data, flag, back = pg.zeros(64, "u8"), pg.zeros(1, "u8"), pg.zeros(1, "u8")
    count = len(rounds(500))
    broken = []

    def answer():
        try:
            for r in range(1, count + 1):
                pg.signal_wait_until(flag, pg.GE, r, timeout=50)
                if data.local.min() < r:
                    broken.append(r)
                pg.p(back, r, (me - 1) % n)
        except pg.PgasError as error:
            broken.append(error)

    handed, done = threading.Semaphore(0), threading.Semaphore(0)

    def raise_flags():
        for r in range(1, count + 1):
            handed.acquire()
            pg.quiet()  # the other thread's put
            pg.p(flag, r, to)
            done.release()

    threads = [threading.Thread(target=answer), threading.Thread(target=raise_flags)]
    for thread in threads:
        thread.start()
    mine = np.empty(64, "u8")
    for r in range(1, count + 1):
        mine.fill(r)
        pg.put(data, mine, to)
        handed.release()
        done.acquire()
        while not pg.test(back, pg.GE, r):
            relax()
    for thread in threads:
        thread.join()
    assert not broken
    pg.barrier_all()
