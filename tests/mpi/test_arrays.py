# SPDX-License-Identifier: Apache-2.0
"""Symmetric arrays: making them, looking at parts of them, exchanging them with NumPy."""

import copy
import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

import pypgas as pg

DTYPES = [
    *["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"],
    *["?", "f2", "f4", "f8", "c8", "c16", ml_dtypes.bfloat16],
]
SHAPES = [(), (0,), (1,), (7,), (2, 3), (0, 4), (3, 0), (2, 3, 4), (1, 1, 1, 1, 2)]


@pytest.mark.parametrize("dtype", DTYPES, ids=[np.dtype(dtype).name for dtype in DTYPES])
def test_making_arrays(dtype):
    for shape in SHAPES:
        for x, like in [
            (pg.empty(shape, dtype), None),
            (pg.zeros(shape, dtype), np.zeros(shape, dtype)),
            (pg.ones(shape, dtype), np.ones(shape, dtype)),
            (pg.full(shape, 1, dtype), np.full(shape, 1, dtype)),
            (pg.array(np.ones(shape, dtype)), np.ones(shape, dtype)),
        ]:
            blank = np.empty(shape, dtype)
            assert x.shape == shape
            assert x.dtype == blank.dtype
            assert (x.ndim, x.size, x.nbytes) == (blank.ndim, blank.size, blank.nbytes)
            assert x.strides == blank.strides or x.size == 0
            assert x.local.shape == shape
            assert x.local.dtype == blank.dtype
            assert x.local.flags.writeable
            if like is not None:
                assert np.array_equal(x.local, like)
            x.free()


def test_defaults_and_conversions():
    assert pg.zeros(3).dtype == np.dtype("f8")
    assert pg.full(2, 3).dtype == np.asarray(3).dtype
    assert pg.full(2, 2.5).dtype == np.dtype("f8")
    assert pg.zeros(np.int64(3)).shape == (3,)
    assert pg.zeros([2, 3]).shape == (2, 3)
    x = pg.array([[1, 2], [3, 4]], dtype="f4")
    assert x.dtype == np.dtype("f4")
    assert np.array_equal(x.local, [[1, 2], [3, 4]])
    y = pg.array(np.arange(6).reshape(2, 3).T)
    assert y.shape == (3, 2)
    assert np.array_equal(y.local, np.arange(6).reshape(2, 3).T)
    assert pg.alloc(10).dtype == np.dtype("u1")
    assert pg.alloc(10).shape == (10,)


def test_initial_values_are_there_before_any_pe_returns():
    me, n = pg.my_pe(), pg.n_pes()
    to = (me + 1) % n
    for _ in range(20):
        x = pg.full(3, 7, "i4")
        assert pg.g(x[1], to) == 7
        y = pg.array(np.full(3, me))
        assert pg.g(y[2], to) == to
        z = pg.zeros(1000, "i8")
        assert not z.at(to)[...].get().any()
        pg.barrier_all()
        z.local[:] = -1  # so that memory which is used again is dirty
        pg.barrier_all()
        for array in (x, y, z):
            array.free()


def test_errors_of_making():
    for error, call in [
        (ValueError, lambda: pg.zeros(-1)),
        (ValueError, lambda: pg.zeros((2, -3))),
        (TypeError, lambda: pg.zeros(2.5)),
        (TypeError, lambda: pg.zeros("3")),
        (TypeError, lambda: pg.zeros(3, object)),
        (TypeError, lambda: pg.zeros(3, "S4")),
        (TypeError, lambda: pg.zeros(3, "M8[s]")),
        (TypeError, lambda: pg.zeros(3, "no such type")),
        (TypeError, lambda: pg.zeros(3, ">i4")),
        (ValueError, lambda: pg.zeros(3, align=3)),
        (ValueError, lambda: pg.zeros(3, align=0)),
        (ValueError, lambda: pg.alloc(-1)),
        (ValueError, lambda: pg.zeros(3, memory="tape")),
        (TypeError, lambda: pg.array([object()])),
    ]:
        with pytest.raises(error):
            call()
    pg.barrier_all()


VIEWS = [
    np.s_[1],
    np.s_[-1],
    np.s_[:],
    np.s_[...],
    np.s_[1:3],
    np.s_[::-1],
    np.s_[::2, 1:4],
    np.s_[2:0:-1, ::-2],
    np.s_[:, 1],
    np.s_[..., 2],
    np.s_[1, ..., -2],
    np.s_[1, 2, 3],
    np.s_[:, None, 1],
    np.s_[None],
    np.s_[5:1],
    np.s_[:100],
    np.s_[-100:2, 1:-1, 4::-3],
    np.s_[np.int64(2), np.int8(1)],
    (),
]


@pytest.mark.parametrize("index", VIEWS, ids=str)
def test_views_are_those_of_numpy(index):
    x = pg.array(np.arange(60, dtype="i4").reshape(3, 4, 5))
    model = np.arange(60, dtype="i4").reshape(3, 4, 5)
    view = x[index]
    expected = model[index]
    assert isinstance(view, pg.SymmetricArray)  # never a copy, never a scalar
    assert view.shape == expected.shape
    assert view.strides == np.asarray(expected).strides
    assert np.array_equal(view.local, expected)
    view[...] = -7
    model[index] = -7
    assert np.array_equal(x.local, model)


def test_views_of_views():
    x = pg.array(np.arange(60).reshape(3, 4, 5))
    model = np.arange(60).reshape(3, 4, 5)
    for first, second in itertools.product(VIEWS[:8], [np.s_[..., 0], np.s_[::-1], np.s_[-1]]):
        assert np.array_equal(x[first][second].local, model[first][second])
    assert np.array_equal(x.T[1].T[::2].local, model.T[1].T[::2])


def test_transposes_and_shapes():
    x = pg.array(np.arange(24).reshape(2, 3, 4))
    model = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(x.T.local, model.T)
    assert x.T.strides == model.T.strides
    for axes in itertools.permutations(range(3)):
        assert np.array_equal(x.transpose(axes).local, model.transpose(axes))
        assert np.array_equal(x.transpose(*axes).local, model.transpose(axes))
    for shape in [(24,), (4, 6), (-1,), (2, -1), (2, 3, 4, 1), (1, 24)]:
        assert np.array_equal(x.reshape(shape).local, model.reshape(shape))
    assert np.array_equal(x.reshape(4, -1).local, model.reshape(4, -1))
    assert np.array_equal(x.ravel().local, model.ravel())
    assert np.array_equal(x[:, :2].reshape(2, 8).local, model[:, :2].reshape(2, 8))
    x.reshape(24)[5] = -1
    assert x.local[0, 1, 1] == -1
    for call in (lambda: x.T.reshape(24), lambda: x.T.ravel()):
        with pytest.raises(ValueError):  # would need a copy
            call()
    for shape in [(5,), (7, -1), (-1, -1)]:
        with pytest.raises(ValueError):
            x.reshape(shape)
    with pytest.raises(ValueError):
        x.transpose(0, 0, 1)


def test_index_errors():
    x = pg.zeros((3, 4))
    for index in (3, -4, (0, 4), (0, 0, 0)):
        with pytest.raises(IndexError):
            x[index]
    for index in ([0, 1], np.array([0, 1]), np.array([True, False, True]), 1.5, "a", (slice(None), [0])):
        with pytest.raises((TypeError, IndexError)):
            x[index]
        with pytest.raises((TypeError, IndexError)):
            x[index] = 1


def test_local_is_memory_not_a_copy():
    x = pg.zeros((3, 4), "i4")
    x.local[1, 2] = 5
    assert x.local[1, 2] == 5
    assert x[1:, 2:].local[0, 0] == 5
    before = x.numpy()
    x.local[1, 2] = 6
    assert before[1, 2] == 5
    assert not np.shares_memory(before, x.local)
    x.fill(3)
    assert np.all(x.local == 3)
    x[0].fill(4)
    assert np.array_equal(x.local[:, 0], [4, 3, 3])


def test_exchange_with_numpy_and_dlpack():
    x = pg.array(np.arange(6, dtype="f4").reshape(2, 3))
    assert np.array_equal(np.asarray(x.local), x.local)
    shared = np.from_dlpack(x)
    assert shared.ctypes.data == x.local.ctypes.data
    assert np.array_equal(shared, x.local)
    assert np.array_equal(np.from_dlpack(x[:, ::2]), x.local[:, ::2])
    assert x.__dlpack_device__() == (1, 0)
    y = pg.zeros((2, 3), "f4")
    pg.put(y, np.from_dlpack(x), pg.my_pe())
    assert np.array_equal(y.local, x.local)


def test_is_symmetric():
    x = pg.zeros((3, 4))
    assert pg.is_symmetric(x)
    assert pg.is_symmetric(x[1:, ::-1])
    assert pg.is_symmetric(x.local)
    assert pg.is_symmetric(x.local[1:, ::-1].T)
    assert not pg.is_symmetric(np.zeros(3))
    assert not pg.is_symmetric(3)


def test_what_could_be_misread_raises():
    x = pg.ones(1)
    for call in (
        lambda: bool(x),
        lambda: x == x,
        lambda: x != 1,
        lambda: hash(x) and x == 1,
        lambda: pickle.dumps(x),
        lambda: copy.deepcopy(x),
        lambda: x + 1,
        lambda: float(x),
    ):
        with pytest.raises(TypeError):
            call()


def test_repr_reads_no_memory():
    x = pg.full((2, 3), 12345, "i4")
    assert "12345" not in repr(x)
    assert "(2, 3)" in repr(x)
    assert "int32" in repr(x)
    assert "12345" not in repr(x[0, 0])
    handle = x.at(0)[1]
    assert "12345" not in repr(handle)
    x.free()
    assert "freed" in repr(x)


def test_a_freed_array():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.zeros(4, "i4")
    view = x[1:]
    local = x.local
    x.free()
    for call in (
        lambda: x.local,
        lambda: x[0],
        lambda: view.local,
        lambda: x.fill(1),
        lambda: x.numpy(),
        lambda: x.at(0)[...].get(),
        lambda: x.peer(0),
        lambda: pg.put(x, np.zeros(4, "i4"), me),
        lambda: pg.put(view, np.zeros(3, "i4"), me),
        lambda: pg.put(local, np.zeros(4, "i4"), me),
        lambda: pg.get(np.zeros(4, "i4"), x, me),
        lambda: pg.atomic_inc(view, me, index=0),
        lambda: pg.wait_until_all(view, pg.EQ, 0),
        lambda: pg.broadcast(x, 0),
    ):
        with pytest.raises(ValueError):
            call()
    pg.barrier_all()
    assert n == pg.n_pes()
