# SPDX-License-Identifier: Apache-2.0
"""Rule 22: aligned scalars are written and read in one piece."""

import numpy as np
import pytest
from litmus_kit import fall_in, next_pe, rounds

import pypgas as pg


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "float64", "complex64"])
def test_scalar_put_is_never_torn(dtype):
    """Rule 22: no reader finds half of one value and half of another."""
    me, to = pg.my_pe(), next_pe()
    kind = np.dtype(dtype)
    x = pg.zeros(5, kind)
    turn = pg.zeros(1, "u8")
    element, single = x[3], x[3:4]
    handle = x.at(to)
    # Every byte of a value is the same, so that a mixture shows.
    values = np.frombuffer(bytes(b for b in range(1, 256) for _ in range(kind.itemsize)), kind)
    if kind.kind in "fc":
        values = values[np.isfinite(values)]
    scalars = list(values)
    crooked = np.frombuffer(bytearray(kind.itemsize + 1), kind, offset=1, count=1)  # not aligned here
    crooked.flags.writeable = True

    def whole(value):
        return len(set(np.asarray(value, kind).tobytes())) == 1

    target = np.empty(1, kind)
    for r in rounds(8000):
        if r % 64 == 0:
            fall_in(turn, r, to)
        v = (r * 7 + me) % len(scalars)
        way = r % 4
        if way == 0:
            pg.p(element, scalars[v], to)
        elif way == 1:
            pg.put(single, values[v : v + 1], to)
        elif way == 2:
            crooked[0] = scalars[v]
            pg.put(single, crooked, to)
        else:
            handle[3] = scalars[v]
        assert whole(x.local[3])
        assert whole(pg.g(element, me))
        pg.get(target, single, to)
        assert whole(target)
        if kind.itemsize <= 8:
            assert whole(pg.atomic_fetch(element, me))
    pg.barrier_all()
    assert not x.local[[0, 1, 2, 4]].any()
    pg.barrier_all()
