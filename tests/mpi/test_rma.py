# SPDX-License-Identifier: Apache-2.0
"""Puts and gets: every dtype, size, alignment and layout, against NumPy."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import pypgas as pg

DTYPES = [
    *["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"],
    *["?", "f2", "f4", "f8", "c8", "c16", ml_dtypes.bfloat16],
]
ids = [np.dtype(dtype).name for dtype in DTYPES]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=ids)


def ring():
    me, n = pg.my_pe(), pg.n_pes()
    return me, (me + 1) % n, (me - 1) % n


def some(shape, dtype, seed):
    """Small numbers that differ from seed to seed, exact in every dtype."""
    values = (np.arange(np.prod(shape, dtype=int)) * 7 + 31 * seed + 1) % 113
    return (values % 2 if np.dtype(dtype) == bool else values).astype(dtype).reshape(shape)


@every_dtype
@pytest.mark.parametrize("put", ["put", "put_nbi"])
def test_put(dtype, put):
    me, to, of = ring()
    for size in (0, 1, 2, 3, 15, 64, 1001):
        x = pg.zeros(size, dtype)
        getattr(pg, put)(x, some(size, dtype, me), to)
        pg.barrier_all()
        assert np.array_equal(x.local, some(size, dtype, of))
        x.free()


@every_dtype
@pytest.mark.parametrize("get", ["get", "get_nbi"])
def test_get(dtype, get):
    me, to, _ = ring()
    for size in (0, 1, 2, 3, 15, 64, 1001):
        x = pg.array(some(size, dtype, me))
        target = np.zeros(size, dtype)
        getattr(pg, get)(target, x, to)
        pg.quiet()
        assert np.array_equal(target, some(size, dtype, to))
        x.free()


@every_dtype
def test_single_elements(dtype):
    me, to, of = ring()
    x = pg.array(some(5, dtype, me))
    got = pg.g(x[3], to)
    assert got == some(5, dtype, to)[3]
    assert got.dtype == np.dtype(dtype)
    pg.barrier_all()
    pg.p(x[2], some(1, dtype, me + 50)[0], to)
    pg.barrier_all()
    expected = some(5, dtype, me)
    expected[2] = some(1, dtype, of + 50)[0]
    assert np.array_equal(x.local, expected)


def test_every_alignment_of_both_sides():
    me, to, of = ring()
    x = pg.zeros(64, "u1")
    source = some(64, "u1", me)
    theirs = some(64, "u1", of)
    for start, at, size in itertools.product((0, 1, 3, 7, 8), (0, 2, 5, 9), (0, 1, 3, 8, 17, 40)):
        x.local[:] = 255
        pg.barrier_all()
        pg.put(x[start : start + size], source[at : at + size], to)
        pg.barrier_all()
        expected = np.full(64, 255, "u1")
        expected[start : start + size] = theirs[at : at + size]
        assert np.array_equal(x.local, expected)
        got = np.full(64, 254, "u1")
        pg.get(got[at : at + size], x[start : start + size], to)
        expected = np.full(64, 254, "u1")
        expected[at : at + size] = source[at : at + size]
        assert np.array_equal(got, expected)
        pg.barrier_all()


# A shape, and views of it with a common shape.
VIEWS = [
    ((12,), [np.s_[::2], np.s_[::-2], np.s_[3:9], np.s_[10:4:-1]]),
    ((6, 8), [np.s_[::2, 1:5], np.s_[::-2, 5:1:-1], np.s_[0:3, ::2], np.s_[3:, 4:]]),
    ((4, 5, 6), [np.s_[1:3, ::2, 5:2:-1], np.s_[::-2, 2:, :3], np.s_[::3, 4:1:-1, ::2]]),
    ((3, 4), [np.s_[1], np.s_[-1], np.s_[2, ::-1]]),
    ((3, 4), [np.s_[:, 1], np.s_[::-1, -1]]),
    ((3, 4), [np.s_[1, 2, ...], np.s_[0, -1, ...]]),
    ((3, 4), [np.s_[None, 1, :, None], np.s_[None, -1, ::-1, None]]),
]


@pytest.mark.parametrize(("shape", "views"), VIEWS, ids=[str(shape) for shape, _ in VIEWS])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16"])
def test_strided_views(shape, views, dtype):
    me, to, of = ring()
    x = pg.zeros(shape, dtype)
    for there, here in itertools.product(views, views):
        mine, theirs = some(shape, dtype, me + 9), some(shape, dtype, of + 9)
        x.local[...] = 0
        pg.barrier_all()
        pg.put(x[there], mine[here], to)
        pg.barrier_all()
        expected = np.zeros(shape, dtype)
        expected[there] = theirs[here]
        assert np.array_equal(x.local, expected)

        got = np.zeros(shape, dtype)
        pg.get(got[here], x[there], me)
        again = np.zeros(shape, dtype)
        again[here] = expected[there]
        assert np.array_equal(got, again)
        pg.barrier_all()


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_transposes(axes):
    me, to, of = ring()
    shape = (2, 3, 4)
    x = pg.zeros(shape, "i4")
    view = x.transpose(axes)
    pg.put(view, some(view.shape, "i4", me), to)
    pg.barrier_all()
    assert np.array_equal(x.local.transpose(axes), some(view.shape, "i4", of))
    got = np.zeros(view.shape[::-1], "i4")
    pg.get(got.T, view, to)
    assert np.array_equal(got.T, some(view.shape, "i4", me))


def test_part_of_local_is_an_operand():
    me, to, of = ring()
    x = pg.zeros((4, 6), "f8")
    y = pg.array(some((4, 6), "f8", me))
    pg.put(x.local[1:3, ::2], y.local[:2, 1:4], to)
    pg.barrier_all()
    expected = np.zeros((4, 6))
    expected[1:3, ::2] = some((4, 6), "f8", of)[:2, 1:4]
    assert np.array_equal(x.local, expected)
    pg.get(x.local[0, :3], y.local[3, 3:], to)
    assert np.array_equal(x.local[0, :3], some((4, 6), "f8", to)[3, 3:])


def test_symmetric_to_symmetric():
    me, to, of = ring()
    x = pg.zeros(10, "i4")
    y = pg.array(some(10, "i4", me))
    pg.put(x, y, to)
    pg.barrier_all()
    assert np.array_equal(x.local, some(10, "i4", of))
    pg.get(x, y, to)
    assert np.array_equal(x.local, some(10, "i4", to))


def test_every_pair_of_pes():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.zeros((n, 3), "i8")
    for pe in range(n):
        pg.put(x[me], np.arange(3) + 10 * me + 100 * pe, pe)
    pg.barrier_all()
    for pe in range(n):
        got = np.zeros((n, 3), "i8")
        pg.get(got, x, pe)
        assert np.array_equal(got, np.arange(3) + 10 * np.arange(n)[:, None] + 100 * pe)


def test_large_transfers():
    me, to, of = ring()
    size = 3 * 2**20 + 5
    x = pg.zeros(size, "u8")
    source = np.arange(size, dtype="u8") + me
    pg.put(x[:-1], source[1:], to)
    pg.barrier_all()
    assert np.array_equal(x.local[:-1], np.arange(1, size, dtype="u8") + of)
    assert x.local[-1] == 0
    pg.get(source, x, to)
    assert np.array_equal(source[:-1], np.arange(1, size, dtype="u8") + me)


def test_large_strided_transfers():
    me, to, of = ring()
    x = pg.zeros((512, 600), "f4")
    source = some((600, 1024), "f4", me)
    pg.put(x[::-1, ::2], source.T[::2, ::2], to)
    pg.barrier_all()
    expected = np.zeros((512, 600), "f4")
    expected[::-1, ::2] = some((600, 1024), "f4", of).T[::2, ::2]
    assert np.array_equal(x.local, expected)


def test_source_may_be_reused_after_put():
    me, to, of = ring()
    x = pg.zeros((100, 33), "i4")
    source = np.zeros(33, "i4")
    for row in range(100):
        source[:] = 1000 * me + row
        pg.put(x[row], source, to)
        source[:] = -1
    pg.barrier_all()
    assert np.array_equal(x.local, np.repeat(1000 * of + np.arange(100), 33).reshape(100, 33))


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "i8", "c16"])
def test_iput_and_iget(dtype):
    me, to, of = ring()
    x = pg.zeros(24, dtype)
    for tst, sst, count in [(1, 1, 24), (2, 1, 12), (1, 3, 8), (5, 7, 3), (23, 2, 2), (1, 1, 0), (9, 9, 1)]:
        x.local[:] = 99
        pg.barrier_all()
        pg.iput(x, some(24, dtype, me), tst, sst, count, to)
        pg.barrier_all()
        expected = np.full(24, 99, dtype)
        expected[: tst * count : tst] = some(24, dtype, of)[: sst * count : sst]
        assert np.array_equal(x.local, expected)
        theirs = np.full(24, 99, dtype)
        theirs[: tst * count : tst] = some(24, dtype, me)[: sst * count : sst]
        got = np.full(24, 98, dtype)
        pg.iget(got, x, sst, tst, count, to)
        expected = np.full(24, 98, dtype)
        expected[: sst * count : sst] = theirs[: tst * count : tst]
        assert np.array_equal(got, expected)
        pg.barrier_all()


def test_pes_count_in_the_team():
    me, n = pg.my_pe(), pg.n_pes()
    backwards = pg.TEAM_WORLD.split_strided(n - 1, -1, n)
    x = pg.full(1, -1, "i4")
    pg.put(x, np.array([me], "i4"), me, team=backwards)
    pg.barrier_all()
    assert x.local[0] == n - 1 - me
    got = np.zeros(1, "i4")
    pg.get(got, x, 0, team=backwards)
    assert got[0] == 0  # PE n - 1 was written by PE 0
    assert pg.g(x, n - 1, team=backwards) == n - 1
    assert x.at(0, team=backwards)[0].get() == 0
    backwards.destroy()


def test_fence_orders_a_flag_after_data():
    me, to, of = ring()
    data = pg.zeros(1000, "i8")
    flag = pg.zeros(1, "i8")
    back = pg.zeros(1, "i8")
    for step in range(1, 51):
        pg.put(data, np.full(1000, 100 * me + step), to)
        pg.fence()
        pg.p(flag, step, to)
        pg.wait_until(flag, pg.GE, step)
        assert np.all(data.local == 100 * of + step)
        pg.p(back, step, of)
        pg.wait_until(back, pg.GE, step)


# Remote handles.


def test_remote_handles_read():
    me, to, _ = ring()
    x = pg.array(some((4, 5), "i4", me))
    theirs = some((4, 5), "i4", to)
    assert np.array_equal(x.at(to)[...].get(), theirs)
    assert np.array_equal(np.asarray(x.at(to)[1:3, ::-2]), theirs[1:3, ::-2])
    assert np.array_equal(x.at(to)[2].get(), theirs[2])
    assert x.at(to)[1, 2].get() == theirs[1, 2]
    assert np.array_equal(x.T.at(to)[0].get(), theirs.T[0])
    assert np.array_equal(np.asarray(x.at(to)[0], dtype="f8"), theirs[0].astype("f8"))


def test_remote_handles_write():
    me, to, of = ring()
    x = pg.zeros((4, 5), "f4")
    x.at(to)[1:3, ::2] = some((2, 3), "f4", me)
    x.at(to)[0] = me  # scalars and rows are broadcast, as in NumPy
    x.at(to)[3, 1] = 2.5
    x.at(to)[3, 2:] = some(3, "i2", me)  # a cast of the same kind
    pg.barrier_all()
    expected = np.zeros((4, 5), "f4")
    expected[1:3, ::2] = some((2, 3), "f4", of)
    expected[0] = of
    expected[3, 1] = 2.5
    expected[3, 2:] = some(3, "i2", of)
    assert np.array_equal(x.local, expected)


def test_remote_handles_are_targets():
    me, to, of = ring()
    x = pg.zeros((3, 4), "i8")
    signal = pg.zeros(1, "u8")
    pg.put(x.at(to)[1], np.full(4, me))
    pg.put_signal(x.at(to)[2], np.full(4, me + 1), signal, 1)
    pg.atomic_add(x.at(to)[0, 0], 7)
    pg.barrier_all()
    assert np.array_equal(x.local, [[7, 0, 0, 0], [of] * 4, [of + 1] * 4])
    assert pg.signal_fetch(signal) == 1


def test_remote_handles_refuse():
    me, to, _ = ring()
    x = pg.zeros((3, 4), "i4")
    with pytest.raises(TypeError, match="atomic_add"):
        x.at(to)[0] += 1
    with pytest.raises(pg.InvalidPEError):
        x.at(pg.n_pes())[0].get()
    with pytest.raises((TypeError, ValueError)):
        x.at(to)[0] = np.zeros(4, "f8")  # not a cast of the same kind
    with pytest.raises(ValueError):
        x.at(to)[0] = np.zeros(3, "i4")
    with pytest.raises(IndexError):
        x.at(to)[5].get()
    pg.barrier_all()
    assert not x.local.any()
    assert me == pg.my_pe()


def test_peer_is_the_other_pes_memory():
    me, to, of = ring()
    x = pg.array(some((3, 4), "i4", me))
    there = x[1:, ::2].peer(to)
    assert there is not None  # all PEs of these tests share a node
    assert np.array_equal(there, some((3, 4), "i4", to)[1:, ::2])
    pg.barrier_all()
    there[0, 0] = 500 + me
    pg.barrier_all()
    assert x.local[1, 0] == 500 + of
    assert x.peer(me).ctypes.data == x.local.ctypes.data


def test_assignment_to_the_local_piece():
    me, _, _ = ring()
    x = pg.zeros((3, 4), "f4")
    x[1] = me
    x[2, ::2] = [5, 6]
    x[0, 1:3] = some(2, "i2", 3)
    x[2, 1] = 7.5
    expected = np.zeros((3, 4), "f4")
    expected[1] = me
    expected[2, ::2] = [5, 6]
    expected[0, 1:3] = some(2, "i2", 3)
    expected[2, 1] = 7.5
    assert np.array_equal(x.local, expected)
    with pytest.raises((TypeError, ValueError)):
        pg.zeros(3, "i4")[:] = np.zeros(3, "f8")


# Operands of other kinds.


def test_sources_need_not_be_arrays():
    me, to, of = ring()
    x = pg.zeros((2, 3), "f4")
    pg.put(x, [[me, 1, 2], [3, 4, 5]], to)
    pg.barrier_all()
    assert np.array_equal(x.local, [[of, 1, 2], [3, 4, 5]])
    pg.barrier_all()
    pg.put(x[0], np.broadcast_to(np.float32(me), 3), to)
    pg.put(x[1, 2], 7, to)
    pg.barrier_all()
    assert np.array_equal(x.local, [[of] * 3, [3, 4, 7]])


def test_frozen_sources():
    me, to, of = ring()
    x = pg.zeros(4, "i8")
    source = np.arange(4) + me
    source.flags.writeable = False
    pg.put(x, source, to)
    pg.barrier_all()
    assert np.array_equal(x.local, np.arange(4) + of)


def test_overlapping_views_of_one_pe_behave_as_in_numpy():
    me = pg.my_pe()
    for size in (5, 1000, 200_000):
        x = pg.array(np.arange(size))
        model = np.arange(size)
        for to, of in [
            (np.s_[1:], np.s_[:-1]),
            (np.s_[:-1], np.s_[1:]),
            (np.s_[:], np.s_[::-1]),
            (np.s_[: size // 2], np.s_[: 2 * (size // 2) : 2]),
            (np.s_[: 2 * (size // 2) : 2], np.s_[: size // 2]),
        ]:
            pg.put(x[to], x[of], me)
            model[to] = model[of].copy()
            assert np.array_equal(x.local, model)
            pg.get(x.local[to], x[of], me)
            model[to] = model[of].copy()
            assert np.array_equal(x.local, model)
        x.free()


def test_many_dimensions():
    me, to, of = ring()
    shape = (2, 1, 3, 1, 2, 1, 1, 2, 1, 2, 3, 1, 1, 2)
    x = pg.zeros(shape, "i2")
    pg.put(x.T[::-1], some(shape[::-1], "i2", me), to)
    pg.barrier_all()
    expected = np.zeros(shape, "i2")
    expected.T[::-1] = some(shape[::-1], "i2", of)
    assert np.array_equal(x.local, expected)


def test_views_that_are_symmetric_by_address():
    me, to, of = ring()
    x = pg.zeros(64, "u1")
    y = x.local[8:40].view("f8").reshape(2, 2)
    pg.put(y, np.full((2, 2), me + 0.5), to)
    pg.barrier_all()
    assert np.all(x.local[8:40].view("f8") == of + 0.5)
    assert not x.local[:8].any()
    assert not x.local[40:].any()
    same = np.frombuffer(memoryview(x.local), "u2")  # NumPy does not know whose memory this is
    pg.barrier_all()
    pg.put(same[:2], np.full(2, me + 1, "u2"), to)
    pg.barrier_all()
    assert list(same[:2]) == [of + 1] * 2
