# SPDX-License-Identifier: Apache-2.0
"""pypgas.shmem: puts and gets."""

import numpy as np
import pytest

from pypgas import shmem

DTYPES = [*"bhilqBHILQfdgFDe?", "S1", "S3", "i4,f8"]
STRIDED_DTYPES = [*"bhilqBHILQfdgFD"]


def ring():
    me, n = shmem.my_pe(), shmem.n_pes()
    return me, (me + 1) % n, (me - 1) % n


def some(n, dtype, seed):
    """n elements that differ from seed to seed, of any dtype."""
    dtype = np.dtype(dtype)
    raw = (np.arange(n * dtype.itemsize) * 7 + seed * 31 + 1) % 2
    if dtype.kind in "SV":
        return ((raw + 65).astype("u1")).view(dtype)
    return ((np.arange(n) + 3 * seed + 1) % 100).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["put", "put_nbi"])
def test_put(dtype, name):
    me, to, of = ring()
    for n in (0, 1, 2, 9):
        target = shmem.zeros(n, dtype)
        source = some(n, dtype, me)
        getattr(shmem, name)(target, source, to)
        shmem.barrier_all()
        assert np.array_equal(target, some(n, dtype, of))
        shmem.free(target)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["get", "get_nbi"])
def test_get(dtype, name):
    me, to, _ = ring()
    for n in (0, 1, 2, 9):
        source = shmem.array(some(n, dtype, me))
        target = np.zeros(n, dtype)
        getattr(shmem, name)(target, source, to)
        shmem.quiet()
        assert np.array_equal(target, some(n, dtype, to))
        shmem.free(source)


@pytest.mark.parametrize("ctx", [None, shmem.CTX_DEFAULT])
def test_size_limits_what_is_moved(ctx):
    me, to, of = ring()
    target = shmem.full(5, -1, "i4")
    shmem.put(target, np.full(7, me, "i4"), to, size=3, ctx=ctx)
    shmem.barrier_all()
    assert list(target) == [of] * 3 + [-1] * 2
    got = np.full(9, -1, "i4")
    shmem.get(got, target, to, size=4, ctx=ctx)
    assert list(got) == [me] * 3 + [-1] * 6
    shmem.barrier_all()
    shmem.put(target, np.full(2, -5, "i4"), to, 0)
    shmem.put(target, np.full(2, -6, "i4"), to)  # as many as both have
    shmem.barrier_all()
    assert list(target) == [-6, -6, of, -1, -1]


def test_arrays_are_taken_in_memory_order():
    me, to, of = ring()
    target = shmem.zeros((3, 4), "i8", "F")
    source = np.arange(12).reshape(3, 4) + me
    shmem.put(target, source, to)
    shmem.barrier_all()
    assert np.array_equal(target.T.reshape(-1), np.arange(12) + of)
    shmem.barrier_all()
    shmem.put(target[:, 1:3], source[:2], to, size=6)  # a Fortran-contiguous part
    shmem.barrier_all()
    assert np.array_equal(target.T.reshape(-1)[3:9], np.arange(6) + of)


@pytest.mark.parametrize("dtype", STRIDED_DTYPES)
def test_iput_and_iget(dtype):
    me, to, of = ring()
    target = shmem.zeros(12, dtype)
    fill = np.array(99).astype(dtype)
    for tst in (1, 2, 5, 12):
        for sst in (1, 3, 11):
            expected = np.full(12, fill, dtype)
            count = min(len(expected[::tst]), len(expected[::sst]))
            expected[::tst][:count] = some(12, dtype, of)[::sst][:count]
            target[:] = fill
            shmem.barrier_all()
            shmem.iput(target, some(12, dtype, me), to, tst, sst)
            shmem.barrier_all()
            assert np.array_equal(target, expected)

            target[:] = some(12, dtype, me)
            shmem.barrier_all()
            got = np.full(12, fill, dtype)
            shmem.iget(got, target, to, tst=tst, sst=sst, size=1)
            expected = np.full(12, fill, dtype)
            expected[0] = some(12, dtype, to)[0]
            assert np.array_equal(got, expected)
            shmem.iget(got, target, to, tst=tst, sst=sst)
            expected[::tst][:count] = some(12, dtype, to)[::sst][:count]
            assert np.array_equal(got, expected)
            shmem.barrier_all()


def test_source_may_be_reused_after_put():
    me, to, of = ring()
    target = shmem.zeros((50, 100), "i4")
    source = np.zeros(100, "i4")
    for row in range(50):
        source[:] = me * 1000 + row
        shmem.put(target[row], source, to)
        source[:] = -1
    shmem.barrier_all()
    assert np.array_equal(target, np.repeat(of * 1000 + np.arange(50), 100).reshape(50, 100))


def test_bad_operands_move_nothing():
    me, to, _ = ring()
    n = shmem.n_pes()
    target = shmem.full(4, 5, "i4")
    source = np.full(4, 9, "i4")
    readonly = target[:]
    readonly.flags.writeable = False
    bad = [
        (ValueError, lambda: shmem.put(np.zeros(4, "i4"), source, to)),  # not symmetric
        (TypeError, lambda: shmem.put(target, [1, 2], to)),
        (TypeError, lambda: shmem.put(target, source.astype("i8"), to)),
        (ValueError, lambda: shmem.put(target, source, to, size=5)),
        (ValueError, lambda: shmem.put(target, source, to, size=-1)),
        (TypeError, lambda: shmem.put(target, source, to, size=1.0)),
        (ValueError, lambda: shmem.put(target, source, n)),
        (ValueError, lambda: shmem.put(target, source, -1)),
        (TypeError, lambda: shmem.put(target, source, 0.0)),
        (ValueError, lambda: shmem.put(readonly, source, to)),
        (ValueError, lambda: shmem.put(target[::2], source[:2], to)),  # not contiguous
        (ValueError, lambda: shmem.get(readonly, target, to)),
        (ValueError, lambda: shmem.iput(target, source, to, tst=0)),
        (TypeError, lambda: shmem.iput(target, source, to, sst=1.5)),
        (TypeError, lambda: shmem.put(target, source, to, ctx=3)),
        (RuntimeError, lambda: shmem.put(target, source, to, ctx=shmem.CTX_INVALID)),
    ]
    for error, call in bad:
        with pytest.raises(error):
            call()
    shmem.barrier_all()
    assert np.all(target == 5)
    assert me == shmem.my_pe()
