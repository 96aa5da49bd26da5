# SPDX-License-Identifier: Apache-2.0
"""The CPU device: threads of a block, warps, shared memory, grids, streams, and kernels that go wrong."""

from pathlib import Path

import numpy as np
import pytest

import pypgas as pg
from pypgas.testing import time_limit

SOURCE = Path(__file__).with_name("cpu_device.cu")

pytestmark = time_limit(120)


@pytest.fixture(scope="module")
def module():
    return pg.Module(SOURCE)


@pytest.fixture(scope="module")
def warp(module):
    """Run a warp's test kernel, and give what its lanes returned."""

    def run(name, *arguments, threads=32, dtype="i4"):
        out = np.full(threads, 99, dtype)
        module.kernel(name)[1, threads](out, *arguments)
        pg.synchronize()
        return out

    return run


# ---------------------------------------------------------------- a block


@pytest.mark.parametrize("threads", [1, 2, 31, 32, 33, 100, 256, 1024])
def test_syncthreads_with_exits(module, threads):
    """Threads that have ended are not waited for."""
    out = np.zeros(threads, "i4")
    module.kernel("leaving")[1, threads](out)
    pg.synchronize()
    # Thread i leaves before round i; in each round all that are left see the sum of those before.
    assert np.array_equal(out, [sum(threads - 1 - r for r in range(min(i, 20))) for i in range(threads)])


@pytest.mark.parametrize("threads", [1, 40, 256])
def test_votes_of_a_block(module, threads):
    out = np.zeros((3, threads), "i4")
    for limit in (0, 1, threads // 2, threads):
        module.kernel("block_votes")[1, threads](out, limit)
        pg.synchronize()
        assert (out[0] == limit).all()
        assert (out[1] == (limit == threads)).all()
        assert (out[2] == (limit > 0)).all()


def test_shared_memory_belongs_to_the_block(module):
    blocks, threads = 40, 64
    for cooperative in (False, True):
        out = np.zeros((blocks, threads), "i4")
        module.kernel("shared")[blocks, threads](out, shared=4 * threads, cooperative=cooperative)
        pg.synchronize()
        expected = np.arange(blocks)[:, None] * 1000 + (threads - 1 - np.arange(threads)) + 7
        assert np.array_equal(out, expected * 2)


def test_grid_synchronisation(module):
    blocks, threads, steps = 13, 5, 20
    x = np.zeros((2, blocks), "i4")
    x[0] = np.arange(blocks)
    expected = x[0].copy()
    module.kernel("diffuse")[blocks, threads](x, steps, cooperative=True)
    pg.synchronize()
    for _ in range(steps):
        expected = (np.roll(expected, 1) + np.roll(expected, -1)) % 1009
    assert np.array_equal(x[steps % 2], expected)


def test_blocks_that_wait_for_later_blocks(module):
    flags = np.zeros(200, "i4")
    module.kernel("backwards")[200, 3](flags)
    pg.synchronize()
    assert (flags == 1).all()


# ---------------------------------------------------------------- a warp


LANES = np.arange(32)


@pytest.mark.parametrize("width", [2, 8, 32])
@pytest.mark.parametrize("by", [0, 1, 3, 7, 40])
def test_shuffles(warp, width, by):
    values, segment = LANES * 10, LANES // width * width
    up, down, across = LANES - by, LANES + by, LANES ^ by
    inside = {
        "shuffle_from": segment + by % width,
        "shuffle_up": np.where(up < segment, LANES, up),
        "shuffle_down": np.where(down >= segment + width, LANES, down),
        "shuffle_xor": np.where(across >= segment + width, LANES, across),
    }
    for name, source in inside.items():
        assert np.array_equal(warp(name, by, width), values[source]), name


def test_shuffles_of_all_types(warp):
    assert np.array_equal(warp("shuffle_double", dtype="f8"), LANES[::-1] + 0.5)
    assert np.array_equal(warp("shuffle_long", dtype="i8"), LANES[::-1] - (1 << 40))
    assert np.array_equal(warp("shuffle_float", dtype="f4"), LANES[::-1] * np.float32(0.25))


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x1, 0x80000000, 0x55555555, 0x0000FFF0])
def test_partial_masks(warp, mask):
    """Lanes outside the mask do something else meanwhile."""
    inside = mask >> LANES & 1 == 1
    chosen = LANES[inside]
    expected = {
        "ballot": sum(1 << int(lane) for lane in chosen if lane % 3 == 0),
        "any": int((chosen % 3 == 0).any()),
        "all": int((chosen % 3 == 0).all()),
        "add": int((chosen - 5).sum()),
        "min": int((chosen - 5).min()),
        "max": int((chosen - 5).max()),
        "unsigned_min": int((chosen - 5).astype("u4").min().astype("i4")),
        "unsigned_max": int((chosen - 5).astype("u4").max().astype("i4")),
        "and": int(np.bitwise_and.reduce(chosen)),
        "or": int(np.bitwise_or.reduce(chosen)),
        "xor": int(np.bitwise_xor.reduce(chosen)),
        "leader": int(chosen[0] * 10),
    }
    for number, (name, value) in enumerate(expected.items()):
        out = warp("masked", mask, number)
        assert (out[inside].astype("i8") & 0xFFFFFFFF == value & 0xFFFFFFFF).all(), name
        assert (out[~inside] == -1).all(), name


def test_match(warp):
    same = np.array([sum(1 << int(k) for k in LANES if k % 5 == lane % 5) for lane in LANES])
    assert np.array_equal(warp("match_any", dtype="u4"), same)
    assert (warp("match_all", 7) == 7).all()
    assert (warp("match_all", -1) == 0).all()


@pytest.mark.parametrize("threads", [5, 32, 45, 96])
def test_warps_that_are_not_full(warp, threads):
    out = warp("warp_sums", threads=threads)
    lanes = [range(i // 32 * 32, min(i // 32 * 32 + 32, threads)) for i in range(threads)]
    assert out.tolist() == [sum(group) for group in lanes]


# ---------------------------------------------------------------- CUDA's atomics


def test_atomic_functions(module):
    threads, blocks = 48, 3
    n = threads * blocks
    for kind, dtype in (("int", "i4"), ("unsigned", "u4"), ("long", "i8"), ("ulong", "u8")):
        x = np.zeros(12, dtype)
        x[4], x[7] = 1 << 30, -1 if dtype[0] == "i" else np.iinfo(dtype).max
        module.kernel(f"atomics_{kind}")[blocks, threads](x)
        pg.synchronize()
        ids = np.arange(n)
        assert x[0] == ids.sum()
        assert x[1] == np.array(-ids.sum()).astype(dtype)
        assert x[2] in ids + 1  # exchanged: the last to come stays
        assert x[3] == n - 1
        assert x[4] == 0
        assert x[5] == n  # compare-and-swap loops
        assert x[6] == np.bitwise_or.reduce(1 << ids % 31)
        assert x[7] == np.array(~np.array(1 << 5)).astype(dtype)
        assert x[8] == np.bitwise_xor.reduce(ids)
    floats = np.zeros(2, "f4"), np.zeros(2, "f8")
    wraps = np.zeros(2, "u4")
    module.kernel("atomics_rest")[blocks, threads](*floats, wraps)
    pg.synchronize()
    assert floats[0].tolist() == floats[1].tolist() == [n * 0.5, 0.0]
    assert wraps.tolist() == [n % 10, (-n) % 10]


# ---------------------------------------------------------------- streams and events


def test_streams_overlap(module):
    """Each of two kernels waits for the other: streams run at the same time."""
    flags = np.zeros(2, "i4")
    with pg.Stream() as one, pg.Stream() as two:
        module.kernel("meet")[1, 1](flags, 0, stream=one)
        module.kernel("meet")[1, 1](flags, 1, stream=two)
    assert flags.tolist() == [1, 1]


def test_streams_are_in_order_and_events_join_them(module):
    log = np.zeros(101, "i4")
    one, two = pg.Stream(), pg.Stream()
    note = module.kernel("note")
    for _ in range(50):
        note[1, 1](log, 1, 1000, stream=one)
    event = one.record()
    two.wait(event)
    for _ in range(50):
        note[1, 1](log, 2, 0, stream=two)
    two.synchronize()
    assert event.done
    assert one.done
    assert log[0] == 100
    assert log[1:].tolist() == [1] * 50 + [2] * 50


# ---------------------------------------------------------------- kernels that go wrong


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, r"assert.*cpu_device\.cu:\d+: threadIdx\.x != 3"),
        (1, "trap"),
        (2, r"bad access to address 0x10\b"),
        (3, "stack overflow"),
        (4, "division by zero"),
    ],
    ids=["assert", "trap", "bad access", "stack overflow", "division"],
)
def test_failures_name_kernel_block_and_thread(module, number, text):
    out = np.zeros(1, "i4")
    for stream in (None, pg.Stream()):
        module.kernel("fails")[4, 32](number, 2, 3, out, stream=stream)
        with pytest.raises(pg.KernelError, match=text) as caught:
            (stream or pg).synchronize()
        error = caught.value
        assert (error.kernel, error.block, error.thread) == ("fails", (2, 0, 0), (3, 0, 0))
        for part in (f"PE {pg.my_pe()}: ", "kernel fails", "block (2, 0, 0)", "thread (3, 0, 0)"):
            assert part in str(error)
        # The process goes on, and so does the stream.
        out[0] = 0
        module.kernel("fails")[4, 32](-1, 2, 3, out, stream=stream)
        (stream or pg).synchronize()
        assert out[0] == 4 * 32


def test_an_endless_loop_is_ended(module):
    out = np.zeros(1, "i4")
    module.kernel("fails")[2, 1](5, 1, 0, out)
    with pytest.raises(pg.KernelError, match=r"has not ended in 0\.5.* s.*block \(1, 0, 0\)") as caught:
        pg.synchronize(0.5)
    assert caught.value.kernel == "fails"
    module.kernel("fails")[1, 1](-1, 0, 0, out)
    pg.synchronize()


def test_the_next_launch_raises(module):
    out = np.zeros(1, "i4")
    stream = pg.Stream()
    module.kernel("fails")[1, 4](1, 0, 2, out, stream=stream)
    while not stream.done:
        pass
    with pytest.raises(pg.KernelError, match="trap"):
        module.kernel("fails")[1, 4](-1, 0, 0, out, stream=stream)
    stream.synchronize()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "16 at __syncthreads.*16 at a warp operation"),
        (1, "at a warp operation"),
        (2, "mask does not name the calling lane"),
    ],
    ids=["barrier and shuffle", "two masks", "foreign mask"],
)
def test_deadlocks_are_found(module, number, text):
    out = np.zeros(1, "i4")
    module.kernel("stuck")[1, 32](number, out)
    with pytest.raises(pg.KernelError, match=text) as caught:
        pg.synchronize()
    assert caught.value.kernel == "stuck"
    module.kernel("fails")[1, 32](-1, 0, 0, out)
    pg.synchronize()


def test_wrong_addresses_and_pes(module):
    """The library's own checks: memory that is not symmetric, a PE that does not exist."""
    x, mine = pg.zeros(4, "i4"), np.zeros(4, "i4")
    for target, pe, text in ((mine, 0, "not symmetric"), (x, pg.n_pes(), "pe"), (x, -1, "pe")):
        module.kernel("store")[1, 1](target, pe)
        with pytest.raises(pg.KernelError, match=text):
            pg.synchronize()
    pg.barrier_all()
