# SPDX-License-Identifier: Apache-2.0
"""Collective operations on scalars, plain arrays and symmetric arrays, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import pypgas as pg
from pypgas.testing import pes

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8", ml_dtypes.bfloat16]
COMPLEX = ["c8", "c16"]
DTYPES = [*INTEGERS, "?", *FLOATS, *COMPLEX]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=[np.dtype(d).name for d in DTYPES])
UFUNCS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def some(shape, dtype, seed):
    """Small numbers that differ from seed to seed, exact in every dtype."""
    values = (np.arange(np.prod(shape, dtype=int)) * 7 + 31 * seed + 1) % 13
    return (values % 2 if np.dtype(dtype) == bool else values).astype(dtype).reshape(shape)


def everyone(shape, dtype):
    return np.array([some(shape, dtype, pe) for pe in range(pg.n_pes())])


def kinds(value):
    """The same contents as a plain array, in strided memory, and as a symmetric array."""
    yield value.copy()
    strided = np.zeros((*value.shape, 2), value.dtype)[..., 0]
    strided[...] = value
    yield strided
    x = pg.empty(value.shape, value.dtype)
    x.local[...] = value
    pg.barrier_all()
    yield x


@every_dtype
def test_broadcast(dtype):
    me, n = pg.my_pe(), pg.n_pes()
    for shape in [(0,), (1,), (3, 5), (2000,)]:
        for root in range(n):
            for x in kinds(some(shape, dtype, me)):
                result = pg.broadcast(x, root)
                assert result is x
                assert np.array_equal(local(x), some(shape, dtype, root))


@every_dtype
def test_collect_and_fcollect(dtype):
    me, n = pg.my_pe(), pg.n_pes()
    for size in (0, 1, 5, 1000):
        parts = everyone(size, dtype)
        for x in kinds(some(size, dtype, me)):
            assert np.array_equal(pg.fcollect(x), parts.reshape(-1))
            assert np.array_equal(pg.collect(x), parts.reshape(-1))
        uneven = [some(size + 3 * pe, dtype, pe) for pe in range(n)]
        assert np.array_equal(pg.collect(uneven[me]), np.concatenate(uneven))
    one = [some(4 if pe == n - 1 else 0, dtype, pe) for pe in range(n)]
    assert np.array_equal(pg.collect(one[me]), one[-1])


@every_dtype
def test_gather(dtype):
    me, n = pg.my_pe(), pg.n_pes()
    for shape in [(3,), (2, 4), (0,)]:
        for root in range(n):
            for x in kinds(some(shape, dtype, me)):
                result = pg.gather(x, root)
                if me == root:
                    parts = everyone(shape, dtype)
                    assert np.array_equal(result, parts.reshape(n * shape[0], *shape[1:]))
                else:
                    assert result is None


@every_dtype
def test_alltoall(dtype):
    me, n = pg.my_pe(), pg.n_pes()
    for block in (0, 1, 3, 500):
        parts = everyone((n, block), dtype)
        for x in kinds(some((n, block), dtype, me)):
            result = pg.alltoall(x)
            assert result.shape == (n, block)
            assert np.array_equal(result, parts[:, me])
        flat = pg.alltoall(some((n, block), dtype, me).reshape(-1))
        assert np.array_equal(flat, parts[:, me].reshape(-1))


@every_dtype
def test_alltoalls(dtype):
    me, n = pg.my_pe(), pg.n_pes()
    for tst, sst, block in [(1, 1, 2), (3, 2, 1), (2, 5, 3)]:
        out = pg.zeros(n * block * tst, dtype)
        expected = np.zeros(n * block * tst, dtype)
        for pe in range(n):
            theirs = some(n * block * sst, dtype, pe)[::sst]
            expected[::tst][pe * block : (pe + 1) * block] = theirs[me * block : (me + 1) * block]
        pg.alltoalls(out, some(n * block * sst, dtype, me), tst, sst, block)
        assert np.array_equal(out.local, expected)


REDUCTIONS = [
    *[("sum", dtype) for dtype in [*INTEGERS, *FLOATS, *COMPLEX]],
    *[("prod", dtype) for dtype in [*INTEGERS, *FLOATS, *COMPLEX]],
    *[(op, dtype) for op in ("min", "max") for dtype in [*INTEGERS, *FLOATS]],
    *[(op, dtype) for op in ("and", "or", "xor") for dtype in [*INTEGERS, "?"]],
]


@pytest.mark.parametrize(("op", "dtype"), REDUCTIONS, ids=[f"{o}-{np.dtype(d).name}" for o, d in REDUCTIONS])
def test_reduce(op, dtype):
    me, n = pg.my_pe(), pg.n_pes()
    for shape in [(0,), (1,), (2, 3), (700,)]:
        parts = [(some(shape, "i4", pe) % 3).astype(dtype) for pe in range(n)]
        expected = parts[0]
        for part in parts[1:]:
            expected = UFUNCS[op](expected, part).astype(dtype)
        for x in kinds(parts[me]):
            result = pg.reduce(x, op)
            assert result.dtype == np.dtype(dtype)
            assert result.shape == shape
            assert np.allclose(result.astype("c16"), expected.astype("c16"), rtol=0.02)
            assert np.array_equal(local(x), parts[me])  # what was given is not changed


@pytest.mark.parametrize("dtype", ["i4", "i8", "u8", "f4", "f8", "c16"])
@pytest.mark.parametrize("op", ["sum", "prod", "max"])
def test_reduce_scatter_and_scans(op, dtype):
    if op == "max" and dtype == "c16":
        pytest.skip("complex numbers have no order")
    me, n = pg.my_pe(), pg.n_pes()
    for block in (0, 1, 4):
        parts = everyone((n, block), dtype)
        expected = UFUNCS[op].reduce(parts, axis=0, dtype=dtype)
        for x in kinds(some((n, block), dtype, me)):
            assert np.allclose(np.asarray(pg.reduce_scatter(x, op)).reshape(-1), expected[me])
    parts = everyone((5,), dtype)
    for x in kinds(some(5, dtype, me)):
        result = pg.inclusive_scan(x, op)
        assert np.allclose(result, UFUNCS[op].reduce(parts[: me + 1], axis=0, dtype=dtype))
        if op == "sum":
            result = pg.exclusive_scan(x, op)
            assert np.allclose(result, UFUNCS[op].reduce(parts[:me], axis=0, dtype=dtype))


def test_scalars_in_scalars_out():
    me, n = pg.my_pe(), pg.n_pes()
    assert pg.reduce(me + 1) == n * (n + 1) // 2
    assert pg.reduce(float(me), op="max") == n - 1
    assert np.ndim(pg.reduce(me)) == 0
    assert isinstance(pg.reduce(0.5), float)
    assert pg.reduce(np.float32(1)).dtype == np.dtype("f4")
    assert pg.broadcast(me * 2, n - 1) == 2 * (n - 1)
    assert pg.inclusive_scan(1) == me + 1
    assert pg.exclusive_scan(1) == me
    assert list(pg.fcollect(me)) == list(range(n))
    gathered = pg.gather(me * 1.5, 0)
    if me == 0:
        assert list(gathered) == [1.5 * pe for pe in range(n)]
    else:
        assert gathered is None


def test_out_receives_the_result():
    me, n = pg.my_pe(), pg.n_pes()
    for make in (np.zeros, pg.zeros):
        out = make(3, "i8")
        result = pg.reduce(np.arange(3) + me, out=out)
        assert result is out
        assert np.array_equal(local(out), n * np.arange(3) + sum(range(n)))
        out = make((n, 2), "i8")
        pg.fcollect(np.array([[me, me + 1]]), out=out)
        assert np.array_equal(local(out), [[pe, pe + 1] for pe in range(n)])
        out = make(n, "i4")
        pg.alltoall(np.full(n, me, "i4"), out=out)
        assert list(local(out)) == list(range(n))


def test_reduction_in_place():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.full(4, me + 1, "f8")
    for _ in range(3):
        pg.reduce(x, op="max", out=x)
        assert np.all(x.local == n)
    y = np.full(4, me + 1.0)
    pg.reduce(y, out=y)
    assert np.all(y == n * (n + 1) / 2)


def test_larger_than_any_internal_buffer():
    me, n = pg.my_pe(), pg.n_pes()
    size = 300_001
    x = np.arange(size, dtype="f8") + me
    expected = n * np.arange(size, dtype="f8") + sum(range(n))
    assert np.array_equal(pg.reduce(x), expected)
    assert np.array_equal(pg.inclusive_scan(x), (me + 1) * np.arange(size) + sum(range(me + 1)))
    parts = pg.fcollect(x).reshape(n, size)
    assert np.array_equal(parts, np.arange(size) + np.arange(n)[:, None])
    got = pg.alltoall(np.repeat(x[None], n, axis=0))
    assert np.array_equal(got, np.arange(size) + np.arange(n)[:, None])
    y = x.copy()
    pg.broadcast(y, n - 1)
    assert np.array_equal(y, np.arange(size) + n - 1)
    parts = pg.collect(x[: 1000 * me])
    assert np.array_equal(parts, np.concatenate([np.arange(1000 * pe) + pe for pe in range(n)]))


def test_every_pe_gets_the_same_bits():
    me = pg.my_pe()
    x = np.random.default_rng(me).random(1000) * 10.0 ** np.random.default_rng(me + 50).integers(-9, 9, 1000)
    parts = pg.fcollect(pg.reduce(x)).reshape(pg.n_pes(), -1)
    assert np.all(parts == parts[0])
    assert np.array_equal(pg.reduce(x), parts[0])  # and at every call


def test_back_to_back_without_synchronisation():
    me, n = pg.my_pe(), pg.n_pes()
    x = pg.zeros(3, "i8")
    out = pg.zeros(3, "i8")
    for step in range(100):
        x.local[:] = me + step
        pg.reduce(x, out=out)
        assert np.all(out.local == sum(range(n)) + n * step)
        pg.broadcast(x, step % n)
        assert np.all(x.local == step % n + step)
        assert np.all(pg.fcollect(me + step) == np.arange(n) + step)


def test_teams():
    me, n = pg.my_pe(), pg.n_pes()
    for stride, start in [(2, 0), (2, 1), (-1, n - 1)]:
        members = list(range(start, n if stride > 0 else -1, stride))
        if not members:
            continue
        team = pg.TEAM_WORLD.split_strided(start, stride, len(members))
        if team is not None:
            m = team.n_pes
            x = np.array([me, 10 * me])
            both = np.array([[pe, 10 * pe] for pe in members])
            assert np.array_equal(pg.reduce(x, team=team), both.sum(axis=0))
            assert np.array_equal(pg.fcollect(x, team=team), both.reshape(-1))
            assert np.array_equal(pg.broadcast(x.copy(), m - 1, team=team), both[-1])
            gathered = pg.gather(x, m - 1, team=team)
            if team.my_pe == m - 1:
                assert np.array_equal(gathered, both.reshape(-1))
            got = pg.alltoall(np.full(m, me), team=team)
            assert list(got) == members
            assert pg.exclusive_scan(1, team=team) == team.my_pe
            got = pg.reduce_scatter(np.arange(m) + me, team=team)
            assert np.all(got == m * team.my_pe + sum(members))
            team.destroy()
    pg.barrier_all()


@pes(2, 3, 4)
@pytest.mark.parametrize(
    "call",
    [
        lambda odd: pg.broadcast(np.zeros(4 if odd else 3), 0),
        lambda odd: pg.broadcast(np.zeros(3, "f8" if odd else "f4"), 0),
        lambda odd: pg.broadcast(np.zeros(3), 1 if odd else 0),
        lambda odd: pg.reduce(np.zeros(3), "max" if odd else "sum"),
        lambda odd: pg.reduce(np.zeros(3 if odd else 4)),
        lambda odd: pg.reduce(1, "sum") if odd else pg.inclusive_scan(1, "sum"),
        lambda odd: pg.fcollect(np.zeros(3 if odd else 2)),
        lambda odd: pg.barrier_all() if odd else pg.sync_all(),
        lambda odd: pg.collect(np.zeros(3, "i4" if odd else "i8")),
        lambda odd: pg.TEAM_WORLD.split_strided(0, 1, 1 if odd else 2),
    ],
)
def test_calls_that_do_not_match_raise_on_every_pe(call):
    odd = pg.my_pe() == pg.n_pes() - 1
    with pytest.raises(pg.CollectiveMismatchError) as caught:
        call(odd)
    assert caught.value.pes
    pg.barrier_all()  # the job goes on
    assert pg.reduce(1) == pg.n_pes()


def test_errors():
    n = pg.n_pes()
    x = np.zeros(3)
    readonly = np.zeros(3)
    readonly.flags.writeable = False
    bad = [
        (ValueError, lambda: pg.broadcast(x, n)),
        (ValueError, lambda: pg.broadcast(x, -1)),
        (TypeError, lambda: pg.broadcast(x, 0.0)),
        (ValueError, lambda: pg.reduce(x, "mean")),
        ((TypeError, ValueError), lambda: pg.reduce(x, 3)),
        (TypeError, lambda: pg.reduce(x, "and")),
        (TypeError, lambda: pg.reduce(x.astype("c16"), "max")),
        (TypeError, lambda: pg.reduce(np.zeros(3, object))),
        (TypeError, lambda: pg.reduce("abc")),
        (TypeError, lambda: pg.reduce(None)),
        (ValueError, lambda: pg.reduce(x, out=np.zeros(4))),
        (TypeError, lambda: pg.reduce(x, out=np.zeros(3, "f4"))),
        (ValueError, lambda: pg.reduce(x, out=readonly)),
        (ValueError, lambda: pg.fcollect(x, out=np.zeros(3 * n + 1))),
        (TypeError, lambda: pg.reduce(x, team=3)),
    ]
    if n > 1:
        bad += [
            (ValueError, lambda: pg.alltoall(np.zeros(n + 1))),
            (ValueError, lambda: pg.reduce_scatter(np.zeros(n + 1))),
        ]
    for error, call in bad:
        with pytest.raises(error):
            call()
    pg.barrier_all()
    assert pg.reduce(1) == n


def local(x):
    return x.local if isinstance(x, pg.SymmetricArray) else x
