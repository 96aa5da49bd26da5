# SPDX-License-Identifier: Apache-2.0
"""Checks of the device library on a GPU: each takes the GPU and the kernels, and raises if a result is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from h200_gpu import I32, PE, Array, Gpu, Job, check_free_memory

__all__ = ["CHECKS"]

LARGEST, SLOT = 300, 384
THREADS = {"thread": 1, "warp": 20, "block": 96}  # odd sizes on purpose
INTEGERS = {
    f"{sign}{bits}": np.dtype(f"{'u' if sign == 'u' else ''}int{bits}")
    for sign in "iu"
    for bits in (8, 16, 32, 64)
}


def at(offset: int) -> Callable[[PE], int]:
    """An argument: that offset of each PE's heap."""
    return lambda pe: pe.heap + offset


def equal(got: Array, wanted: Array, what: str) -> None:
    """Raise unless two arrays are the same, bit for bit."""
    a, b = np.ascontiguousarray(got), np.ascontiguousarray(wanted)
    assert a.dtype == b.dtype, f"{what}: {a.dtype} against {b.dtype}"
    assert a.shape == b.shape, f"{what}: {a.shape} against {b.shape}"
    wrong = np.flatnonzero(a.reshape(-1).view(np.uint8) != b.reshape(-1).view(np.uint8))
    if wrong.size:
        i = int(wrong[0]) // a.itemsize
        raise AssertionError(
            f"{what}: {wrong.size} bytes differ, first in element {i}: {a.reshape(-1)[i]!r}, not {b.reshape(-1)[i]!r}"
        )


def copies(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """put and get at all offsets 0 to 31 on either side, sizes 0 to 300, at every scope; what lies around is untouched."""
    slots = 32 * 32 * (LARGEST + 1)
    job = Job(gpu, code, 2, heap_bytes=slots * SLOT + (1 << 20))
    landing, origin = job.symmetric(slots * SLOT), job.symmetric(4096)
    source = np.random.default_rng(1).integers(0, 256, 4096, np.uint8)
    source[source == 0xEE] = 0
    wanted = np.full((32, 32, LARGEST + 1, SLOT), 0xEE, np.uint8)
    inside = np.arange(LARGEST)[None, :] < np.arange(LARGEST + 1)[:, None]
    for start in range(32):
        for to in range(32):
            wanted[start, to, :, to : to + LARGEST][inside] = np.broadcast_to(
                source[start : start + LARGEST], inside.shape
            )[inside]
    zero, one = job.pes
    threads = {"thread": 64, "warp": 50, "block": 96}
    for scope, block in threads.items():
        for kind, reader, holder in (("put", one, zero), ("get", zero, one)):
            gpu.set_bytes(reader.heap + landing, 0xEE, slots * SLOT)
            gpu.set_bytes(holder.heap + origin, 0, 4096)
            gpu.write(holder.heap + origin, source)
            zero.launch(f"{kind}_all_{scope}", 1024, block, zero.heap + landing, zero.heap + origin, I32(1))
            zero.synchronize()
            equal(gpu.read(reader.heap + landing, wanted.shape, np.uint8), wanted, f"{kind}<{scope}>")
    return {"copies checked": slots * 6}


def long_copies(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """Counts past 2^31 and past 2^32, aligned and not."""
    nbytes = (1 << 32) + 12345
    if check_free_memory() < 3 * nbytes:
        return {"skipped": "too little GPU memory"}
    job = Job(gpu, code, 2, heap_bytes=nbytes + (1 << 20))
    out = gpu.allocate(8)
    zero, one = job.pes
    results = {}
    for shift, n in ((0, nbytes), (3, (1 << 31) + 77)):
        zero.launch("pattern", 1024, 256, zero.heap, (nbytes + 4) // 4, 17 + shift)
        gpu.set_bytes(one.heap, 0, nbytes + 4096)
        start = time.perf_counter()
        zero.launch("put_long", 1, 1024, zero.heap + shift, zero.heap, n, I32(1))
        zero.synchronize()
        seconds = time.perf_counter() - start
        gpu.set_bytes(out, 0, 8)
        zero.launch("differences", 1024, 256, one.heap + shift, zero.heap, n, out)
        zero.synchronize()
        assert gpu.read(out, 1, np.uint64)[0] == 0, f"{n} bytes to offset {shift}"
        tail = gpu.read(one.heap + shift + n, 64, np.uint8)
        assert not tail.any(), "bytes after the end were written"
        results[f"one block of 1024, {n} bytes to offset {shift}, GB/s"] = round(n / seconds / 1e9, 1)
    return results


def scalars(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """p, g, iput and iget of every element type."""
    job = Job(gpu, code, 2)
    types: dict[str, npt.DTypeLike] = {
        **INTEGERS, "f32": "f4", "f64": "f8", "f16": "f2", "bf16": "u2", "c64": "c8", "c128": "c16",
    }  # fmt: skip
    n = 100
    for name, kind in types.items():
        dtype = np.dtype(kind)
        place, origin, back = (job.symmetric(3 * n * dtype.itemsize) for _ in range(3))
        values = np.random.default_rng(3).integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
        zero, one = job.pes
        gpu.write(zero.heap + origin, values)
        zero.launch(
            f"scalars_{name}", 1, 64, zero.heap + place, zero.heap + origin, zero.heap + back, I32(n), I32(1)
        )
        zero.synchronize()
        equal(gpu.read(one.heap + place, n, dtype), values, f"p of {name}")
        equal(gpu.read(zero.heap + back, n, dtype), values, f"g of {name}")
        strided = np.zeros(3 * n // 2, dtype)
        strided[::3] = values[::2]
        equal(gpu.read(one.heap + place + n * dtype.itemsize, 3 * n // 2, dtype), strided, f"iput of {name}")
        wanted = np.zeros(n, dtype)
        wanted[::2] = values[::2]
        equal(gpu.read(zero.heap + back + n * dtype.itemsize, n, dtype), wanted, f"iget of {name}")
        job.clear()
    return {"types": len(types)}


def atomics(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """Four PEs of 64 threads update neighbouring elements of PE 0."""
    job = Job(gpu, code, 4)
    threads, times = 64, 50
    everybody = 4 * threads
    place = job.symmetric(256)
    sums = gpu.allocate(8 * everybody)
    for name, dtype in INTEGERS.items():
        width = 8 * dtype.itemsize
        ones = np.array(-1).astype(dtype)
        start = np.array([5, 0, ones, 0, 100, 0, 0, 3, 77], dtype)
        gpu.write(job.pes[0].heap + place, start)
        job.everywhere(f"amo_bits_{name}", threads, at(place), sums, I32(times))
        got = gpu.read(job.pes[0].heap + place, 9, dtype)
        mask = np.array((1 << width) - 1, np.uint64)
        ids = [i % 100 for i in range(everybody)]
        swapped = gpu.read(sums, everybody, np.uint64).astype(dtype)
        kept = sorted([*(int(v) for v in swapped), int(got[4])])
        assert kept == sorted([*ids, 100]), f"swap of {name} lost or doubled a value"
        wanted = np.array(
            [
                5 + 3 * everybody * times,
                int(mask),
                0,
                int(mask),
                int(got[4]),
                everybody * times,
                42,
                3 + everybody,
                77,
            ],
            object,
        )
        equal(
            got,
            np.array([int(v) & int(mask) for v in wanted], np.uint64)
            .astype(f"u{dtype.itemsize}")
            .view(dtype),
            name,
        )
        gpu.write(job.pes[0].heap + place, np.array([1, 2, 3], dtype))
        job.everywhere(
            f"amo_add_{name}", threads, lambda pe, d=dtype: pe.heap + place + d.itemsize, I32(times)
        )
        total = (
            np.array([1, (2 + everybody * times) & int(mask), 3], np.uint64)
            .astype(f"u{dtype.itemsize}")
            .view(dtype)
        )
        equal(gpu.read(job.pes[0].heap + place, 3, dtype), total, f"atomic_add of {name}")
    for name, kind, count in (("f32", "f4", 50), ("f64", "f8", 50), ("f16", "f2", 4)):
        gpu.write(job.pes[0].heap + place, np.array([1, 0, 1], kind))
        size = np.dtype(kind).itemsize
        job.everywhere(f"amo_add_{name}", threads, lambda pe, b=size: pe.heap + place + b, I32(count))
        equal(
            gpu.read(job.pes[0].heap + place, 3, kind),
            np.array([1, everybody * count, 1], kind),
            f"sum of {name}",
        )
    gpu.write(job.pes[0].heap + place, np.zeros(3, np.uint16))
    job.everywhere("amo_add_bf16", threads, lambda pe: pe.heap + place + 2, I32(1))
    equal(gpu.read(job.pes[0].heap + place, 3, "u2"), np.array([0, 0x4380, 0], "u2"), "sum of bf16")  # 256
    gpu.write(job.pes[0].heap + place, np.zeros(2, np.complex64))
    job.everywhere("amo_add_c64", threads, at(place), I32(times))
    equal(
        gpu.read(job.pes[0].heap + place, 2, "c8"),
        np.array([everybody * times * (1 + 2j), 0], "c8"),
        "sum of complex64",
    )
    return {"threads": everybody}


def signals(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """put_signal around a ring, each payload checked by whoever sees the signal; waits on several variables."""
    results = {}
    for n in (1, 2, 3, 4):
        job = Job(gpu, code, n)
        errors = gpu.allocate(8)
        for scope, threads in THREADS.items():
            for words, rounds in ((1, 4000), (33, 2000), (3000, 300)):
                landing, source = job.symmetric(8 * words), job.symmetric(4 * words)
                signal, credit = job.symmetric(8), job.symmetric(8)
                job.everywhere(
                    f"ring_{scope}",
                    threads,
                    at(landing),
                    at(source),
                    I32(words),
                    at(signal),
                    at(credit),
                    I32(rounds),
                    errors,
                )
                wrong = int(gpu.read(errors, 1, np.uint64)[0])
                assert wrong == 0, f"{wrong} stale words among {n} PEs, {scope}, {words} words"
                job.clear()
        flags = job.symmetric(256)
        job.everywhere("waits", 32, at(flags), errors)
        assert int(gpu.read(errors, 1, np.uint64)[0]) == 0, "wait_until_any, all, some"
        results[f"{n} PEs"] = "ok"
        job.close()
    return results


def barriers(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """What was put before a barrier is there after it."""
    rounds = 3000
    for n in (1, 2, 3, 4):
        job = Job(gpu, code, n)
        errors = gpu.allocate(8)
        flags = job.symmetric(4 * 64 * n)
        for scope, threads in THREADS.items():
            job.everywhere(f"barriers_{scope}", threads, at(flags), I32(rounds), errors)
            wrong = int(gpu.read(errors, 1, np.uint64)[0])
            assert wrong == 0, f"{wrong} stale words after barriers of {n} PEs, {scope}"
        job.close()
    return {"rounds": rounds}


def bfloat(values: Array) -> Array:
    """The upper halves of floats that need no more."""
    return np.ascontiguousarray((values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))


def collectives(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """Collectives against NumPy: sources in the heap and outside it, from one element to several staging buffers."""
    checked = 0
    for n in (1, 2, 4):
        job = Job(gpu, code, n, heap_bytes=96 << 20)
        for scope, threads in THREADS.items():
            for count in (1, 7, 64, 1000, 30000 if scope == "thread" else 200000):
                for in_heap in (True, False):
                    checked += _moves(job, scope, threads, count, in_heap)
                    checked += _reductions(job, scope, threads, count, in_heap)
        job.close()
    return {"calls checked": checked}


def _run(
    job: Job, name: str, threads: int, values: list[Array], room: int, in_heap: bool, count: int, **more: Any
) -> list[Array]:
    """Run a collective kernel; return every PE's first `room` elements of the result, and check what follows them."""
    gpu, dtype = job.gpu, values[0].dtype
    size = dtype.itemsize
    target, source = job.symmetric((room + 8) * size), job.symmetric(max(v.size for v in values) * size)
    outside = [gpu.allocate(max(v.nbytes, 16)) for v in values]
    for pe, data in zip(job.pes, values, strict=True):
        gpu.set_bytes(pe.heap + target, 0xAB, (room + 8) * size)
        gpu.write(pe.heap + source if in_heap else outside[pe.number], data)
    job.everywhere(
        name,
        threads,
        at(target),
        at(source) if in_heap else lambda pe: outside[pe.number],
        more.get("counts", lambda pe: count),
        room,
    )
    results = [gpu.read(pe.heap + target, room + 8, dtype) for pe in job.pes]
    for result in results:
        after = np.ascontiguousarray(result[room:]).view(np.uint8)
        assert (after == 0xAB).all(), f"{name}: wrote past the end"
    for address in outside:
        gpu.free(address)
    job.clear()
    return [result[:room] for result in results]


def _moves(job: Job, scope: str, threads: int, count: int, in_heap: bool) -> int:
    n = job.n
    rng = np.random.default_rng(count)
    data = [rng.integers(-(2**31), 2**31, count * n).astype(np.int32) for _ in range(n)]
    where = f"{scope}, {n} PEs, {count} elements, {'heap' if in_heap else 'outside'}"

    def short(length: int) -> list[Array]:
        return [d[:length] for d in data]

    for got in _run(job, f"broadcast_{scope}", threads, short(count), count, in_heap, count):
        equal(got, data[n - 1][:count], f"broadcast {where}")
    whole = np.concatenate(short(count))
    for got in _run(job, f"fcollect_{scope}", threads, short(count), count * n, in_heap, count):
        equal(got, whole, f"fcollect {where}")
    lengths = [count * i // n for i in range(n)]
    room = max(sum(lengths), 1)
    results = _run(
        job,
        f"collect_{scope}",
        threads,
        short(count),
        room,
        in_heap,
        count,
        counts=lambda pe: lengths[pe.number],
    )
    for got in results:
        wanted = np.concatenate([d[:length] for d, length in zip(data, lengths, strict=True)])
        equal(got[: wanted.size], wanted, f"collect {where}")
    for me, got in enumerate(_run(job, f"alltoall_{scope}", threads, data, count * n, in_heap, count)):
        equal(got, np.concatenate([d.reshape(n, count)[me] for d in data]), f"alltoall {where}")
    return 4


def _reductions(job: Job, scope: str, threads: int, count: int, in_heap: bool) -> int:
    n = job.n
    rng = np.random.default_rng(count + 1)
    where = f"{scope}, {n} PEs, {count} elements, {'heap' if in_heap else 'outside'}"
    floats = [rng.standard_normal(count * n).astype(np.float32) for _ in range(n)]
    short = [f[:count] for f in floats]
    for got in _run(job, f"reduce_{scope}_f32_sum", threads, short, count, in_heap, count):
        equal(got, _ordered(np.add, short), f"sum of float32 {where}")
    doubles = [f.astype(np.float64) for f in floats]
    for me, got in enumerate(_run(job, f"reduce_scatter_{scope}", threads, doubles, count, in_heap, count)):
        equal(got, _ordered(np.add, doubles).reshape(n, count)[me], f"reduce_scatter {where}")
    ints = [rng.integers(-1000, 1000, count).astype(np.int32) for _ in range(n)]
    zeros = np.zeros(count, np.int32)
    for me, got in enumerate(_run(job, f"inclusive_scan_{scope}", threads, ints, count, in_heap, count)):
        equal(got, _ordered(np.add, ints[: me + 1]), f"inclusive_scan {where}")
    for me, got in enumerate(_run(job, f"exclusive_scan_{scope}", threads, ints, count, in_heap, count)):
        equal(got, _ordered(np.add, ints[:me]) if me else zeros, f"exclusive_scan {where}")
    if scope != "block":
        return 4
    small = [rng.integers(1, 4, count) for _ in range(n)]
    cases: list[tuple[str, np.ufunc, list[Array]]] = [
        ("f32_prod", np.multiply, short), ("f32_min", np.minimum, short), ("f32_max", np.maximum, short),
        ("f64_sum", np.add, [d[:count] for d in doubles]), ("f16_sum", np.add, [s.astype(np.float16) for s in small]),
        ("c64_sum", np.add, [(f + 1j * f[::-1]).astype(np.complex64) for f in short]),
        ("c128_prod", np.multiply, [s + 1j * s[::-1] for s in small]),
        ("i8_sum", np.add, [s.astype(np.int8) for s in ints]), ("i16_max", np.maximum, [s.astype(np.int16) for s in ints]),
        ("i32_prod", np.multiply, ints), ("i64_min", np.minimum, [s.astype(np.int64) << 40 for s in ints]),
        ("u8_and_", np.bitwise_and, [s.astype(np.uint8) for s in ints]),
        ("u16_or_", np.bitwise_or, [s.astype(np.uint16) for s in ints]),
        ("u32_xor_", np.bitwise_xor, [s.astype(np.uint32) for s in ints]),
        ("u64_sum", np.add, [s.astype(np.uint64) for s in ints]),
    ]  # fmt: skip
    for name, ufunc, values in cases:
        for got in _run(job, f"reduce_block_{name}", threads, values, count, in_heap, count):
            equal(got, _ordered(ufunc, values), f"{name} {where}")
    for got in _run(job, "reduce_block_bf16_sum", threads, [bfloat(s) for s in small], count, in_heap, count):
        equal(got, bfloat(np.sum(small, axis=0)), f"bf16_sum {where}")
    return 5 + len(cases)


def _ordered(ufunc: np.ufunc, values: list[Array]) -> Array:
    """The same operations in the same order."""
    result = values[0].copy()
    for value in values[1:]:
        result = ufunc(result, value)
    return result


def reports(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """A wait past its limit, or seeing the abort word, says where it stood and leaves; the context lives on."""
    job = Job(gpu, code, 2, limit_ns=30_000_000)
    signal = job.symmetric(8)
    zero, one = job.pes
    zero.launch("hang", 3, 40, zero.heap + signal)
    zero.synchronize()
    records = job.records()
    assert records, "no record"
    assert all(r.complete and r.operation == "signal_wait_until" for r in records), records
    assert {r.address for r in records} == {zero.heap + signal}
    assert {(r.expected, r.seen) for r in records} == {(12345, 0)}
    assert {r.block for r in records} == {0, 1, 2}, "where each block waits"
    waited = max(r.waited_ns for r in records)
    assert 30_000_000 <= waited < 200_000_000, waited
    job.report[:] = 0
    one.launch("hang_in_barrier", 1, 64, 0)
    one.synchronize()
    assert [r.operation for r in job.records()] == ["barrier_all"], job.records()
    job.report[:] = 0
    long = Job(gpu, code, 1, limit_ns=0)
    long.pes[0].launch("hang", 1, 1, long.pes[0].heap)
    time.sleep(0.1)
    assert long.count() == 0
    start = time.perf_counter()
    long.abort[:8].view(np.uint64)[0] = 1
    long.pes[0].synchronize()
    seconds = time.perf_counter() - start
    assert [r.operation for r in long.records()] == ["signal_wait_until"], long.records()
    flags = job.symmetric(4 * 64 * 2)
    errors = gpu.allocate(8)
    job.everywhere("barriers_block", 64, at(flags), I32(10), errors)  # an abandoned barrier left no trace
    assert gpu.read(errors, 1, np.uint64)[0] == 0
    return {
        "limit 30 ms, waited, ms": round(waited / 1e6, 1),
        "abort seen after, ms": round(seconds * 1e3, 2),
    }


def grids(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """Cooperative launches: the whole grid meets."""
    job = Job(gpu, code, 1)
    (pe,) = job.pes
    count, errors = gpu.allocate(8), gpu.allocate(8)
    rounds = 300
    start = time.perf_counter()
    for _ in range(3):
        gpu.set_bytes(count, 0, 8)
        pe.launch("grid_rounds", gpu.processors, 128, count, I32(rounds), errors, cooperative=True)
        pe.synchronize()
        assert not job.records(), job.records()
    seconds = time.perf_counter() - start
    assert gpu.read(errors, 1, np.uint64)[0] == 0
    return {
        "blocks": gpu.processors,
        "a grid synchronisation, at most, us": round(seconds / (6 * rounds) * 1e6, 2),
    }


CHECKS: dict[str, Callable[[Gpu, bytes], dict[str, Any]]] = {
    "copies": copies,
    "long_copies": long_copies,
    "scalars": scalars,
    "atomics": atomics,
    "signals": signals,
    "barriers": barriers,
    "collectives": collectives,
    "reports": reports,
    "grids": grids,
}
