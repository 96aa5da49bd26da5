# SPDX-License-Identifier: Apache-2.0
"""Arrays that are dropped instead of freed: released once every PE has dropped them, never before."""

import gc

import numpy as np
import pytest

import pypgas as pg
from pypgas.errors import StaleArrayError
from pypgas.testing import exchange, shared_random


def blocks():
    return {block.id for block in pg.heap_statistics().live}


def meet():
    """Two barriers: drops are made known before the first and released after the second."""
    pg.barrier_all()
    pg.barrier_all()


def test_dropped_by_all():
    before = blocks()
    x = pg.zeros(100)
    assert len(blocks() - before) == 1
    del x
    meet()
    assert blocks() == before


def test_dropped_by_all_at_an_allocation():
    before = blocks()
    x = pg.zeros(100)
    del x
    y, z = pg.zeros(1), pg.zeros(1)
    assert len(blocks() - before) == 2
    y.free()
    z.free()


def test_dropped_by_one_only():
    me, n = pg.my_pe(), pg.n_pes()
    before = blocks()
    x = pg.full(100, me, "i8")
    if me == n - 1:
        del x
    meet()
    meet()
    # Its memory is still there for the others, and theirs for them.
    assert len(blocks() - before) == (1 if n > 1 else 0)
    if me != n - 1:
        assert (x.local == me).all()
        assert pg.g(x[3], (me + 1) % n) == (me + 1) % n
        del x
    meet()
    assert blocks() == before


def test_garbage_collection_never_waits():
    # One PE drops and collects, alone, while the others are somewhere else.
    x = pg.zeros(100)
    cycle = [x]
    cycle.append(cycle)
    if pg.my_pe() == 0:
        del x, cycle
        gc.collect()
    exchange(None)
    if pg.my_pe() != 0:
        del x, cycle
        gc.collect()
    meet()


KEPT = {
    "view": lambda x: x[10:20],
    "local": lambda x: x.local,
    "slice of local": lambda x: x.local[5:],
    "handle": lambda x: x.at((pg.my_pe() + 1) % pg.n_pes())[3:5],
    "reshaped": lambda x: x.reshape(10, 10),
}


@pytest.mark.parametrize("keep", KEPT)
def test_what_keeps_an_array_alive(keep):
    me, n = pg.my_pe(), pg.n_pes()
    before = blocks()
    x = pg.full(100, me, "i8")
    kept = KEPT[keep](x)
    del x
    gc.collect()
    meet()
    meet()
    assert len(blocks() - before) == 1
    if keep == "handle":
        assert (kept.get() == (me + 1) % n).all()
    else:
        assert (np.asarray(kept.numpy() if hasattr(kept, "numpy") else kept) == me).all()
    pg.barrier_all()
    del kept
    gc.collect()
    meet()
    assert blocks() == before


def test_dropped_in_any_order():
    # Each PE drops in an order of its own, between collective allocations: the heaps must agree.
    me, n = pg.my_pe(), pg.n_pes()
    mine = np.random.default_rng(me)
    sizes = shared_random(1).integers(1, 2000, 60)
    held = {}
    for number, size in enumerate(sizes):
        held[number] = pg.full(int(size), number, "i4")
        for key in list(held):
            if mine.random() < 0.2 and key != number:
                del held[key]
        if number % 7 == 0:
            pg.barrier_all()
        layout = {block.id: block.offset for block in pg.heap_statistics().live}
        newest = max(layout)
        assert len({(newest, layout[newest])} | set(exchange((newest, layout[newest])))) == 1
        x = held[number]
        pg.put(x, np.full(int(size), 1000 * me + number, "i4"), (me + 1) % n)
        pg.barrier_all()
        assert (x.local == 1000 * ((me - 1) % n) + number).all()
        for key, other in held.items():
            if key != number:
                assert (other.local == 1000 * ((me - 1) % n) + key).all()
    del x, other
    held.clear()
    gc.collect()
    meet()


def test_a_full_heap_is_collected_first():
    size = pg.heap_statistics().size // 3
    for _ in range(12):
        x = pg.empty(size, "u1")
        cycle = [x]
        cycle.append(cycle)
        del x, cycle
    gc.collect()
    meet()


def test_freed_arrays_are_not_dropped_again():
    before = blocks()
    x = pg.zeros(10)
    view = x[2:4]
    x.free()
    assert blocks() == before
    with pytest.raises(StaleArrayError):
        pg.put(view, np.zeros(2), 0)
    del x, view
    meet()
    assert blocks() == before
