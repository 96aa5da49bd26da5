# SPDX-License-Identifier: Apache-2.0
"""Rules 15 to 21: atomics of all PEs on the same elements."""

import numpy as np
import pytest
from litmus_kit import fall_in, next_pe, rounds

import pypgas as pg

DTYPES = ["int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_adds_lose_nothing(dtype):
    """Rule 15: every addition counts, in every type, from every PE, the owner among them."""
    n, to = pg.n_pes(), next_pe()
    turn = pg.zeros(1, "u8")
    kind = pg.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = pg.zeros(3, kind)  # the middle one is added to; its neighbours share its cache line
    exact = kind.kind in "iu"
    steps = rounds(20000 if exact else 4000)  # a float as argument takes longer than an int
    count = len(steps)
    if exact:
        for r in steps:
            if r % 64 == 0:
                fall_in(turn, r, to)
            pg.atomic_add(x, 1, 0, index=1)
        expected = np.array(n * count).astype(kind)
    else:
        for r in steps:  # up and down, so that every sum is exact
            if r % 64 == 0:
                fall_in(turn, r, to)
            pg.atomic_add(x, 1 if r % 2 else -1, 0, index=1)
        expected = np.array(n * (count % 2)).astype(kind)
    pg.barrier_all()
    assert pg.g(x[1], 0) == expected
    assert pg.g(x[0], 0) == 0
    assert pg.g(x[2], 0) == 0
    pg.barrier_all()


def test_owner_and_others_lose_nothing():
    """Rule 15: each PE adds to its own element and to its neighbour's at the same time."""
    me, to = pg.my_pe(), next_pe()
    x, turn = pg.zeros(1, "i8"), pg.zeros(1, "u8")
    for r in rounds(20000):
        if r % 64 == 0:
            fall_in(turn, r, to)
        pg.atomic_inc(x, me)
        pg.atomic_inc(x, to)
        pg.atomic_fetch_add(x, 2, to)
    pg.barrier_all()
    assert x.local[0] == 4 * len(rounds(20000))
    pg.barrier_all()


def test_fetch_add_hands_out_each_value_once():
    """Rule 16: a fetching atomic reads and writes in one step, so a counter gives no number twice."""
    n, to = pg.n_pes(), next_pe()
    counter, turn = pg.zeros(1, "i8"), pg.zeros(1, "u8")
    count = len(rounds(20000))
    mine = np.empty(count, "i8")
    for r in rounds(20000):
        if r % 64 == 0:
            fall_in(turn, r, to)
        mine[r - 1] = pg.atomic_fetch_inc(counter, 0) if r % 3 else pg.atomic_fetch_add(counter, 1, 0)
    assert (np.diff(mine) > 0).all()
    everyone = np.sort(pg.fcollect(mine))
    assert (everyone == np.arange(n * count)).all()


def test_compare_swap_has_one_winner():
    """Rule 17: of all who swap from the same value one succeeds, and the others are told who did."""
    me, n, to = pg.my_pe(), pg.n_pes(), next_pe()
    size = 1000
    x, turn = pg.zeros(size, "i8"), pg.zeros(1, "u8")
    old = np.empty(size, "i8")
    taken = np.empty(size, "i8")
    for r in rounds(20, size):
        for i in range(size):
            if i % 4 == 0:
                fall_in(turn, r * size + i, to)
            home = i % n
            old[i] = pg.atomic_compare_swap(x, 0, r * n + me + 1, home, index=i)
            taken[i] = pg.atomic_fetch(x, home, index=i)
        won = old == 0
        assert (pg.reduce(won.astype("i8"), "sum") == 1).all()
        assert (taken[won] == r * n + me + 1).all()
        assert (old[~won] == taken[~won]).all()
        pg.barrier_all()
        x.local.fill(0)
        pg.sync_all()


def test_compare_swap_loop_loses_nothing():
    """Rule 17: additions made by reading and swapping until nobody came between."""
    n, to = pg.n_pes(), next_pe()
    x, turn = pg.zeros(1, "u4"), pg.zeros(1, "u8")
    for r in rounds(20000):
        if r % 64 == 0:
            fall_in(turn, r, to)
        seen = pg.atomic_fetch(x, 0)
        while (now := pg.atomic_compare_swap(x, seen, seen + 1, 0)) != seen:
            seen = now
    pg.barrier_all()
    assert pg.g(x, 0) == n * len(rounds(20000))
    pg.barrier_all()


@pytest.mark.parametrize("dtype", ["int64", "float32", "uint8"])
def test_swap_loses_no_value(dtype):
    """Rule 18: values passed through one element by swaps are neither lost nor doubled."""
    me, n, to = pg.my_pe(), pg.n_pes(), next_pe()
    x, turn = pg.full(1, 100, dtype), pg.zeros(1, "u8")
    hand = np.array(me, dtype)[()]
    for r in rounds(20000):
        if r % 64 == 0:
            fall_in(turn, r, to)
        hand = pg.atomic_swap(x, hand, 0)
    hands = pg.fcollect(hand)
    found = sorted([*hands.tolist(), pg.g(x, 0).item()])
    assert found == [*range(n), 100]
    pg.barrier_all()


def test_bits_of_one_word_belong_to_different_pes():
    """Rule 19: or, and, xor change the bits they name and no others."""
    me, to = pg.my_pe(), next_pe()
    x, turn = pg.zeros(1, "u4"), pg.zeros(1, "u8")
    bit = 1 << me
    for r in rounds(8000):
        if r % 8 == 0:
            fall_in(turn, r, to)
        assert not int(pg.atomic_fetch_or(x, bit, 0)) & bit
        assert int(pg.atomic_fetch_and(x, 0xFFFFFFFF ^ bit, 0)) & bit
        assert not int(pg.atomic_fetch_xor(x, bit, 0)) & bit
        assert int(pg.atomic_fetch(x, 0)) & bit
        pg.atomic_xor(x, bit, 0)
    pg.barrier_all()
    assert pg.g(x, 0) == 0
    pg.barrier_all()


def test_bulk_is_many_atomics():
    """Rule 20: a bulk call is one atomic operation for each index, repeated ones too."""
    me, n, to = pg.my_pe(), pg.n_pes(), next_pe()
    size, many = 16, 500
    turn = pg.zeros(1, "u8")
    x, tickets = pg.zeros(size, "i8"), pg.zeros(size, "i8")
    random = np.random.default_rng(me)
    per_element = [[] for _ in range(size)]
    for r in rounds(60, many):
        fall_in(turn, r, to)
        index = random.integers(0, size, many)
        pes = random.integers(0, n, many)
        pg.atomic_add(x, np.full(many, 2), pes, index=index)
        pg.atomic_inc(x, to, index=index)
        drawn = pg.atomic_fetch_add(tickets, 1, 0, index=index)
        for i in range(size):
            per_element[i].append(drawn[index == i])
        pg.atomic_add(x, 1, 0, index=0)  # a single one between them
    pg.barrier_all()
    count = len(rounds(60, many))
    assert pg.reduce(x.local.sum(), "sum") == n * count * (3 * many + 1)
    for i in range(size):
        everyone = pg.collect(np.concatenate(per_element[i]))
        assert (np.sort(everyone) == np.arange(len(everyone))).all()


def test_neighbours_stay_undisturbed():
    """Rule 21: puts, atomics and the owner's own stores change their element and not the ones beside it."""
    me, n, to = pg.my_pe(), pg.n_pes(), next_pe()
    turn, step = pg.zeros(1, "u8"), 0
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        x = pg.zeros(4 * n, dtype)
        limit = 250  # fits a byte
        put, strided, added, stored = (x[4 * me + i] for i in range(4))
        local = x.local[4 * me : 4 * me + 4]
        piece = x[4 * me : 4 * me + 2 : 2]
        value = np.empty(1, dtype)
        home = 0
        for r in rounds(500):
            step += 1
            if r % 4 == 0:
                fall_in(turn, step, to)
            v = r % limit
            if v == 0:
                pg.atomic_set(added, 0, home)
                continue
            value.fill(v)
            pg.p(put, v, home)
            pg.put(strided, value.reshape(()), home)
            pg.put(piece, value, home)
            if pg.g(added, home) < v:
                pg.atomic_add(added, 1, home)
            if me == home:
                local[3] = v
            else:
                pg.atomic_set(stored, v, home)
            pg.quiet()
            assert pg.g(put, home) == v
            assert pg.g(strided, home) == v
            assert pg.g(added, home) == v
            assert pg.g(stored, home) == v
        pg.barrier_all()
        x.free()
