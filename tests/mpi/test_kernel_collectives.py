# SPDX-License-Identifier: Apache-2.0
"""Collectives and teams in kernels, against NumPy: scopes, sizes, memory of either kind, in place, types."""

from functools import reduce
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import pypgas as pg
from pypgas.testing import time_limit

SCOPES = {"thread": 1, "warp": 32, "block": 40}
TYPES = {
    "signed char": np.int8,
    "short": np.int16,
    "int": np.int32,
    "long": np.int64,
    "unsigned char": np.uint8,
    "unsigned short": np.uint16,
    "unsigned int": np.uint32,
    "unsigned long": np.uint64,
    "bool": np.bool_,
    "pgas::bool8": np.bool_,
    "pgas::half": np.float16,
    "pgas::bfloat16": ml_dtypes.bfloat16,
    "float": np.float32,
    "double": np.float64,
    "pgas::complex64": np.complex64,
    "pgas::complex128": np.complex128,
}
MOVED = ["unsigned char", "int"]
SUMMED = ["unsigned char", "int", "double"]
# 256 bytes travel with the call itself; what is not in the heap goes through a buffer of 256 KiB.
COUNTS = [0, 1, 3, 63, 64, 65, 257, 1001, 70_001, 300_000]
KERNELS = [
    *(f"move<{scope}, {name}>" for scope in SCOPES for name in MOVED),
    *(f"sum<{scope}, {name}>" for scope in SCOPES for name in SUMMED),
    *(f"reduce<{name}>" for name in TYPES),
]

pytestmark = time_limit(120)


@pytest.fixture(scope="module")
def kernels():
    return pg.Module(Path(__file__).with_name("kernel_collectives.cu"), kernels=KERNELS)


@pytest.fixture(scope="module", params=["world", "backwards"])
def team(request):
    if request.param == "world":
        yield pg.TEAM_WORLD
        return
    n = pg.n_pes()
    backwards = pg.TEAM_WORLD.split_strided(n - 1, -1, n)
    yield backwards
    backwards.destroy()


def values(dtype, seed, n, pe):
    """The source of a team's PE: known to all."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng((seed, pe))
    if dtype.kind in "iu":
        return random.integers(0, 256, (n, dtype.itemsize), "u1").view(dtype)[:, 0]
    if dtype.kind == "b":
        return random.integers(0, 2, n, "u1").astype(bool)
    numbers = random.integers(-40, 41, (n, 2)) / 8
    return (numbers[:, 0] + 1j * numbers[:, 1] if dtype.kind == "c" else numbers[:, 0]).astype(dtype)


def same(a, b):
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


class Memory:
    """Arrays for a kernel: in the heap or of NumPy's, at an even or odd place, or one for both."""

    def __init__(self, kind, n_dst, source, room=0):
        """``room``: elements of a source that all PEs have room for, where their sources differ in length."""
        dtype = source.dtype
        shift = 1 if kind == "odd" else 0
        make = np.zeros if kind in ("plain", "odd") else pg.zeros
        self._guarded = make(n_dst + shift + 1, dtype)
        self.n = n_dst
        self.dst = self._guarded[shift : shift + n_dst]
        if kind == "in place":
            self._guarded = make(max(n_dst, source.size) + 1, dtype)
            self.dst = self._guarded[:-1]
            self.src = self.dst
        else:
            self._room = make(max(source.size, room) + shift, dtype)
            self.src = self._room[shift:]
        self.local(self.src)[: source.size] = source

    @staticmethod
    def local(array):
        return array.local if isinstance(array, pg.SymmetricArray) else array

    @property
    def result(self):
        return self.local(self.dst)[: self.n]

    @property
    def intact(self):
        return self.local(self._guarded)[-1] == 0


KINDS = ["symmetric", "plain", "odd", "in place"]


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scope", "threads"), SCOPES.items())
def test_moving_data(kernels, team, scope, threads, kind, name):
    dtype, kernel, me, n = TYPES[name], kernels.kernel(f"move<{scope}, {name}>"), team.my_pe, team.n_pes

    def run(which, source, n_dst, root, expected, count):
        memory = Memory(kind, n_dst, source, n_dst)
        kernel[1, threads](which, team, memory.dst, memory.src, count, root)
        pg.synchronize()
        assert same(memory.result, expected), (which, count)
        assert memory.intact
        pg.barrier_all()

    for count in COUNTS:
        sources = [values(dtype, count, count, pe) for pe in range(n)]
        root = count % n
        run(0, sources[me], count, root, sources[root], count)
        if kind != "in place":
            run(1, sources[me], count * n, 0, np.concatenate(sources), count)
            lengths = [count // (pe + 1) for pe in range(n)]
            parts = [source[:length] for source, length in zip(sources, lengths, strict=True)]
            run(3, parts[me], sum(lengths), sum(lengths), np.concatenate(parts), lengths[me])
        if count <= 70_001:
            blocks = [values(dtype, count, count * n, pe) for pe in range(n)]
            theirs = [block[me * count : (me + 1) * count] for block in blocks]
            run(2, blocks[me], count * n, 0, np.concatenate(theirs), count)


@pytest.mark.parametrize("name", SUMMED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scope", "threads"), SCOPES.items())
def test_sums(kernels, team, scope, threads, kind, name):
    dtype, kernel, me, n = TYPES[name], kernels.kernel(f"sum<{scope}, {name}>"), team.my_pe, team.n_pes

    def added(arrays, count):
        return reduce(lambda a, b: (a + b).astype(dtype), arrays, np.zeros(count, dtype))

    for count in COUNTS:
        sources = [values(dtype, count, count, pe) for pe in range(n)]
        blocks = [values(dtype, count, count * n, pe) for pe in range(n)]
        mine = slice(me * count, (me + 1) * count)
        for which, source, expected in (
            (0, sources[me], added(sources, count)),
            (1, blocks[me], added([block[mine] for block in blocks], count)),
            (2, sources[me], added(sources[: me + 1], count)),
            (3, sources[me], added(sources[:me], count)),
        ):
            memory = Memory(kind, count, source)
            kernel[1, threads](which, team, memory.dst, memory.src, count)
            pg.synchronize()
            assert same(memory.result, expected), (which, count)
            assert memory.intact
            pg.barrier_all()


OPERATIONS = {
    "sum": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    "min": np.minimum,
    "max": np.maximum,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("name", TYPES)
def test_reductions_of_all_types(kernels, name):
    """In team order; narrow floating-point numbers are added up in float32 and rounded once."""
    dtype, n, me = np.dtype(TYPES[name]), pg.n_pes(), pg.my_pe()
    narrow = name in ("pgas::half", "pgas::bfloat16")
    kind = "f" if narrow else dtype.kind
    wide = np.dtype("f4") if narrow else dtype
    supported = {"b": ["and", "or", "xor"], "c": ["sum", "prod"], "f": ["sum", "prod", "min", "max"]}
    for number, (op, function) in enumerate(OPERATIONS.items()):
        if op not in supported.get(kind, OPERATIONS):
            continue
        for count in (1, 40, 5003):
            sources = [values(dtype, count, count, pe) for pe in range(n)]
            with np.errstate(over="ignore"):
                expected = reduce(function, [source.astype(wide) for source in sources]).astype(dtype)
            x = pg.array(sources[me])
            result = np.zeros(count, dtype)
            kernels.kernel(f"reduce<{name}>")[1, 33](number, pg.TEAM_WORLD, result, x, count)
            pg.synchronize()
            assert same(result, expected), (op, count)
            pg.barrier_all()


def test_kernels_and_the_host_meet_in_one_collective(kernels):
    """Some PEs call from a kernel, the others from Python."""
    me, n = pg.my_pe(), pg.n_pes()
    for count in (1, 40, 100_000):
        sources = [values("f8", count, count, pe) for pe in range(n)]
        x, result = pg.array(sources[me]), np.zeros(count)
        if me % 2 == 0:
            kernels.kernel("sum<block, double>")[1, 8](0, pg.TEAM_WORLD, result, x, count)
            pg.synchronize()
        else:
            result = pg.reduce(x, op="sum")
        assert same(result, reduce(np.add, sources))
        pg.barrier_all()


def test_barriers_of_teams(kernels, team):
    """Two halves of the PEs each come together by themselves."""
    me, n = pg.my_pe(), pg.n_pes()
    box, seen = pg.zeros(n, "i8"), np.zeros(1, "i4")
    with team.split(me % 2) as half:
        kernels.kernel("together")[1, 1](half, pg.TEAM_WORLD, box, seen)
        pg.synchronize()
    assert seen[0] == 0
    assert (box.local[: len(range(me % 2, n, 2))] == 20).all()
    pg.barrier_all()
