# SPDX-License-Identifier: Apache-2.0
"""pypgas.shmem: small programs that everybody writes once."""

import numpy as np

from pypgas import shmem


def test_rotate_by_put():
    me, n = shmem.my_pe(), shmem.n_pes()
    target = shmem.full(1, -1, "i4")
    shmem.put(target, np.array([me], "i4"), (me + 1) % n)
    shmem.barrier_all()
    assert target[0] == (me - 1) % n


def test_rotate_by_get():
    me, n = shmem.my_pe(), shmem.n_pes()
    source = shmem.full(1, me, "i4")
    target = np.full(1, -1, "i4")
    shmem.get(target, source, (me + 1) % n)
    assert target[0] == (me + 1) % n


def test_ping_pong():
    me, n = shmem.my_pe(), shmem.n_pes()
    other = me ^ 1
    ball = shmem.zeros(1, "i8")
    if other < n:
        for rally in range(1, 51):
            if me & 1:
                shmem.wait_until(ball, shmem.CMP_EQ, rally)
                shmem.put(ball, np.array([rally]), other)
            else:
                shmem.put(ball, np.array([rally]), other)
                shmem.wait_until(ball, shmem.CMP_EQ, rally)
        assert ball[0] == 50
    shmem.barrier_all()


def test_odd_and_even_pes_swap():
    me, n = shmem.my_pe(), shmem.n_pes()
    other = me ^ 1 if me ^ 1 < n else me
    box = shmem.zeros(1000, "f8")
    signal = shmem.new_signal()
    shmem.put_signal(box, np.full(1000, float(me)), other, signal, 1, shmem.SIGNAL_ADD)
    shmem.signal_wait_until(signal, ">=", 1)
    assert np.all(box == other)


def test_pi_by_random_points():
    me, n = shmem.my_pe(), shmem.n_pes()
    points = np.random.default_rng(me).random((20_000, 2))
    inside = shmem.array([np.count_nonzero((points**2).sum(axis=1) < 1)])
    total = shmem.array([len(points)])
    shmem.sum_reduce(inside, inside)
    shmem.sum_reduce(total, total)
    assert total[0] == 20_000 * n
    assert abs(4 * inside[0] / total[0] - np.pi) < 0.05


def test_tickets():
    """A shared counter deals out every number exactly once."""
    n = shmem.n_pes()
    counter = shmem.zeros(1, "i8")
    drawn = shmem.zeros(40 * n, "i4")
    while (ticket := shmem.atomic_fetch_inc(counter, 0)) < 40 * n:
        shmem.atomic_inc(drawn[ticket : ticket + 1], 0)
    shmem.barrier_all()
    if shmem.my_pe() == 0:
        assert np.all(drawn == 1)


def test_first_update_is_seen():
    me, n = shmem.my_pe(), shmem.n_pes()
    marks = shmem.zeros(n, "i4")
    if me:
        shmem.atomic_set(marks[me : me + 1], me, 0)
    elif n > 1:
        left = set(range(1, n))
        while left:
            pe = shmem.wait_until_any(marks, "!=", 0, status=[i not in left for i in range(n)])
            assert marks[pe] == pe
            left.remove(pe)
    shmem.barrier_all()


def test_transpose_by_alltoall():
    me, n = shmem.my_pe(), shmem.n_pes()
    rows = 3
    order = rows * n
    matrix = np.arange(order * order).reshape(order, order)
    mine = matrix[me * rows : (me + 1) * rows]
    blocks = shmem.array(mine.reshape(rows, n, rows).transpose(1, 2, 0).copy())
    received = shmem.zeros((n, rows, rows), blocks.dtype)
    shmem.alltoall(received, blocks)
    result = received.transpose(1, 0, 2).reshape(rows, order)
    assert np.array_equal(result, matrix.T[me * rows : (me + 1) * rows])
