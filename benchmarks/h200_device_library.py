# SPDX-License-Identifier: Apache-2.0
"""The device library on a real GPU: is it right, and how fast is it?

One to four PEs share the first GPU, all in one process, with no host runtime: each is a region of GPU memory with its
own copy of the kernels. Every section runs in a process of its own, so that one that hangs or faults does not hide the
others::

    python benchmarks/h200_device_library.py [--output results.json] [section ...]

Needs NumPy and cuda-bindings with NVRTC. The exit status is the number of sections that failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from h200_checks import CHECKS
from h200_gpu import ROOT, Gpu, compile_cubin
from h200_timings import TIMINGS

SECTIONS: dict[str, Callable[[Gpu, bytes], dict[str, Any]]] = {**CHECKS, **TIMINGS}
SECTION_LIMIT = 100.0  # seconds

SMALL = """
#include <pypgas.cuh>
__global__ void ring(float *x, uint64_t *signal, int n) {
  const int to = (pgas::my_pe() + 1) % pgas::n_pes();
  pgas::put_signal<pgas::block>(x, x + n, n, signal, 1, pgas::SignalOp::set, to);
  if (threadIdx.x == 0) pgas::signal_wait_until(signal, pgas::Compare::ge, 1);
  __syncthreads();
  x[threadIdx.x] += 1;
}
"""


def compile_kernels(gpu: Gpu, folder: Path) -> dict[str, Any]:
    """Compile the kernels into a file for the other sections, and time a small kernel."""
    include = ROOT / "device" / "include"
    times = []
    for _ in range(5):
        start = time.perf_counter()
        compile_cubin(SMALL, gpu.capability, include)
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    source = (ROOT / "benchmarks" / "h200_device_library.cu").read_text()
    (folder / "kernels.cubin").write_bytes(compile_cubin(source, gpu.capability, include))
    return {
        "gpu": gpu.name,
        "capability": gpu.capability,
        "small kernel, first, ms": round(times[0] * 1e3, 1),
        "small kernel, best, ms": round(min(times) * 1e3, 1),
        "all kernels, s": round(time.perf_counter() - start, 1),
    }


def run_section(name: str, folder: Path) -> None:
    """Run one section in this process and leave its results in a file."""
    gpu = Gpu()
    if name == "compile":
        results = compile_kernels(gpu, folder)
    else:
        results = SECTIONS[name](gpu, (folder / "kernels.cubin").read_bytes())
    (folder / f"{name}.json").write_text(json.dumps(results, default=_plain))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def main() -> int:
    """Run the sections; return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", help=f"all, or some of: {', '.join(SECTIONS)}")
    parser.add_argument("--output", type=Path, help="write the results there, as JSON")
    parser.add_argument("--inner", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        run_section(options.sections[0], options.inner)
        return 0
    everything: dict[str, Any] = {}
    failed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for section in ["compile", *(options.sections or SECTIONS)]:
            start = time.perf_counter()
            command = [sys.executable, __file__, section, "--inner", str(folder)]
            try:
                status = subprocess.run(command, timeout=SECTION_LIMIT, check=False).returncode
            except subprocess.TimeoutExpired:
                status = -1
            seconds = time.perf_counter() - start
            file = folder / f"{section}.json"
            ok = status == 0 and file.is_file()
            if not ok:
                failed.append(section)
            print(f"{'ok  ' if ok else 'FAIL'} {section} ({seconds:.1f} s)", flush=True)
            results = json.loads(file.read_text()) if file.is_file() else {"status": status}
            everything[section] = results
            for key, value in results.items():
                print(f"       {key}: {value}", flush=True)
            if section == "compile" and not ok:
                break
            if options.output:
                options.output.write_text(json.dumps(everything, indent=1))
    print(f"{len(everything) - len(failed)} sections passed, failed: {', '.join(failed) or 'none'}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
