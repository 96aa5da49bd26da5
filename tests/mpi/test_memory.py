# SPDX-License-Identifier: Apache-2.0
"""The symmetric heap: allocating, freeing, dropping, running out, and calls that do not match."""

import gc
import itertools
import weakref

import numpy as np
import pytest

import pypgas as pg
from pypgas.testing import pes, shared_random


def used():
    """Bytes in use once everything that was dropped has been released."""
    gc.collect()
    pg.barrier_all()
    pg.barrier_all()
    return pg.heap_statistics().used


def test_alignment():
    for align in (1, 2, 8, 64, 128, 4096, 65536):
        for size in (1, 3, 100):
            x = pg.zeros(size, "u1", align=align)
            assert x.local.ctypes.data % max(align, 64) == 0
            y = pg.alloc(size, align)
            assert y.local.ctypes.data % max(align, 64) == 0
    assert pg.zeros(3, "f8").local.ctypes.data % 64 == 0


def test_arrays_do_not_overlap():
    arrays = [pg.full(size, i, "u1") for i, size in enumerate([1, 0, 63, 64, 65, 1000, 7, 128, 4097])]
    for i, x in enumerate(arrays):
        assert np.all(x.local == i)
    spans = sorted((x.local.ctypes.data, x.nbytes) for x in arrays)
    assert len({start for start, _ in spans}) == len(spans)
    for (start, size), (following, _) in itertools.pairwise(spans):
        assert start + size <= following


def test_the_same_place_on_every_pe():
    me, n = pg.my_pe(), pg.n_pes()
    for size in (1, 100, 10_000):
        x = pg.zeros(size, "i4")
        x.local[:] = me
        pg.barrier_all()
        for pe in range(n):
            assert np.all(x.at(pe)[...].get() == pe)
        pg.barrier_all()


def test_freeing_makes_room():
    before = used()
    for _ in range(50):
        x = pg.zeros(1000, "f8")
        y = pg.zeros((10, 10), "c16")
        assert pg.heap_statistics().used >= before + 8000 + 1600
        x.free()
        pg.free(y)
    assert used() == before


def test_random_allocations_and_frees():
    random = shared_random(11)
    before = used()
    live = {}
    me, n = pg.my_pe(), pg.n_pes()
    for step in range(200):
        if live and random.random() < 0.45:
            key = list(live)[int(random.random() * len(live))]
            x = live.pop(key)
            assert np.all(x.local == (key * n + me) % 251)
            x.free()
        else:
            size = int(random.random() ** 4 * 20_000)
            live[step] = x = pg.empty(size, "u1")
            x.local[:] = (step * n + me) % 251
    for key, x in live.items():
        assert np.all(x.local == (key * n + me) % 251)
        x.free()
    assert used() == before


def test_statistics():
    s = pg.heap_statistics()
    assert s.used + s.free == s.size
    assert 0 < s.largest_free <= s.free
    x = pg.zeros(10_000, "u1")
    t = pg.heap_statistics()
    assert t.size >= s.size
    assert t.used >= s.used + 10_000
    assert len(t.live) == len(s.live) + 1
    assert any("test_memory.py" in str(allocation) for allocation in t.live)
    x.free()
    assert pg.heap_statistics().used == s.used


def test_double_free():
    x = pg.zeros(4)
    x.free()
    with pytest.raises(pg.DoubleFreeError):
        x.free()
    with pytest.raises(pg.DoubleFreeError):
        pg.free(x)
    y = pg.zeros(4)
    local = y.local
    pg.free(y)
    with pytest.raises(pg.StaleArrayError):
        pg.free(local)
    assert pg.reduce(1) == pg.n_pes()


def test_what_cannot_be_freed():
    x = pg.zeros((4, 4))
    for wrong in (np.zeros(3), x[1:], x.local[1:], x.at(0)[...], 5):
        with pytest.raises((TypeError, ValueError)):
            pg.free(wrong)
    pg.free(None)  # nothing, as in C
    assert pg.is_symmetric(x)
    x.free()


def test_freeing_through_numpy():
    x = pg.zeros(4)
    pg.free(x.local)
    with pytest.raises(pg.StaleArrayError):
        x.fill(1)


def test_the_heap_runs_out_and_goes_on():
    before = used()
    size = pg.heap_statistics().size
    x = pg.zeros(100, "i8")
    for ask in (size + 1, 2**62, size * 4):
        with pytest.raises(MemoryError) as caught:
            pg.empty(ask, "u1")
        assert isinstance(caught.value, pg.HeapExhaustedError)
    with pytest.raises((MemoryError, ValueError)):
        pg.empty((2**40, 2**40), "f8")
    y = pg.ones(100, "i8")
    assert pg.g(y[5], (pg.my_pe() + 1) % pg.n_pes()) == 1
    assert not x.local.any()
    x.free()
    y.free()
    assert used() == before


def test_large_arrays_cost_memory_only_where_they_are_touched():
    size = pg.heap_statistics().size
    ask = min(size // 2, 2**30)
    before = resident()
    x = pg.zeros(ask, "u1")
    assert resident() - before < 16 * 2**20
    x.local[:: 2**22] = 1
    assert x.local[0] == 1
    x.free()


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def test_dropped_arrays_are_released_at_barriers():
    before = used()
    for _ in range(30):
        pg.zeros(1000, "f8")
    gc.collect()
    assert used() <= before


def test_dropped_arrays_are_released_by_allocating_too():
    before = used()
    for _ in range(40):
        x = pg.zeros(10_000, "u1")
        x.local[:] = 1
        del x
    gc.collect()
    assert pg.heap_statistics().used < before + 40 * 10_000
    assert used() <= before


def test_every_reference_keeps_an_array():
    before = used()
    x = pg.full(1000, 7, "i4")
    for reference in (x[3:5], x.local, x.local[3:5], x.at(0)[3:5], x.peer(pg.my_pe())):
        del x
        gc.collect()
        assert used() > before
        pg.ones(1000, "i4").free()  # would take the place
        if hasattr(reference, "get"):
            assert np.all(reference.get() == 7)
        else:
            assert np.all((reference.local if hasattr(reference, "local") else reference)[:2] == 7)
        pg.barrier_all()
        reference = None
        x = pg.full(1000, 7, "i4")
    del x, reference
    assert used() <= before


@pes(2, 3, 4)
def test_an_array_dropped_on_one_pe_stays_for_the_others():
    me, n = pg.my_pe(), pg.n_pes()
    before = used()
    x = pg.full(500, me, "i4")
    kept = x if me else None
    del x
    for _ in range(3):
        gc.collect()
        pg.barrier_all()
        y = pg.zeros(500, "i4")
        y.local[:] = -1
        y.free()
    if kept is not None:
        got = np.zeros(500, "i4")
        pg.get(got, kept, 0)  # also where it was dropped
        assert np.all(got == 0)
        assert np.all(kept.local == me)
    assert used() > before
    kept = None
    assert used() <= before
    assert n == pg.n_pes()


@pes(2, 3)
def test_dropping_in_different_orders():
    before = used()
    arrays = [pg.zeros(100) for _ in range(10)]
    order = list(range(10))
    if pg.my_pe() % 2:
        order.reverse()
    for i in order:
        arrays[i] = None
        gc.collect()
        if i in (3, 7):
            pg.barrier_all()
    del i
    assert used() <= before


def test_cycles_are_collected_without_communication():
    class Node:
        pass

    before = used()
    for _ in range(5):
        node = Node()
        node.self = node
        node.x = pg.zeros(1000)
        gone = weakref.ref(node)
        del node
        gc.collect()
        assert gone() is None
    assert used() <= before


def test_many_arrays():
    before = used()
    arrays = [pg.empty(10, "i4") for _ in range(1500)]
    assert len({x.local.ctypes.data for x in arrays}) == 1500
    arrays.clear()
    gc.collect()
    for _ in range(20):
        pg.barrier_all()
    assert used() <= before


@pes(2, 3, 4)
def test_allocations_that_do_not_match_raise_on_every_pe():
    odd = pg.my_pe() == pg.n_pes() - 1
    before = used()
    for call in (
        lambda: pg.zeros(10 if odd else 11),
        lambda: pg.zeros(10, "f4" if odd else "f8"),
        lambda: pg.empty(0 if odd else 1),
        lambda: pg.zeros(10) if odd else pg.barrier_all(),
    ):
        with pytest.raises(pg.CollectiveMismatchError) as caught:
            call()
        assert caught.value.pes
    assert used() == before
    x = pg.zeros(10)
    y = pg.zeros(10)
    with pytest.raises(pg.CollectiveMismatchError):
        pg.free(x if odd else y)
    x.free()
    y.free()
    assert used() == before


@pes(2, 3, 4)
def test_two_places_may_call_the_same_collective():
    # Branches may legally differ; only the operation and the sizes must agree.
    if pg.my_pe() % 2:
        x = pg.zeros(10)
    else:
        x = pg.zeros(10)
    assert pg.reduce(1) == pg.n_pes()
    x.free()


def test_a_pointer_into_freed_memory_is_not_symmetric():
    x = pg.zeros(100)
    inside = x.local[10:20]
    x.free()
    assert not pg.is_symmetric(x)
    assert not pg.is_symmetric(inside)
    with pytest.raises(pg.StaleArrayError):
        pg.put(inside, np.zeros(10), 0)
    y = pg.zeros(100)  # takes the same place
    with pytest.raises(pg.StaleArrayError):
        pg.put(inside, np.ones(10), 0)
    pg.barrier_all()
    assert not y.local.any()
