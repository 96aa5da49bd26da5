# SPDX-License-Identifier: Apache-2.0
"""Timings of the device library on a GPU, each beside what the hardware does without it."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver
from h200_gpu import I32, ROOT, Gpu, Job, check, check_free_memory, compile_cubin

__all__ = ["TIMINGS"]

MiB = 1 << 20
REPEATS = 5


class Timer:
    """Times what is enqueued on one stream, in seconds."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.events = [check(driver.cuEventCreate(0)) for _ in range(2)]

    def run(self, enqueue: Callable[[], None], times: int = 1) -> float:
        enqueue()
        best = float("inf")
        for _ in range(REPEATS):
            check(driver.cuEventRecord(self.events[0], self.stream))
            for _ in range(times):
                enqueue()
            check(driver.cuEventRecord(self.events[1], self.stream))
            check(driver.cuEventSynchronize(self.events[1]))
            best = min(best, check(driver.cuEventElapsedTime(*self.events)) * 1e-3 / times)
        return best


def bandwidth(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """put<block> over a full grid, a plain copy kernel and cuMemcpyDtoD; then one thread, warp and block alone."""
    largest = 512 * MiB
    if check_free_memory() < 3 * largest:
        largest = 64 * MiB
    job = Job(gpu, code, 2, heap_bytes=largest + MiB)
    zero, one = job.pes
    timer = Timer(zero.stream)
    results: dict[str, Any] = {}
    for nbytes in (MiB, 64 * MiB, largest):
        times = max(1, min(50, (256 * MiB) // nbytes))
        copy = timer.run(lambda n=nbytes: gpu.copy(one.heap, zero.heap, n, zero.stream), times)
        plain = min(
            timer.run(
                lambda n=nbytes, g=g, b=b: zero.launch("plain_grid", g, b, one.heap, zero.heap, n // 16),
                times,
            )
            for g, b in ((gpu.processors * 2, 1024), (gpu.processors * 16, 256), (nbytes // 16 // 256, 256))
        )
        results[f"{nbytes // MiB} MiB, GB/s: cuMemcpyDtoD"] = round(nbytes / copy / 1e9, 1)
        results[f"{nbytes // MiB} MiB, GB/s: plain kernel"] = round(nbytes / plain / 1e9, 1)
        for shift in (0, 8, 4, 1):
            best, how = float("inf"), ""
            for grid, block in (
                (gpu.processors, 1024),
                (gpu.processors * 2, 1024),
                (gpu.processors * 4, 512),
                (gpu.processors * 8, 256),
            ):
                for step in (nbytes // grid // 128 * 128 or 128, 64 << 10, 256 << 10):
                    seconds = timer.run(
                        lambda n=nbytes, g=grid, b=block, s=shift, c=step: zero.launch(
                            "put_grid", g, b, zero.heap, zero.heap + s, n, I32(1), c
                        ),
                        times,
                    )
                    if seconds < best:
                        best, how = seconds, f"{grid} blocks of {block}, {step} B each time"
            results[f"{nbytes // MiB} MiB, GB/s: put<block>, source {shift} B off"] = round(
                nbytes / best / 1e9, 1
            )
            results[f"{nbytes // MiB} MiB: fastest put, source {shift} B off"] = how
            results[f"{nbytes // MiB} MiB: put / cuMemcpyDtoD, source {shift} B off"] = round(copy / best, 3)
    for scope, block in (("thread", 1), ("warp", 32), ("block", 256), ("block", 1024)):
        for shift in (0, 1):
            for nbytes in (4096, MiB):
                seconds = timer.run(
                    lambda n=nbytes, b=block, x=scope, s=shift: zero.launch(
                        f"put_alone_{x}", 1, b, zero.heap, zero.heap + s, n, I32(1)
                    )
                )
                results[f"one {scope} of {block}, {nbytes} B, source {shift} B off, us"] = round(
                    seconds * 1e6, 2
                )
    return results


VARIANTS = {
    "as it is": ("signals.cuh", "", ""),
    "without the fence": ("signals.cuh", "    arch::fence_system(); // the other", "    // the other"),
    "a lighter fence": (
        "signals.cuh",
        "    arch::fence_system(); // the other",
        "    arch::fence_release(); // the other",
    ),
}
BARRIER_VARIANTS = {
    "as it is": ("collectives.cuh", "", ""),
    "without quiet": ("collectives.cuh", "if (arch::scope_rank<S>() == 0) raw::quiet();", ""),
}


def latency(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """put_signal ping-pong between two PEs, beside a bare store and release; what its fence costs."""
    results: dict[str, Any] = {}
    job = Job(gpu, code, 2)
    results["round trip, us: bare, 8 B"] = _bare(job)
    for scope, threads in (("thread", 1), ("warp", 32), ("block", 32), ("block", 256)):
        for nbytes in (8, 4096, MiB):
            results[f"round trip, us: {scope} of {threads}, {nbytes} B"] = _ping_pong(
                job, scope, threads, nbytes
            )
    job.close()
    for name, changed in _variants(gpu, VARIANTS, "ping_pong"):
        job = Job(gpu, changed, 2)
        for scope, threads in (("thread", 1), ("block", 256)):
            results[f"round trip, us: {scope} of {threads}, 8 B, {name}"] = _ping_pong(job, scope, threads, 8)
        job.close()
    return results


def _variants(gpu: Gpu, variants: dict[str, tuple[str, str, str]], wanted: str) -> list[tuple[str, bytes]]:
    """The kernels whose names begin so, with a changed library."""
    source = (ROOT / "benchmarks" / "h200_device_library.cu").read_text()
    head = source[: source.index("// ---- copies:")]
    tail = source[source.index("// ---- timings") :]
    found = []
    for name, (file, old, new) in variants.items():
        with tempfile.TemporaryDirectory() as folder:
            include = Path(folder) / "include"
            shutil.copytree(ROOT / "device" / "include", include)
            place = include / "pypgas" / file
            text = place.read_text()
            if old and old not in text:
                print(f"{wanted}: {file} no longer has what {name!r} changes")
                continue
            place.write_text(text.replace(old, new) if old else text)
            found.append((name, compile_cubin(head + tail, gpu.capability, include)))
    return found


def _bare(job: Job) -> float:
    zero, one = job.pes
    ns = job.gpu.allocate(16)
    rounds = 5000
    values = []
    for _ in range(REPEATS):
        for pe in job.pes:
            job.gpu.set_bytes(pe.heap, 0, 4096)
            pe.function("ping_pong_bare")
        zero.launch("ping_pong_bare", 1, 1, zero.heap, one.heap, I32(1), I32(rounds), ns)
        one.launch("ping_pong_bare", 1, 1, one.heap, zero.heap, I32(0), I32(rounds), ns + 8)
        zero.synchronize()
        one.synchronize()
        values.append(int(job.gpu.read(ns, 1, np.uint64)[0]) / rounds / 1e3)
    return round(statistics.median(values), 3)


def _ping_pong(job: Job, scope: str, threads: int, nbytes: int) -> float:
    gpu = job.gpu
    signal, data, source = job.symmetric(256), job.symmetric(nbytes), job.symmetric(nbytes)
    ns = gpu.allocate(8 * job.n)
    rounds = 5000 if nbytes <= 4096 else 200 if threads > 1 else 10
    values = []
    for _ in range(REPEATS):
        for pe in job.pes:
            gpu.set_bytes(pe.heap + signal, 0, 256)
        job.everywhere(
            f"ping_pong_{scope}", threads, lambda pe: pe.heap + data, lambda pe: pe.heap + source, nbytes,
            lambda pe: pe.heap + signal, I32(rounds), lambda pe: ns + 8 * pe.number,
        )  # fmt: skip
        values.append(int(gpu.read(ns, 1, np.uint64)[0]) / rounds / 1e3)
    job.clear()
    gpu.free(ns)
    return round(statistics.median(values), 3)


def barrier_times(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """barrier_all among 1, 2 and 4 PEs, and a small reduction."""
    results: dict[str, Any] = {}
    rounds = 2000
    variants = [
        ("", code),
        *((f", {name}", changed) for name, changed in _variants(gpu, BARRIER_VARIANTS, "time_barriers")),
    ]
    for name, kernels in variants:
        for n in (1, 2, 4):
            job = Job(gpu, kernels, n)
            ns = gpu.allocate(8 * n)
            for scope, threads in (("thread", 1), ("block", 32), ("block", 256)):
                values = []
                for _ in range(REPEATS):
                    job.everywhere(
                        f"time_barriers_{scope}", threads, I32(rounds), lambda pe, p=ns: p + 8 * pe.number
                    )
                    values.append(int(gpu.read(ns, 1, np.uint64)[0]) / rounds / 1e3)
                results[f"barrier_all, us: {n} PEs, {scope} of {threads}{name}"] = round(
                    statistics.median(values), 3
                )
            if not name:
                target, source = job.symmetric(MiB), job.symmetric(MiB)
                for count in (1, 1024, MiB // 4):
                    job.everywhere(
                        "time_reduce", 256, lambda pe, o=target: pe.heap + o, lambda pe, o=source: pe.heap + o, count,
                        I32(100), lambda pe, p=ns: p + 8 * pe.number,
                    )  # fmt: skip
                    took = int(gpu.read(ns, 1, np.uint64)[0]) / 100 / 1e3
                    results[f"reduce<block> of 256, us: {n} PEs, {count} floats"] = round(took, 2)
            job.close()
    return results


def atomic_rates(gpu: Gpu, code: bytes) -> dict[str, Any]:
    """atomic_add over a full grid, on one address and on one for each thread, beside a plain atomicAdd_system."""
    job = Job(gpu, code, 2)
    zero, one = job.pes
    timer = Timer(zero.stream)
    grid, block, times = gpu.processors * 2, 1024, 8
    results: dict[str, Any] = {}
    for name, spread in (("one address", 0), ("one each", 1)):
        rates = {}
        for kernel, place in (("add_library", zero.heap), ("add_plain", one.heap)):
            seconds = timer.run(
                lambda k=kernel, p=place, s=spread: zero.launch(k, grid, block, p, s, I32(times), I32(1))
            )
            rates[kernel] = grid * block * times / seconds / 1e9
        results[f"{name}, G/s: library"] = round(rates["add_library"], 3)
        results[f"{name}, G/s: plain"] = round(rates["add_plain"], 3)
    return results


TIMINGS: dict[str, Callable[[Gpu, bytes], dict[str, Any]]] = {
    "bandwidth": bandwidth,
    "latency": latency,
    "barrier_times": barrier_times,
    "atomic_rates": atomic_rates,
}
