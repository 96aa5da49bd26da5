# SPDX-License-Identifier: Apache-2.0
"""Copies in kernels at every alignment, single elements and atomics of every type, against NumPy."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import pypgas as pg
from pypgas.testing import pes, time_limit

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
COPIED = ["unsigned char", "short", "float", "double", "pgas::complex128"]
OFFSETS, SIZES, SLOT, GUARD = 32, 301, 384, 0xEE
N = 50

KERNELS = [
    *(f"sweep<{scope}, {fetch}>" for scope in SCOPES for fetch in ("false", "true")),
    *(f"copies<{scope}, {name}>" for scope in SCOPES for name in COPIED),
    *(f"strided<{scope}, {name}>" for scope in SCOPES for name in COPIED),
    *(f"elements<{name}>" for name in TYPES),
    *(f"atomics<{name}>" for name in TYPES if name != "pgas::complex128"),
]


@pytest.fixture(scope="module")
def kernels():
    return pg.Module(Path(__file__).with_name("kernel_copies.cu"), kernels=KERNELS)


def around():
    """The PE after this one, and the one before."""
    me, n = pg.my_pe(), pg.n_pes()
    return (me + 1) % n, (me - 1) % n


def bytes_of(seed, shape, pe=None):
    """Bytes that a PE and everybody else know."""
    return np.random.default_rng((seed, pg.my_pe() if pe is None else pe)).integers(0, 256, shape, "u1")


def values_of(dtype, seed, shape, pe=None):
    """Values of any bit pattern; of floating-point types small numbers, whose sums are exact."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return bytes_of(seed, (*shape, dtype.itemsize), pe).view(dtype)[..., 0]
    numbers = bytes_of(seed, (*shape, 2), pe) % 16
    if dtype.kind == "b":
        return numbers[..., 0] % 2 == 1
    if dtype.kind == "c":
        return (numbers[..., 0] + 1j * numbers[..., 1]).astype(dtype)
    return numbers[..., 0].astype(dtype)


def same(a, b):
    """Equal bit for bit."""
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.mark.parametrize("fetch", ["false", "true"], ids=["put", "get"])
@pytest.mark.parametrize(("scope", "threads"), SCOPES.items())
@pes(2)
@time_limit(180)
def test_every_offset_and_size(kernels, scope, threads, fetch):
    """Nothing but the bytes named changes, for all offsets of both sides within 32 bytes and sizes to 300."""
    kernel = kernels.kernel(f"sweep<{scope}, {fetch}>")
    after, before = around()
    shape = (OFFSETS, SIZES, SLOT)
    remote = pg.full(shape, GUARD, "u1") if fetch == "false" else pg.array(bytes_of(3, 512))
    here = bytes_of(3, 512) if fetch == "false" else np.full(shape, GUARD, "u1")
    result = remote.local if fetch == "false" else here
    source = bytes_of(3, 512, before if fetch == "false" else after)
    windows = np.lib.stride_tricks.sliding_window_view(source, SIZES - 1)[:OFFSETS]
    copied = np.arange(SIZES - 1) < np.arange(SIZES)[:, None]
    payload = np.where(copied, windows[:, None, :], GUARD)
    for offset in range(OFFSETS):
        result[...] = GUARD
        pg.barrier_all()
        arguments = (remote, here) if fetch == "false" else (here, remote)
        kernel[1, threads](*arguments, offset, after)
        pg.synchronize()
        pg.barrier_all()
        assert np.array_equal(result[:, :, offset : offset + SIZES - 1], payload)
        assert (result[:, :, :offset] == GUARD).all()
        assert (result[:, :, offset + SIZES - 1 :] == GUARD).all()


@pytest.mark.parametrize("name", COPIED)
@pytest.mark.parametrize(("scope", "threads"), SCOPES.items())
def test_copies_of_elements(kernels, scope, threads, name):
    dtype, (after, before) = TYPES[name], around()
    for n in (0, 1, 2, 7, 1000, 100_003):
        source, back = values_of(dtype, n, (n,)), np.zeros(2 * n + 1, dtype)
        x = pg.zeros(2 * n + 1, dtype)
        with pg.Context() as context:
            kernels.kernel(f"copies<{scope}, {name}>")[1, threads](x, source, back, n, after, context)
            pg.synchronize()
        assert same(back, np.concatenate([source, source, np.zeros(1, dtype)]))
        pg.barrier_all()
        theirs = values_of(dtype, n, (n,), before)
        assert same(x.local, np.concatenate([theirs, theirs, np.zeros(1, dtype)]))
        pg.barrier_all()


@pytest.mark.parametrize("name", COPIED)
@pytest.mark.parametrize(("scope", "threads"), SCOPES.items())
def test_strided_copies(kernels, scope, threads, name):
    dtype, (after, before) = TYPES[name], around()
    kernel = kernels.kernel(f"strided<{scope}, {name}>")
    for n, tst, sst in ((0, 1, 1), (1, 5, 7), (57, 1, 1), (57, 3, 2), (40, 1, 4), (33, 6, 1)):
        source, back = values_of(dtype, n, (n * sst + 1,)), np.zeros(n * sst + 1, dtype)
        x = pg.zeros(n * tst + 1, dtype)
        kernel[1, threads](x, source, back, tst, sst, n, after)
        pg.synchronize()
        expected = np.zeros_like(back)
        expected[: n * sst : sst] = source[: n * sst : sst]
        assert same(back, expected)
        pg.barrier_all()
        expected = np.zeros(n * tst + 1, dtype)
        expected[: n * tst : tst] = values_of(dtype, n, (n * sst + 1,), before)[: n * sst : sst]
        assert same(x.local, expected)
        pg.barrier_all()


@pytest.mark.parametrize("name", TYPES)
def test_single_elements(kernels, name):
    dtype, (after, before) = TYPES[name], around()
    x, values, back = pg.zeros(N + 1, dtype), values_of(dtype, 1, (N,)), np.zeros(N, dtype)
    kernels.kernel(f"elements<{name}>")[1, 1](x, values, back, N, after)
    pg.synchronize()
    assert same(back, values)
    pg.barrier_all()
    assert same(x.local[:N], values_of(dtype, 1, (N,), before))
    assert x.local[N] == 0
    pg.barrier_all()


def _sum(a, b):
    return (a + b).astype(a.dtype)


# Number in the kernel, what becomes of the element, whether the old value comes back.
ATOMICS = {
    "fetch": (0, lambda a, c, v: a, True),
    "set": (1, lambda a, c, v: v, False),
    "swap": (2, lambda a, c, v: v, True),
    "compare_swap": (3, lambda a, c, v: np.where(a == c, v, a), True),
    "add": (4, lambda a, c, v: _sum(a, v), False),
    "fetch_add": (5, lambda a, c, v: _sum(a, v), True),
    "inc": (6, lambda a, c, v: _sum(a, np.ones_like(a)), False),
    "fetch_inc": (7, lambda a, c, v: _sum(a, np.ones_like(a)), True),
    "and": (8, lambda a, c, v: a & v, False),
    "fetch_and": (9, lambda a, c, v: a & v, True),
    "or": (10, lambda a, c, v: a | v, False),
    "fetch_or": (11, lambda a, c, v: a | v, True),
    "xor": (12, lambda a, c, v: a ^ v, False),
    "fetch_xor": (13, lambda a, c, v: a ^ v, True),
}


def supported(name, op):
    dtype = np.dtype(TYPES[name])
    if op in ("fetch", "set", "swap"):
        return dtype.itemsize <= 8
    if op == "compare_swap":
        return dtype.kind in "iub"
    if "add" in op:
        return dtype.kind != "b" and dtype.itemsize <= 8
    if "inc" in op:
        return dtype.kind not in "bc"
    return dtype.kind in "iub"


@pytest.mark.parametrize("name", [name for name in TYPES if name != "pgas::complex128"])
def test_atomics(kernels, name):
    dtype, (after, _) = TYPES[name], around()
    kernel = kernels.kernel(f"atomics<{name}>")
    x, out = pg.zeros(N + 1, dtype), np.zeros(N, dtype)

    def operands(seed, pe):
        old, values = (values_of(dtype, seed + k, (N,), pe) for k in (0, 1))
        conditions = np.where(np.arange(N) % 2, old, values_of(dtype, seed + 2, (N,), pe))
        return old, conditions, values

    for op, (number, becomes, fetches) in ATOMICS.items():
        if not supported(name, op):
            continue
        # What is in the element's memory is known by its owner's number, and so are the operands of who updates it.
        x.local[:N] = operands(10, pg.my_pe())[0]
        _, conditions, values = operands(10, after)
        out[...] = 0
        pg.barrier_all()
        kernel[1, 16](number, x, np.ascontiguousarray(conditions), values, out, N, after)
        pg.synchronize()
        assert same(out, operands(10, after)[0] if fetches else np.zeros(N, dtype)), op
        pg.barrier_all()
        assert same(x.local[:N], becomes(*operands(10, pg.my_pe())).astype(dtype)), op
        assert x.local[N] == 0
        pg.barrier_all()


def test_contexts_are_arguments(kernels):
    """PE numbers of a call with a context count in the context's team."""
    n, me = pg.n_pes(), pg.my_pe()
    with pg.TEAM_WORLD.split_strided(n - 1, -1, n) as backwards, pg.Context(backwards) as context:
        x, back = pg.zeros(2, "f8"), np.zeros(2)
        to = (backwards.my_pe + 1) % n  # in the team: the PE before this one in the world
        kernels.kernel("copies<thread, double>")[1, 1](x, np.array([me + 1.0]), back, 1, to, context)
        pg.synchronize()
        pg.barrier_all()
        assert x.local.tolist() == [(me + 1) % n + 1.0] * 2
        assert back.tolist() == [me + 1.0] * 2
        pg.barrier_all()


@pes(1, 2)
@time_limit(180)
def test_more_than_two_to_the_31_bytes(kernels):
    """Counts are 64-bit. PE 0 puts a little more than 2 GiB to the last PE."""
    count = (1 << 31) + 5
    statistics = pg.heap_statistics()
    available = next(
        int(line.split()[1]) << 10
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable")
    )
    enough = available > 4 * count and statistics.size - statistics.used > count + (1 << 20)
    if not pg.reduce(int(enough), op="min"):
        pytest.skip(f"needs {4 * count >> 20} MiB of free memory, and a heap of {count >> 20} MiB")
    target = pg.empty(count, "u1")
    marks = [0, 1, (1 << 31) - 1, 1 << 31, count - 1]
    pg.barrier_all()
    if pg.my_pe() == 0:
        source = np.zeros(count, "u1")  # pages that nobody writes to take no memory
        source[marks] = [1, 2, 3, 4, 5]
        kernels.kernel("large")[1, 1](target, source, count, pg.n_pes() - 1)
        pg.synchronize()
    pg.barrier_all()
    if pg.my_pe() == pg.n_pes() - 1:
        assert target.local[marks].tolist() == [1, 2, 3, 4, 5]
        assert int(target.local[::4096].sum()) == 1 + 4
    pg.barrier_all()
