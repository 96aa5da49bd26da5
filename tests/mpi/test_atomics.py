# SPDX-License-Identifier: Apache-2.0
"""Atomic operations, one element at a time and in bulk."""

import numpy as np
import pytest

import pypgas as pg

INTEGERS = ["i4", "i8", "u4", "u8"]
FLOATS = ["f4", "f8"]


def ring():
    me, n = pg.my_pe(), pg.n_pes()
    return me, (me + 1) % n, (me - 1) % n


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_set_fetch_swap(dtype):
    me, to, of = ring()
    x = pg.full(1, me + 10, dtype)
    value = pg.atomic_fetch(x, to)
    assert value == to + 10
    assert value.dtype == np.dtype(dtype)
    pg.barrier_all()
    pg.atomic_set(x, me + 20, to)
    pg.barrier_all()
    assert x.local[0] == of + 20
    pg.barrier_all()
    old = pg.atomic_swap(x, me + 30, to)
    assert old == me + 20
    assert old.dtype == np.dtype(dtype)
    pg.barrier_all()
    assert x.local[0] == of + 30


@pytest.mark.parametrize("dtype", INTEGERS)
def test_compare_swap(dtype):
    me, to, of = ring()
    x = pg.full(1, me, dtype)
    assert pg.atomic_compare_swap(x, to + 1, 99, to) == to  # differs: nothing is swapped
    assert pg.atomic_fetch(x, to) == to
    assert pg.atomic_compare_swap(x, to, 60 + me, to) == to
    pg.barrier_all()
    assert x.local[0] == 60 + of


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(dtype):
    _, to, _ = ring()
    x = pg.full(3, 7, dtype)
    middle = x[1]
    pg.atomic_inc(middle, to)
    assert pg.atomic_fetch_inc(middle, to) == 8
    pg.atomic_add(middle, 10, to)
    assert pg.atomic_fetch_add(middle, 5, to) == 19
    pg.barrier_all()
    assert list(x.local) == [7, 24, 7]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floating_point_add(dtype):
    _, to, _ = ring()
    x = pg.full(1, 1.5, dtype)
    pg.atomic_add(x, 0.25, to)
    assert pg.atomic_fetch_add(x, -1, to) == 1.75
    pg.barrier_all()
    assert x.local[0] == 0.75


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise(dtype):
    _, to, _ = ring()
    x = pg.full(1, 0b1100, dtype)
    assert pg.atomic_fetch_and(x, 0b0110, to) == 0b1100
    assert pg.atomic_fetch_or(x, 0b0011, to) == 0b0100
    assert pg.atomic_fetch_xor(x, 0b0101, to) == 0b0111
    pg.atomic_or(x, 0b110000, to)
    pg.atomic_xor(x, 0b010000, to)
    pg.atomic_and(x, 0b101010, to)
    pg.barrier_all()
    assert x.local[0] == 0b100010


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_wraps_around(dtype):
    _, to, _ = ring()
    info = np.iinfo(dtype)
    x = pg.full(1, info.max, dtype)
    assert pg.atomic_fetch_inc(x, to) == info.max
    assert pg.atomic_fetch(x, to) == info.min
    if info.min < 0:
        assert pg.atomic_fetch_add(x, -1, to) == info.min
        assert pg.atomic_fetch(x, to) == info.max


@pytest.mark.parametrize("dtype", INTEGERS)
def test_neighbours_are_not_disturbed(dtype):
    n = pg.n_pes()
    x = pg.full(9, -1 if dtype[0] == "i" else 77, dtype)
    before = x.local[0]
    x.local[1::2] = 0
    pg.barrier_all()
    for i in range(200):
        pg.atomic_inc(x, 0, index=1 + 2 * (i % 4))
    pg.barrier_all()
    if pg.my_pe() == 0:
        assert np.all(x.local[1::2] == 50 * n)
        assert np.all(x.local[::2] == before)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_contended_adds_all_arrive(dtype):
    n = pg.n_pes()
    x = pg.zeros(1, dtype)
    for _ in range(300):
        pg.atomic_add(x, 1, 0)
    pg.barrier_all()
    assert pg.atomic_fetch(x, 0) == 300 * n


@pytest.mark.parametrize("dtype", INTEGERS)
def test_contended_fetches_are_unique(dtype):
    n = pg.n_pes()
    x = pg.zeros(1, dtype)
    mine = [int(pg.atomic_fetch_inc(x, 0)) for _ in range(200)]
    assert mine == sorted(mine)
    everyone = pg.fcollect(np.array(mine))
    assert sorted(everyone) == list(range(200 * n))


def test_contended_swaps_lose_nothing():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.full(1, -1, "i8")
    got = [int(pg.atomic_swap(x, 1000 * me + i, 0)) for i in range(100)]
    pg.barrier_all()
    everyone = [*pg.fcollect(np.array(got)), pg.atomic_fetch(x, 0)]
    assert sorted(everyone) == [-1, *sorted(1000 * pe + i for pe in range(n) for i in range(100))]


def test_contended_compare_swap_as_a_lock():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.zeros(1, "i8")
    for _ in range(50):
        old = pg.atomic_fetch(x, 0)
        while (seen := pg.atomic_compare_swap(x, old, old + 1, 0)) != old:
            old = seen
    pg.barrier_all()
    assert pg.atomic_fetch(x, 0) == 50 * n
    assert me == pg.my_pe()


def test_contended_bits():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.zeros(1, "u8")
    for bit in range(8):
        pg.atomic_or(x, 1 << (8 * me + bit) % 64, 0)
    pg.barrier_all()
    expected = 0
    for pe in range(n):
        expected |= 0xFF << (8 * pe) % 64
    assert pg.atomic_fetch(x, 0) == expected


# Elements by index.


def test_index_names_an_element():
    _, to, _ = ring()
    x = pg.zeros((3, 4), "i4")
    pg.atomic_add(x, 1, to, index=5)
    pg.atomic_add(x, 2, to, index=(1, 1))
    pg.atomic_set(x, 9, to, index=(2, -1))
    pg.atomic_inc(x, to, index=np.int64(0))
    pg.barrier_all()
    expected = np.zeros((3, 4), "i4")
    expected[1, 1] = 3
    expected[2, 3] = 9
    expected[0, 0] = 1
    assert np.array_equal(x.local, expected)
    pg.barrier_all()
    assert pg.atomic_fetch(x, to, index=(1, 1)) == 3
    pg.atomic_add(x.T, 4, to, index=(3, 0))
    pg.barrier_all()
    assert x.local[0, 3] == 4


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_bulk_add_with_repeated_elements(dtype):
    n = pg.n_pes()
    x = pg.zeros(50, dtype)
    rng = np.random.default_rng(5)
    index = rng.integers(0, 50, (n, 400))
    target = rng.integers(0, n, (n, 400))
    value = rng.integers(1, 9, (n, 400)).astype(dtype)
    me = pg.my_pe()
    pg.atomic_add(x, value[me], target[me], index=index[me])
    pg.barrier_all()
    expected = np.zeros((n, 50), dtype)
    np.add.at(expected, (target, index), value)
    assert np.array_equal(x.local, expected[me])


def test_bulk_forms_and_scalars():
    me, to, of = ring()
    x = pg.zeros(10, "i8")
    index = np.array([1, 3, 5, 3])
    pg.atomic_inc(x, to, index=index)
    assert list(pg.atomic_fetch_add(x, 10, to, index=np.array([0, 1, 2]))) == [0, 1, 0]
    old = pg.atomic_fetch_inc(x, np.full(4, to), index=index)
    assert list(old) == [11, 2, 1, 3]
    assert old.dtype == np.dtype("i8")
    pg.atomic_set(x, np.array([100 + me, 200 + me]), to, index=np.array([8, 9]))
    pg.barrier_all()
    assert list(x.local) == [10, 12, 10, 4, 0, 2, 0, 0, 100 + of, 200 + of]
    pg.barrier_all()
    assert list(pg.atomic_fetch(x, to, index=np.array([9, 8]))) == [200 + me, 100 + me]
    assert list(pg.atomic_swap(x, np.array([1, 2]), to, index=np.array([8, 9]))) == [100 + me, 200 + me]
    old = pg.atomic_compare_swap(x, 1, 7, to, index=np.array([8, 9]))
    assert list(old) == [1, 2]
    assert list(pg.atomic_fetch(x, to, index=np.array([8, 9]))) == [7, 2]
    assert list(pg.atomic_fetch_or(x, 8, to, index=np.array([8, 9]))) == [7, 2]
    assert list(pg.atomic_fetch_and(x, 8, to, index=np.array([8, 9]))) == [15, 10]
    assert list(pg.atomic_fetch_xor(x, 9, to, index=np.array([8, 9]))) == [8, 8]


def test_bulk_of_nothing():
    x = pg.zeros(3, "i8")
    nothing = np.zeros(0, "i8")
    pg.atomic_add(x, 1, 0, index=nothing)
    assert len(pg.atomic_fetch_add(x, 1, 0, index=nothing)) == 0
    pg.barrier_all()
    assert not x.local.any()


def test_bulk_is_undone_by_its_inverse():
    n = pg.n_pes()
    size = 128
    x = pg.array(np.arange(size, dtype="u8"))
    rng = np.random.default_rng(pg.my_pe())
    where = rng.integers(0, n * size, 2000).astype("u8")
    for _ in range(2):
        pg.atomic_xor(x, where, (where // size).astype("i8"), index=(where % size).astype("i8"))
    pg.barrier_all()
    assert np.array_equal(x.local, np.arange(size))


def test_atomics_on_team_numbers():
    me, n = pg.my_pe(), pg.n_pes()
    backwards = pg.TEAM_WORLD.split_strided(n - 1, -1, n)
    x = pg.zeros(1, "i8")
    pg.atomic_add(x, me + 1, me, team=backwards)
    pg.barrier_all()
    assert x.local[0] == n - me
    backwards.destroy()


def test_errors_change_nothing():
    _, to, _ = ring()
    x = pg.full(4, 5, "i4")
    f = pg.full(1, 5, "f8")
    c = pg.full(1, 5, "c16")
    n = pg.n_pes()
    bad = [
        (ValueError, lambda: pg.atomic_add(x, 1, to)),  # several elements, no index
        (ValueError, lambda: pg.atomic_add(x[:0], 1, to)),
        ((IndexError, ValueError), lambda: pg.atomic_add(x, 1, to, index=4)),
        ((IndexError, ValueError), lambda: pg.atomic_add(x, 1, to, index=-5)),
        ((IndexError, ValueError), lambda: pg.atomic_add(x, 1, to, index=np.array([0, 4]))),
        ((IndexError, ValueError), lambda: pg.atomic_add(x, 1, to, index=np.array([0, -5]))),
        (TypeError, lambda: pg.atomic_add(x, 1, to, index=1.0)),
        (TypeError, lambda: pg.atomic_add(x, 1, to, index=np.array([0.0, 1.0]))),
        (ValueError, lambda: pg.atomic_add(x, np.ones(3, "i4"), to, index=np.array([0, 1]))),
        (ValueError, lambda: pg.atomic_add(x, 1, np.array([to] * 3), index=np.array([0, 1]))),
        (ValueError, lambda: pg.atomic_add(x, 1, n, index=0)),
        (ValueError, lambda: pg.atomic_add(x, 1, np.array([to, n]), index=np.array([0, 1]))),
        (ValueError, lambda: pg.atomic_add(x, 1, np.array([to, -1]), index=np.array([0, 1]))),
        (TypeError, lambda: pg.atomic_add(x, 1, None, index=0)),
        (TypeError, lambda: pg.atomic_add(x, 1.5, to, index=0)),
        (TypeError, lambda: pg.atomic_add(x, "1", to, index=0)),
        ((ValueError, OverflowError), lambda: pg.atomic_add(x, 2**40, to, index=0)),
        (TypeError, lambda: pg.atomic_or(f, 1, to)),
        (TypeError, lambda: pg.atomic_add(c, 1, to)),
        (ValueError, lambda: pg.atomic_add(np.zeros(1, "i4"), 1, to)),
    ]
    for error, call in bad:
        with pytest.raises(error):
            call()
    pg.barrier_all()
    assert np.all(x.local == 5)
    assert f.local[0] == 5
    assert c.local[0] == 5
