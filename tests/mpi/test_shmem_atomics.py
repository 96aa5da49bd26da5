# SPDX-License-Identifier: Apache-2.0
"""pypgas.shmem: atomic operations."""

import numpy as np
import pytest

from pypgas import shmem

INTEGERS = list("ilqILQ")
UNSIGNED = list("ILQ")
EXTENDED = [*INTEGERS, *"fd"]


def ring():
    me, n = shmem.my_pe(), shmem.n_pes()
    return me, (me + 1) % n, (me - 1) % n


@pytest.mark.parametrize("dtype", EXTENDED)
def test_set_fetch_swap(dtype):
    me, to, of = ring()
    a = shmem.array(me + 10, dtype)
    assert shmem.atomic_fetch(a, to) == to + 10
    shmem.barrier_all()
    shmem.atomic_set(a, me + 20, to)
    shmem.barrier_all()
    assert a == of + 20
    shmem.barrier_all()
    assert shmem.atomic_swap(a, me + 30, to) == me + 20
    shmem.barrier_all()
    assert a == of + 30
    shmem.barrier_all()
    fetched = np.zeros(1, dtype)
    shmem.atomic_fetch_nbi(fetched, a, to)
    shmem.quiet()
    assert fetched[0] == me + 30
    shmem.atomic_swap_nbi(fetched, a, me + 40, to)
    shmem.quiet()
    assert fetched[0] == me + 30
    shmem.barrier_all()
    assert a == of + 40


@pytest.mark.parametrize("dtype", INTEGERS)
def test_compare_swap(dtype):
    me, to, of = ring()
    a = shmem.array(me, dtype)
    assert shmem.atomic_compare_swap(a, to + 1, 50, to) == to  # no match
    assert shmem.atomic_compare_swap(a, to, 60 + me, to) == to
    shmem.barrier_all()
    assert a == 60 + of
    shmem.barrier_all()
    fetched = np.zeros((), dtype)
    shmem.atomic_compare_swap_nbi(fetched, a, 60 + me, 70, to)
    shmem.quiet()
    assert fetched == 60 + me
    shmem.barrier_all()
    assert a == 70


@pytest.mark.parametrize("dtype", INTEGERS)
def test_add_and_inc_from_all_pes(dtype):
    n = shmem.n_pes()
    counters = shmem.zeros(3, dtype)
    seen = []
    for _ in range(50):
        shmem.atomic_inc(counters[1:2], 0)
        shmem.atomic_add(counters[1:2], 2, 0)
        seen.append(shmem.atomic_fetch_inc(counters[2:3], 0))
        seen.append(shmem.atomic_fetch_add(counters[2:3], 1, 0))
    assert seen == sorted(set(seen))
    shmem.barrier_all()
    assert shmem.atomic_fetch(counters[1:2], 0) == 150 * n
    assert shmem.atomic_fetch(counters[2:3], 0) == 100 * n
    assert shmem.atomic_fetch(counters[0:1], 0) == 0  # the neighbour is undisturbed


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_bitwise(dtype):
    _, to, _ = ring()
    a = shmem.zeros((), dtype)
    for i in range(5):
        assert shmem.atomic_fetch_or(a, 1 << i, to) == (1 << i) - 1
    assert shmem.atomic_fetch_and(a, 0b10101, to) == 0b11111
    assert shmem.atomic_fetch_xor(a, 0b11111, to) == 0b10101
    shmem.barrier_all()
    assert a == 0b01010
    shmem.barrier_all()
    shmem.atomic_or(a, 0b100000, to)
    shmem.atomic_xor(a, 0b000010, to)
    shmem.atomic_and(a, 0b111000, to)
    shmem.barrier_all()
    assert a == 0b101000


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_every_operation_by_name(dtype):
    _, to, _ = ring()
    a = shmem.zeros(1, dtype)
    fetched = np.zeros(1, dtype)
    value = 0
    for op, operand, after in [
        (shmem.AMO_SET, 6, 6),
        (shmem.AMO.INC, None, 7),
        (shmem.AMO_ADD, 5, 12),
        (shmem.AMO_AND, 9, 8),
        (shmem.AMO_OR, 3, 11),
        (shmem.AMO_XOR, 1, 10),
        ("set", 0, 0),
    ]:
        assert shmem.atomic_fetch_op(a, operand, op, to) == value
        shmem.atomic_set(a, value, to)
        shmem.atomic_fetch_op_nbi(fetched, a, operand, op, to)
        shmem.quiet()
        assert fetched[0] == value
        shmem.atomic_set(a, value, to)
        shmem.atomic_op(a, operand, op, to)
        assert shmem.atomic_fetch(a, to) == after
        value = after


def test_nbi_forms_of_add_and_bits():
    _, to, _ = ring()
    a = shmem.zeros(1, "u8")
    fetched = np.zeros(1, "u8")
    shmem.atomic_fetch_inc_nbi(fetched, a, to)
    shmem.atomic_fetch_add_nbi(fetched, a, 6, to)
    shmem.quiet()
    assert fetched[0] == 1
    shmem.atomic_fetch_and_nbi(fetched, a, 3, to)
    shmem.quiet()
    assert fetched[0] == 7
    shmem.atomic_fetch_or_nbi(fetched, a, 8, to)
    shmem.quiet()
    assert fetched[0] == 3
    shmem.atomic_fetch_xor_nbi(fetched, a, 1, to)
    shmem.quiet()
    assert fetched[0] == 11
    assert shmem.atomic_fetch(a, to) == 10


def test_results_are_python_numbers():
    a = shmem.ones(1, "i4")
    b = shmem.ones(1, "f4")
    assert type(shmem.atomic_fetch(a, 0)) is int
    assert type(shmem.atomic_fetch(b, 0)) is float


def test_exactly_one_pe_wins():
    me, n = shmem.my_pe(), shmem.n_pes()
    winner = shmem.array([-1])
    won = shmem.atomic_compare_swap(winner, -1, me, 0) == -1
    wins = shmem.zeros(1, "i8")
    total = shmem.zeros(1, "i8")
    wins[0] = won
    shmem.sum_reduce(total, wins)
    assert total[0] == 1
    name = shmem.atomic_fetch(winner, 0)
    assert 0 <= name < n
    assert won == (name == me)


def test_bad_operands_change_nothing():
    _, to, _ = ring()
    a = shmem.full(2, 5, "i4")
    one = a[:1]
    readonly = a[:1]
    readonly.flags.writeable = False
    complex_ = shmem.full(1, 5, "c16")
    bad = [
        (ValueError, lambda: shmem.atomic_set(a, 1, to)),  # two elements
        (ValueError, lambda: shmem.atomic_set(np.zeros(1, "i4"), 1, to)),
        (ValueError, lambda: shmem.atomic_inc(readonly, to)),
        (TypeError, lambda: shmem.atomic_add(complex_, 1, to)),
        (TypeError, lambda: shmem.atomic_or(real, 1, to)),
        (ValueError, lambda: shmem.atomic_op(one, 1, "mul", to)),
        (ValueError, lambda: shmem.atomic_op(one, 1, 3, to)),
        (ValueError, lambda: shmem.atomic_inc(one, shmem.n_pes())),
        (TypeError, lambda: shmem.atomic_fetch_add_nbi(np.zeros(1, "i8"), one, 1, to)),
        (ValueError, lambda: shmem.atomic_fetch_add_nbi(np.zeros(2, "i4"), one, 1, to)),
    ]
    real = shmem.full(1, 5, "f8")
    for error, call in bad:
        with pytest.raises(error):
            call()
    assert shmem.atomic_fetch(readonly, to) == 5  # reading is allowed
    shmem.barrier_all()
    assert np.all(a == 5)
    assert complex_[0] == 5
    assert real[0] == 5
