# SPDX-License-Identifier: Apache-2.0
"""How long it takes from a kernel's source to a kernel that can be launched.

    python benchmarks/compile_times.py [--repeat N] [--json FILE]

Measured with a small kernel that uses the device library (put with signal, wait):

- the host compiler, and NVRTC for sm_90, with an empty cache (``cold``);
- both out of the cache on disk (``cached``), in a process that has used a kernel before, and for the CPU in one that
  has not: that also imports what kernels need, reads the device library's headers and the compiler's facts.

The time counts that the process and its children computed, and the time on the clock; on a busy machine the first is the
one to compare. Imports of CUDA's packages are not counted: a program on a GPU has made them. The exit code is 0 if the
processor times are within the targets.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pypgas as pg

SOURCE = """
#include <pypgas.cuh>

__global__ void shift(float *to, const float *from, int n, uint64_t *signal, uint64_t turn) {
  const int right = (pgas::my_pe() + 1) % pgas::n_pes();
  pgas::put_signal<pgas::block>(to, from, n, signal, turn, pgas::SignalOp::set, right);
  if (threadIdx.x == 0) pgas::signal_wait_until(signal, pgas::Compare::ge, turn);
}
"""
TARGETS = {"host cold": 2.0, "host cached": 0.005, "nvrtc cold": 0.150, "nvrtc cached": 0.005}  # s

Times = list[tuple[float, float]]  # clock, processor


def main() -> int:
    """Measure, print and compare."""
    parser = argparse.ArgumentParser(description="Times from a kernel's source to a kernel.")
    parser.add_argument("--repeat", type=int, default=7, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the times to this file")
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        print(json.dumps(_first_in_process()))
        return 0
    results: dict[str, Times] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYPGAS_CACHE_DIR"] = str(Path(folder) / "cache")
        with pg.init(heap_size="1M"):
            results["host cold"] = _measure(_host, options.repeat, fresh=True)
            results["host cached"] = _measure(_host, 5 * options.repeat, fresh=False)
            results["host cached, first in process"] = _in_new_processes(options.repeat)
        if _nvrtc_warmed_up():
            results["nvrtc cold"] = _measure(_nvrtc, options.repeat, fresh=True)
            results["nvrtc cached"] = _measure(_nvrtc, 5 * options.repeat, fresh=False)
    for name, times in results.items():
        clock, processor = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
        best = min(processor for _, processor in times) * 1e3
        target = f"   target {TARGETS[name] * 1e3:g}" if name in TARGETS else ""
        print(f"{name:32s} clock {clock:8.2f} ms   processor {processor:8.2f} ms (best {best:.2f}){target}")
    if options.json:
        options.json.write_text(json.dumps(results))
    missed = [
        name
        for name, limit in TARGETS.items()
        if name in results and min(p for _, p in results[name]) > limit
    ]
    return 1 if missed else 0


def _processor_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _measure(make: Callable[[str], object], repeat: int, fresh: bool) -> Times:
    times = []
    for i in range(repeat):
        source = f"{SOURCE}// {i if fresh else 'the same'} {make.__name__}\n"
        if not fresh and i == 0:
            make(source)
        clock, processor = time.perf_counter(), _processor_seconds()
        make(source)
        times.append((time.perf_counter() - clock, _processor_seconds() - processor))
    return times


def _host(source: str) -> object:
    return pg.Module(source).kernel("shift")


def _nvrtc(source: str) -> object:
    return pg.Module(source).cubin("sm_90")


def _nvrtc_warmed_up() -> bool:
    """Import CUDA's packages and have NVRTC load what it loads once; whether it is there."""
    try:
        pg.Module("__global__ void k() {}").cubin("sm_90")
    except pg.CompileError as error:
        print(f"nvrtc: {error}")
        return False
    return True


def _in_new_processes(repeat: int) -> Times:
    command = [sys.executable, __file__, "--first"]
    answers = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(repeat)
    ]
    return [(clock, processor) for clock, processor in map(json.loads, answers)]


def _first_in_process() -> tuple[float, float]:
    with pg.init(heap_size="1M"):
        clock, processor = time.perf_counter(), time.process_time()
        _host(f"{SOURCE}// the same _host\n")
        return time.perf_counter() - clock, time.process_time() - processor


if __name__ == "__main__":
    sys.exit(main())
