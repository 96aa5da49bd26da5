# SPDX-License-Identifier: Apache-2.0
"""pypgas.shmem: collective operations."""

import numpy as np
import pytest

from pypgas import shmem

DTYPES = [*"bhilqBHILQfdgFD", "S3"]
UFUNCS = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "max": np.maximum,
    "min": np.minimum,
    "sum": np.add,
    "prod": np.multiply,
}


def some(shape, dtype, seed):
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) + 5 * seed + 1) % 90
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_broadcast(dtype):
    me, n = shmem.my_pe(), shmem.n_pes()
    for count in (0, 1, 5):
        source = shmem.array(some(count, dtype, me))
        target = shmem.zeros(count, dtype)
        for root in range(n):
            shmem.broadcast(target, source, root)
            assert np.array_equal(target, some(count, dtype, root))
        shmem.free(source)
        shmem.free(target)


def test_broadcast_of_a_part():
    me, n = shmem.my_pe(), shmem.n_pes()
    source = shmem.full((3, 4), me, "i4")
    target = shmem.full((2, 4), -1, "i4")
    shmem.broadcast(target, source, n - 1, size=5)
    assert list(target.reshape(-1)) == [n - 1] * 5 + [-1] * 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_collect_and_fcollect(dtype):
    me, n = shmem.my_pe(), shmem.n_pes()
    for count in (0, 1, 3):
        source = shmem.array(some(count * n, dtype, me))
        target = shmem.zeros(count * n * n + 2, dtype)
        shmem.collect(target, source, (me + 1) * count)
        expected = np.concatenate([some(count * n, dtype, pe)[: (pe + 1) * count] for pe in range(n)])
        assert np.array_equal(target[: expected.size], expected)
        assert np.array_equal(target[expected.size :], np.zeros(target.size - expected.size, dtype))
        shmem.fcollect(target, source, count)
        expected = np.concatenate([some(count * n, dtype, pe)[:count] for pe in range(n)])
        assert np.array_equal(target[: expected.size], expected)
        shmem.free(source)
        shmem.free(target)


@pytest.mark.parametrize("dtype", DTYPES)
def test_alltoall(dtype):
    me, n = shmem.my_pe(), shmem.n_pes()
    for count in (0, 1, 4):
        source = shmem.array(some((n, count), dtype, me))
        target = shmem.zeros((n, count), dtype)
        shmem.alltoall(target, source)
        expected = [some((n, count), dtype, pe)[me] for pe in range(n)]
        assert np.array_equal(target, np.array(expected, dtype).reshape(n, count))
        shmem.free(source)
        shmem.free(target)


@pytest.mark.parametrize("dtype", list("bhilqBHILQfdgFD"))
def test_alltoalls(dtype):
    me, n = shmem.my_pe(), shmem.n_pes()
    for tst, sst, count in [(1, 1, 2), (3, 2, 1), (2, 5, 3)]:
        source = shmem.array(some(n * count * sst, dtype, me))
        target = shmem.zeros(n * count * tst, dtype)
        expected = np.zeros(n * count * tst, dtype)
        for pe in range(n):
            theirs = some(n * count * sst, dtype, pe)[::sst]
            expected[::tst][pe * count : (pe + 1) * count] = theirs[me * count : (me + 1) * count]
        shmem.alltoalls(target, source, tst, sst)
        assert np.array_equal(target, expected)
        target[:] = np.zeros(1, dtype)
        shmem.barrier_all()
        shmem.alltoalls(target, source, tst=tst, sst=sst, size=count)
        assert np.array_equal(target, expected)
        shmem.free(source)
        shmem.free(target)


@pytest.mark.parametrize(
    ("op", "dtypes"),
    [
        *[(op, "BHILQ") for op in ("and", "or", "xor")],
        *[(op, "bhilqBHILQfdg") for op in ("max", "min")],
        *[(op, "bhilqBHILQfdgFD") for op in ("sum", "prod")],
    ],
)
def test_reductions(op, dtypes):
    me, n = shmem.my_pe(), shmem.n_pes()
    for dtype in dtypes:
        parts = np.array([(some(4, "i4", pe) % 3).astype(dtype) for pe in range(n)])
        expected = UFUNCS[op].reduce(parts, axis=0, dtype=dtype)
        source = shmem.array(parts[me])
        target = shmem.zeros(5, dtype)
        shmem.reduce(target, source, op)
        assert np.allclose(target[:4], expected)
        assert target[4] == 0
        shmem.reduce(target, source, shmem.OP(op), size=0)
        getattr(shmem, f"{op}_reduce")(source, source, size=2)  # in place
        assert np.allclose(source[:2], expected[:2])
        assert np.array_equal(source[2:], parts[me][2:])
        shmem.free(source)
        shmem.free(target)


def test_the_default_is_the_sum():
    n = shmem.n_pes()
    a = shmem.ones(1, "i4")
    total = shmem.zeros(1, "i4")
    shmem.reduce(total, a)
    assert total[0] == n


def test_back_to_back_without_synchronisation():
    me, n = shmem.my_pe(), shmem.n_pes()
    source = shmem.zeros(3, "i8")
    target = shmem.zeros(3, "i8")
    for step in range(100):
        source[:] = me + step
        shmem.sum_reduce(target, source)
        assert np.all(target == sum(range(n)) + n * step)
        shmem.broadcast(target, source, step % n)
        assert np.all(target == step % n + step)


def test_teams():
    me, n = shmem.my_pe(), shmem.n_pes()
    for start in (0, 1):
        if start >= n:
            continue
        members = list(range(start, n, 2))
        team = shmem.TEAM_WORLD.split_strided(start, 2)
        source = shmem.full(2, me, "i4")
        target = shmem.full(2 * n, -1, "i4")
        if team:
            shmem.broadcast(target, source, team.n_pes() - 1, team=team)
            assert list(target[:2]) == [members[-1]] * 2
            shmem.fcollect(target, source, team=team)
            assert list(target[: 2 * len(members)]) == [pe for pe in members for _ in range(2)]
            shmem.sum_reduce(target, source, team=team)
            assert target[0] == sum(members)
            team.sync()
        team.destroy()
        shmem.barrier_all()


def test_bad_arguments_leave_the_job_running():
    me, n = shmem.my_pe(), shmem.n_pes()
    a = shmem.zeros(n, "i4")
    b = shmem.zeros(n, "i4")
    bad = [
        (TypeError, lambda: shmem.broadcast(a, [1], 0)),
        (TypeError, lambda: shmem.broadcast(a, b.astype("f8"), 0)),
        (ValueError, lambda: shmem.broadcast(a, b, n)),
        (TypeError, lambda: shmem.broadcast(a, b, None)),
        (ValueError, lambda: shmem.broadcast(a, b, 0, size=n + 1)),
        (ValueError, lambda: shmem.fcollect(a, b, size=2)),
        (ValueError, lambda: shmem.alltoall(a, b, size=2)),
        (ValueError, lambda: shmem.alltoalls(a, b, tst=0)),
        (ValueError, lambda: shmem.reduce(a, b, "mean")),
        (TypeError, lambda: shmem.and_reduce(real, real)),
        (RuntimeError, lambda: shmem.reduce(a, b, team=shmem.TEAM_INVALID)),
        (TypeError, lambda: shmem.reduce(a, b, team=7)),
    ]
    real = shmem.zeros(1, "f8")
    for error, call in bad:
        with pytest.raises(error):
            call()
    if n > 1:
        uneven = shmem.zeros(n + 1, "i4")
        with pytest.raises(ValueError):
            shmem.alltoall(uneven, uneven.copy())
    shmem.barrier_all()
    assert not a.any()
    assert me == shmem.my_pe()
