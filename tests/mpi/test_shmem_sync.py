# SPDX-License-Identifier: Apache-2.0
"""pypgas.shmem: signals, waits and tests."""

import numpy as np
import pytest

from pypgas import shmem

DTYPES = list("ilqILQ")

# Comparison, its spellings, and whether 5 compares to 4, 5, 6.
COMPARISONS = [
    (shmem.CMP.EQ, "==", "eq", (False, True, False)),
    (shmem.CMP.NE, "!=", "ne", (True, False, True)),
    (shmem.CMP.GT, ">", "gt", (True, False, False)),
    (shmem.CMP.GE, ">=", "ge", (True, True, False)),
    (shmem.CMP.LT, "<", "lt", (False, False, True)),
    (shmem.CMP.LE, "<=", "le", (False, True, True)),
]


def ring():
    me, n = shmem.my_pe(), shmem.n_pes()
    return me, (me + 1) % n, (me - 1) % n


@pytest.mark.parametrize("name", ["put_signal", "put_signal_nbi"])
@pytest.mark.parametrize("dtype", [*"bhilqBHILQfdFDg"])
def test_who_sees_the_signal_sees_the_data(name, dtype):
    me, to, of = ring()
    target = shmem.zeros(6, dtype)
    signal = shmem.new_signal()
    source = np.arange(6).astype(dtype) + np.array(me).astype(dtype)
    getattr(shmem, name)(target, source, to, signal, me + 1, shmem.SIGNAL_SET)
    assert shmem.signal_wait_until(signal, shmem.CMP_EQ, of + 1) == of + 1
    assert np.array_equal(target, np.arange(6).astype(dtype) + np.array(of).astype(dtype))
    shmem.barrier_all()
    getattr(shmem, name)(target[:2], source, to, signal, 100, shmem.SIGNAL_ADD, size=0)
    shmem.signal_wait_until(signal, ">=", 100)
    assert shmem.signal_fetch(signal) == of + 101
    shmem.barrier_all()
    shmem.del_signal(signal)


def test_many_rounds_around_the_ring():
    me, to, of = ring()
    box = shmem.zeros(64, "i8")
    signal = shmem.new_signal()
    taken = shmem.new_signal()
    for step in range(1, 101):
        shmem.put_signal(box, np.full(64, me * 1000 + step), to, signal, step, shmem.SIGNAL_SET)
        shmem.signal_wait_until(signal, shmem.CMP_GE, step)
        assert np.all(box == of * 1000 + step)
        shmem.put_signal(box[:0], box[:0], of, taken, 1, shmem.SIGNAL_ADD)
        shmem.signal_wait_until(taken, shmem.CMP_GE, step)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_comparison(dtype):
    ivar = shmem.full((), 5, dtype)
    for *spellings, expected in COMPARISONS:
        for spelling in spellings:
            for value, holds in zip((4, 5, 6), expected, strict=True):
                assert shmem.test(ivar, spelling, value) is holds
                if holds:
                    shmem.wait_until(ivar, spelling, value)


def test_comparison_in_the_variables_own_type():
    big = shmem.array([2**63], "u8")
    shmem.wait_until(big, shmem.CMP_GT, 1)
    assert not shmem.test(big, shmem.CMP_LT, 1)
    negative = shmem.array([-1], "i8")
    shmem.wait_until(negative, shmem.CMP_LT, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_waiting_for_other_pes(dtype):
    me, n = shmem.my_pe(), shmem.n_pes()
    ivars = shmem.zeros(n, dtype)
    for pe in range(n):
        shmem.atomic_set(ivars[me : me + 1], me + 1, pe)
    shmem.wait_until_all(ivars, shmem.CMP_NE, 0)
    assert np.array_equal(ivars, np.arange(1, n + 1))
    shmem.wait_until_all_vector(ivars, "==", range(1, n + 1))
    for pe in range(n):
        others = [0 if i == pe else 1 for i in range(n)]
        assert shmem.wait_until_any(ivars, ">", 0, status=others) == pe
        assert shmem.wait_until_some(ivars, ">", 0, status=others) == [pe]
        assert shmem.wait_until_any_vector(ivars, "==", range(1, n + 1), others) == pe
        assert shmem.wait_until_some_vector(ivars, "==", range(1, n + 1), others) == [pe]


def test_any_returns_every_index_in_the_end():
    ivars = shmem.ones(5, "i4")
    status = np.zeros(5, "i4")
    order = []
    while (index := shmem.test_any(ivars, "==", 1, status)) is not None:
        status[index] = 1
        order.append(index)
    assert sorted(order) == list(range(5))
    assert shmem.wait_until_any(ivars, "==", 1, status) is None


def test_tests_of_several_variables():
    ivars = shmem.array([3, 1, 4, 1, 5], "i8")
    assert shmem.test_all(ivars, ">", 0)
    assert not shmem.test_all(ivars, ">", 1)
    assert shmem.test_all(ivars, ">", 1, status=[0, 1, 0, 1, 0])
    assert shmem.test_any(ivars, ">", 4) == 4
    assert shmem.test_any(ivars, ">", 9) is None
    assert shmem.test_some(ivars, "==", 1) == [1, 3]
    assert shmem.test_some(ivars, "==", 1, status=[1, 1, 1, 0, 0]) == [3]
    assert shmem.test_all_vector(ivars, "==", [3, 1, 4, 1, 5])
    assert not shmem.test_all_vector(ivars, "==", [3, 1, 4, 1, 6])
    assert shmem.test_any_vector(ivars, "==", [0, 0, 4, 0, 0]) == 2
    assert shmem.test_some_vector(ivars, "<=", [3, 0, 4, 0, 9]) == [0, 2, 4]
    assert shmem.test_some_vector(ivars, "<=", [3, 0, 4, 0, 9], [1] * 5) == []


def test_empty_sets():
    for ivars, status in [(shmem.zeros(0, "i4"), None), (shmem.zeros(3, "i4"), [1, 1, 1])]:
        values = np.ones(ivars.size, "i4")
        shmem.wait_until_all(ivars, "==", 1, status)
        shmem.wait_until_all_vector(ivars, "==", values, status)
        assert shmem.wait_until_any(ivars, "==", 1, status) is None
        assert shmem.wait_until_any_vector(ivars, "==", values, status) is None
        assert shmem.wait_until_some(ivars, "==", 1, status) == []
        assert shmem.wait_until_some_vector(ivars, "==", values, status) == []
        assert shmem.test_all(ivars, "==", 1, status)
        assert shmem.test_all_vector(ivars, "==", values, status)
        assert shmem.test_any(ivars, "==", 1, status) is None
        assert shmem.test_some(ivars, "==", 1, status) == []


def test_bad_waits():
    ivar = shmem.zeros(1, "i4")
    signal = shmem.new_signal()
    bad = [
        (ValueError, lambda: shmem.wait_until(ivar, "=>", 0)),
        (ValueError, lambda: shmem.wait_until(ivar, 9, 0)),
        (TypeError, lambda: shmem.wait_until(ivar, shmem.SIGNAL_SET, 0)),
        (TypeError, lambda: shmem.wait_until(ivar, None, 0)),
        (ValueError, lambda: shmem.wait_until(two, "==", 0)),
        (ValueError, lambda: shmem.test_all(two, "==", 0, status=[1])),
        (ValueError, lambda: shmem.test_all_vector(two, "==", [1])),
        (TypeError, lambda: shmem.signal_fetch(ivar)),
        (ValueError, lambda: shmem.put_signal(ivar, ivar, 0, signal, 1, shmem.CMP_EQ)),
        (ValueError, lambda: shmem.put_signal(ivar, ivar, 0, signal, 1, 9)),
    ]
    two = shmem.zeros(2, "i4")
    for error, call in bad:
        with pytest.raises(error):
            call()
    assert shmem.signal_fetch(signal) == 0
