# SPDX-License-Identifier: Apache-2.0
"""pypgas.shmem: symmetric memory as NumPy arrays."""

import gc

import numpy as np
import pytest

import pypgas as pg
from pypgas import shmem

DTYPES = [*"bhilqBHILQfdgFD", "?", "e", "S1", "S3", "i4,f8"]


def test_alloc_gives_memory_of_the_size_asked_for():
    for count in (0, 1, 3):
        for size in (1, 4, 12):
            memory = shmem.alloc(count, size)
            assert isinstance(memory, memoryview)
            assert memory.nbytes == count * size
            assert bytes(memory) == bytes(count * size)
            shmem.free(memory)


@pytest.mark.parametrize("align", [None, 1, 8, 64, 256, 4096])
def test_alignment_and_clearing(align):
    for n in (1, 5, 100):
        for clear in (True, False):
            a = shmem.new_array(n, "u1", align=align, clear=clear)
            assert a.ctypes.data % (align or 64) == 0
            if clear:
                assert not a.any()
            a.fill(255)  # so that memory which is used again is dirty
            shmem.free(a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_numpy_arrays(dtype, order):
    for shape in [(), 0, 3, (2, 0), (2, 3), (2, 3, 4)]:
        a = shmem.empty(shape, dtype, order)
        like = np.empty(shape, dtype, order)
        assert type(a) is np.ndarray
        assert a.dtype == like.dtype
        assert a.shape == like.shape
        assert a.strides == like.strides or a.size == 0
        assert a.flags.writeable
        assert shmem.addr_accessible(a, shmem.my_pe())
        shmem.free(a)


def test_initial_contents():
    a = shmem.zeros((2, 3), "i4")
    b = shmem.ones(4, "f4")
    c = shmem.full((2, 2), 7)
    d = shmem.full(3, 2.5, "c16")
    assert np.array_equal(a, np.zeros((2, 3), "i4"))
    assert np.array_equal(b, np.ones(4, "f4"))
    assert np.array_equal(c, np.full((2, 2), 7))
    assert c.dtype == np.full((2, 2), 7).dtype
    assert np.array_equal(d, np.full(3, 2.5, "c16"))
    for array in (a, b, c, d):
        shmem.free(array)


@pytest.mark.parametrize("order", ["K", "A", "C", "F"])
def test_array_keeps_the_layout_numpy_would_give(order):
    base = np.arange(24).reshape(2, 3, 4)
    for source in (5, [[1, 2], [3.5, 4]], base, base.T, base.transpose(1, 0, 2), np.asfortranarray(base)):
        expected = np.asarray(source, order=order)
        a = shmem.array(source, order=order)
        assert np.array_equal(a, expected)
        assert a.dtype == expected.dtype
        assert a.strides == expected.strides
        shmem.free(a)


def test_array_of_each_pe_can_differ_and_is_ready_at_once():
    me, n = shmem.my_pe(), shmem.n_pes()
    a = shmem.array([me, me + 1], dtype="i8")
    got = np.zeros(2, "i8")
    shmem.get(got, a, (me + 1) % n)
    assert list(got) == [(me + 1) % n, (me + 1) % n + 1]


def test_fromalloc():
    memory = shmem.alloc(6, 4)
    assert shmem.fromalloc(memory).shape == (3,)  # float64, as NumPy's default
    a = shmem.fromalloc(memory, dtype="i4")
    b = shmem.fromalloc(memory, (2, 3), "i4", order="F")
    a[:] = range(6)
    assert np.array_equal(b, np.arange(6).reshape((2, 3), order="F"))
    with pytest.raises(ValueError, match="bytes"):
        shmem.fromalloc(memory, 7, "i4")
    shmem.free(memory)


def test_freeing_twice_is_a_key_error():
    memory = shmem.alloc(4)
    shmem.free(memory)
    with pytest.raises(KeyError):
        shmem.free(memory)
    empty = shmem.alloc(0)
    shmem.free(empty)
    with pytest.raises(KeyError):
        shmem.free(empty)
    a = shmem.zeros(3)
    shmem.del_array(a)
    with pytest.raises(pg.DoubleFreeError):
        shmem.free(a)


def test_free_by_any_array_that_begins_the_block():
    a = shmem.zeros((4, 5), "i4")
    shmem.free(a.reshape(-1).view("u1"))
    with pytest.raises(KeyError):
        shmem.free(a)


def test_only_symmetric_memory_can_be_freed():
    with pytest.raises((TypeError, ValueError)):
        shmem.free(np.zeros(3))
    with pytest.raises(TypeError):
        shmem.free([1, 2])
    a = shmem.zeros(8)
    with pytest.raises(ValueError):
        shmem.free(a[2:])
    shmem.free(a)


def test_dropped_arrays_are_released_later():
    shmem.barrier_all()
    used = pg.heap_statistics().used
    for _ in range(20):
        a = shmem.zeros(1000)
        view = a[10:20]
        del a
        gc.collect()
        view[:] = 1  # the view keeps the block
        assert shmem.addr_accessible(view, shmem.my_pe())
        del view
    gc.collect()
    shmem.barrier_all()
    shmem.barrier_all()
    assert pg.heap_statistics().used <= used


def test_ptr_is_the_memory_of_the_other_pe():
    me, n = shmem.my_pe(), shmem.n_pes()
    to = (me + 1) % n
    for dtype in "bhilqBHILQfdFDg":
        for order in ("C", "F"):
            a = shmem.full((2, 3), n, dtype, order)
            there = shmem.ptr(a, to)
            shmem.barrier_all()
            if there is not None:
                assert there.dtype == a.dtype
                assert there.strides == a.strides
                assert np.all(there == n)
                shmem.barrier_all()
                there[1, 2] = to
                shmem.barrier_all()
                assert a[1, 2] == me
                assert a[0, 0] == n
            shmem.free(a)


def test_accessibility():
    me, n = shmem.my_pe(), shmem.n_pes()
    assert all(shmem.pe_accessible(pe) for pe in range(n))
    assert not shmem.pe_accessible(n)
    assert not shmem.pe_accessible(-1)
    assert not shmem.addr_accessible(np.zeros(1), me)
    with pytest.raises(TypeError):
        shmem.addr_accessible([1], me)


def test_objects_cannot_be_symmetric():
    with pytest.raises(TypeError):
        shmem.empty(1, object)


def test_mixes_with_the_main_interface():
    me, n = shmem.my_pe(), shmem.n_pes()
    to = (me + 1) % n
    a = shmem.zeros(4, "i4")
    x = pg.zeros(4, "i4")
    pg.put(a, np.full(4, me, "i4"), to)
    shmem.put(x.local, np.full(4, me, "i4"), to)
    shmem.barrier_all()
    assert np.all(a == (me - 1) % n)
    assert np.all(x.local == (me - 1) % n)
