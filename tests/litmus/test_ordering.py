# SPDX-License-Identifier: Apache-2.0
"""Rules 1 to 9: completion, order between operations, and what observers agree on."""

import numpy as np
import pytest
from litmus_kit import fall_in, next_pe, rounds

import pypgas as pg

BATCH = 64  # elements used between two barriers, in tests that need the PEs side by side

FLAGS = {
    "p": lambda flag, r, pe: pg.p(flag, r, pe),
    "put": lambda flag, r, pe: pg.put(flag, np.array([r], "u8"), pe),
    "atomic_set": lambda flag, r, pe: pg.atomic_set(flag, r, pe),
    "atomic_add": lambda flag, r, pe: pg.atomic_add(flag, 1, pe),
    "signal_set": lambda flag, r, pe: pg.signal_set(flag, r, pe),
}


def test_put_has_read_its_source():
    """Rule 1: the source may be overwritten as soon as a blocking put has returned."""
    to = next_pe()
    count = 8
    slots = pg.zeros((count, 300), "u8")
    one = pg.zeros(count, "u8")
    source, element = np.empty(300, "u8"), np.empty(1, "u8")
    for r in rounds(500, count):
        for i in range(count):
            source.fill(r * 100 + i)
            element.fill(r * 100 + i)
            if i % 2:
                pg.put(slots[i], source, to)
            else:
                pg.iput(slots[i], source, 1, 1, 300, to)
            pg.put(one[i : i + 1], element, to)
            source.fill(0)
            element.fill(0)
        pg.barrier_all()
        expected = r * 100 + np.arange(count)
        assert (slots.local == expected[:, None]).all()
        assert (one.local == expected).all()
        pg.barrier_all()


def test_get_returns_with_the_data():
    """Rule 2: what a blocking get returns was in the source between call and return, never older."""
    n, to = pg.n_pes(), next_pe()
    counter = pg.zeros(64, "u8")
    target = np.zeros(64, "u8")
    last = 0
    for r in rounds(10000):
        counter.local.fill(r)
        target.fill(0)
        pg.get(target, counter, to)
        if n == 1:
            assert (target == r).all()
        now = int(pg.g(counter[:1], to))
        # A later read of an element is not older than an earlier one.
        assert last <= int(target[0]) <= now
        last = now
    pg.barrier_all()


def test_quiet_completes_nonblocking():
    """Rule 3: after quiet, sources of nbi puts may be reused and targets of nbi gets hold their data."""
    me, to = pg.my_pe(), next_pe()
    there = pg.zeros((2, 400), "u8")
    here = pg.zeros(400, "u8")
    source, target = np.empty(400, "u8"), np.empty(400, "u8")
    pg.barrier_all()
    for r in rounds(2000):
        here.local.fill(r * 10 + me)
        pg.sync_all()
        source.fill(r)
        target.fill(0)
        pg.put_nbi(there[r % 2], source, to)
        pg.get_nbi(target, here, to)
        pg.quiet()
        source.fill(0)
        assert (target == r * 10 + to).all()
        pg.sync_all()
        assert (there.local[r % 2] == r).all()


def test_quiet_completes_puts():
    """Rule 4: what was complete before a third PE was told, that PE finds."""
    me, n, to = pg.my_pe(), pg.n_pes(), next_pe()
    data = pg.zeros(48, "u8")
    told = pg.zeros(1, "u8")
    mine, found = np.empty(48, "u8"), np.empty(48, "u8")
    for r in rounds(8000):
        mine.fill(r)
        pg.put(data, mine, to)
        pg.quiet()
        pg.p(told, r, (me + 2) % n)
        seen = pg.signal_fetch(told)  # from the PE two before, which wrote to the one before
        pg.get(found, data, (me - 1) % n)
        assert found.min() >= seen
    pg.signal_wait_until(told, pg.GE, r)
    pg.get(found, data, (me - 1) % n)
    assert (found == r).all()
    pg.barrier_all()


@pytest.mark.parametrize("flagging", FLAGS)
def test_fence_orders_puts(flagging):
    """Rule 5: put, fence, flag; who sees the flag sees the put. Message passing."""
    to = next_pe()
    raise_flag = FLAGS[flagging]
    data = pg.zeros((2, 32), "u8")
    count = pg.zeros(1, "u8")
    flag = pg.zeros(1, "u8")
    mine = np.empty(32, "u8")
    row, column = data[0], data[1, ::2]
    for r in rounds(3000):
        mine.fill(r)
        pg.put(row, mine, to)
        pg.put(column, mine[:16], to)
        pg.atomic_add(count, 1, to)
        pg.fence()
        raise_flag(flag, r, to)
        seen = pg.signal_fetch(flag)
        local = data.local
        assert local[0].min() >= seen
        assert local[1, ::2].min() >= seen
        assert count.local[0] >= seen
        assert not local[1, 1::2].any()
    pg.signal_wait_until(flag, pg.GE, r)
    assert (data.local[0] == r).all()
    assert count.local[0] == r
    pg.barrier_all()


def test_an_element_changes_in_one_order():
    """Rule 6: every PE sees the values of an element in the same order, by whatever means it reads."""
    me, n, to = pg.my_pe(), pg.n_pes(), next_pe()
    x = pg.zeros(1, "u8")
    # Two PEs see the steps of one writer; the writer itself is the PE before.
    other = (me + 1) % n
    looks = [
        lambda: int(pg.signal_fetch(x)),
        lambda: int(pg.g(x, me)),
        lambda: int(x.local[0]),
        lambda: int(pg.atomic_fetch(x, me)),
    ]
    far_looks = [
        lambda: int(pg.g(x, other)),
        lambda: int(pg.atomic_fetch(x, other)),
        lambda: int(x.at(other).get()[0]),
    ]
    last = far_last = 0
    for r in rounds(5000):
        if r % 2:
            pg.atomic_inc(x, to)
        else:
            pg.atomic_fetch_add(x, 1, to)
        now = looks[r % 4]()
        assert now >= last
        far_now = far_looks[r % 3]()
        assert far_now >= far_last
        last, far_last = now, far_now
    pg.barrier_all()
    assert x.local[0] == r


def test_quiet_separates_write_from_read():
    """Rule 7: each PE writes, calls quiet, and reads what its neighbour writes; not all miss. Store buffering."""
    me, to = pg.my_pe(), next_pe()
    x = pg.zeros(BATCH, "u4")
    elements = [x[i] for i in range(BATCH)]
    turn = pg.zeros(1, "u8")
    missed = np.zeros(BATCH, bool)
    for r in rounds(200, BATCH):
        x.local.fill(0)
        pg.barrier_all()
        for i, element in enumerate(elements):
            fall_in(turn, r * BATCH + i, to)
            pg.p(element, 1, to)
            pg.quiet()
            missed[i] = pg.g(element, me) == 0
        everyone_missed = pg.reduce(missed, "and")
        assert not everyone_missed.any()


def test_observers_agree_on_independent_writes():
    """Rule 8: two PEs write, others read both in different order with quiet between; they can't disagree. IRIW."""
    me, n = pg.my_pe(), pg.n_pes()
    x, y = pg.zeros(BATCH, "i8"), pg.zeros(BATCH, "i8")
    home_x, home_y = 0, n - 1
    writer_x, writer_y = 0, 1 % n
    first_x = me % 2 == 0
    saw = np.zeros(BATCH, "u1")  # 1: this PE saw its first variable set and its second not
    turn, to = pg.zeros(1, "u8"), next_pe()
    for r in rounds(200, BATCH):
        x.local.fill(0)
        y.local.fill(0)
        pg.barrier_all()
        for i in range(BATCH):
            fall_in(turn, r * BATCH + i, to)
            if me == writer_x:
                pg.atomic_set(x, 1, home_x, index=i)
            if me == writer_y:
                pg.atomic_set(y, 1, home_y, index=i)
            pg.quiet()
            if first_x:
                first = pg.atomic_fetch(x, home_x, index=i)
                pg.quiet()
                second = pg.atomic_fetch(y, home_y, index=i)
            else:
                first = pg.atomic_fetch(y, home_y, index=i)
                pg.quiet()
                second = pg.atomic_fetch(x, home_x, index=i)
            saw[i] = first == 1 and second == 0
        everyone = pg.fcollect(saw).reshape(n, BATCH).astype(bool)
        x_before_y = everyone[0::2].any(axis=0)
        y_before_x = everyone[1::2].any(axis=0)
        assert not (x_before_y & y_before_x).any()
        if n == 1:
            assert not saw.any()  # both were written and complete


def test_last_to_arrive_sees_all():
    """Rule 9: order passes on from PE to PE through one atomic: the last to add sees what all wrote before."""
    me, n = pg.my_pe(), pg.n_pes()
    per = 500
    blocks = pg.zeros((per, n, 4), "u8")
    arrived = pg.zeros(per, "i8")
    places = [blocks[i, me] for i in range(per)]
    mine, found = np.empty(4, "u8"), np.empty((n, 4), "u8")
    for r in rounds(4, per):
        mine.fill(r)
        for i, slot in enumerate(places):
            home = i % n
            pg.put(slot, mine, home)
            pg.fence()
            if pg.atomic_fetch_inc(arrived, home, index=i) == r * n - 1:
                pg.get(found, blocks[i], home)
                assert (found == r).all()
        pg.barrier_all()
