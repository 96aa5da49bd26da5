# SPDX-License-Identifier: Apache-2.0
"""The device library compiled for every GPU, and the memory model checked in the PTX that comes out.

No GPU is needed. A library in which a signal, a wait or a fence is weaker than the model says works by chance on some
machines; here it is caught by what the compiler wrote.
"""

from __future__ import annotations

import ast
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nvrtc_sources
import pytest

nvrtc: Any = pytest.importorskip("cuda.bindings.nvrtc", reason="needs the extra cuda13")

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "device" / "include"
SHIMS = ROOT / "device" / "shims"
GATE = "pgas::raw::enter"  # where barriers and collectives meet
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)


class Compiled:
    """The outcome of a compilation: text is PTX, or the compiler's messages."""

    def __init__(self, ok: bool, text: str, log: str, seconds: float) -> None:
        self.ok = ok
        self.text = text
        self.log = log
        self.seconds = seconds


def compile_ptx(
    source: str, architecture: int, include: Path = INCLUDE, folders: Sequence[Path] = ()
) -> Compiled:
    def call(function: Any, *arguments: Any) -> Any:
        error, *answer = function(*arguments)
        assert int(error) == 0, f"{function.__name__}: {error}"
        return answer[0] if answer else None

    program = call(nvrtc.nvrtcCreateProgram, source.encode(), b"kernels.cu", 0, [], [])
    options = [f"--gpu-architecture=compute_{architecture}", "--std=c++17"]
    options += [f"-I{folder}" for folder in (include, SHIMS, *folders)]
    start = time.process_time()
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    seconds = time.process_time() - start
    log = bytearray(call(nvrtc.nvrtcGetProgramLogSize, program))
    call(nvrtc.nvrtcGetProgramLog, program, log)
    text = bytearray(0 if int(error) else call(nvrtc.nvrtcGetPTXSize, program))
    if text:
        call(nvrtc.nvrtcGetPTX, program, text)
    call(nvrtc.nvrtcDestroyProgram, program)
    return Compiled(not int(error), text.rstrip(b"\0").decode(), log.rstrip(b"\0").decode().strip(), seconds)


def scopes(architecture: int) -> tuple[str, ...]:
    """All scopes for the oldest; what differs between scopes does not differ between architectures."""
    return nvrtc_sources.SCOPES if architecture == ARCHITECTURES[0] else ("block",)


@pytest.fixture(scope="module")
def everything() -> dict[int, Compiled]:
    def compiled(number: int) -> Compiled:
        return compile_ptx(nvrtc_sources.every_function(nvrtc_sources.kernels(scopes(number))), number)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(ARCHITECTURES, pool.map(compiled, ARCHITECTURES), strict=True))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_function_compiles_and_keeps_the_model(
    everything: dict[int, Compiled], architecture: int
) -> None:
    compiled = everything[architecture]
    assert compiled.ok, compiled.log
    assert compiled.log == "", "the library's headers give warnings"
    assert f".target sm_{architecture}" in compiled.text
    assert nvrtc_sources.violations(compiled.text, [*nvrtc_sources.kernels(scopes(architecture)), GATE]) == []


def test_every_type() -> None:
    compiled = compile_ptx(nvrtc_sources.all_types(), 75)
    assert compiled.ok, compiled.log
    assert compiled.log == ""
    assert nvrtc_sources.violations(compiled.text, []) == []


# File, what stands there, what a mutant has instead, and the kernels in which that must be noticed.
MUTANTS = {
    "a relaxed signal": (
        "raw/signals.cuh",
        "else arch::store_release(signal, value);",
        "else arch::store_relaxed(signal, value);",
        ("signal_set", "put_signal_thread", "put_signal_warp", "put_signal_block"),
    ),
    "no fence before the signal": (
        "signals.cuh",
        "    arch::fence_system();",
        "",
        ("put_signal_warp", "put_signal_block", "put_signal_add_block"),
    ),
    "the signal before its data": (
        "signals.cuh",
        "  put<S>(dst, src, count, pe, c);\n  if (arch::scope_rank<S>() == 0) {",
        "  if (arch::scope_rank<S>() == 0) raw::signal_update(detail::remote(signal, detail::world_pe(pe, c)), op, value);\n"
        "  put<S>(dst, src, count, pe, c);\n  if (false) {",
        ("put_signal_thread", "put_signal_block"),
    ),
    "a wait that does not acquire": (
        "raw/signals.cuh",
        "const T now = arch::load_acquire(variable);",
        "const T now = arch::load_relaxed(variable);",
        ("signal_wait_until", "wait_until", "wait_until_all", "wait_until_some_vector", "test", "test_any"),
    ),
    "a wait that looks once": (
        "signals.cuh",
        "    if (raw::test(variable, compare, value, &seen)) return seen;\n  }",
        "    if (raw::holds(seen, compare, value)) return seen;\n  }",
        ("signal_wait_until", "wait_until"),
    ),
    "an acquire for this GPU alone": (
        "arch/cuda.h",
        "ld.acquire.sys.",
        "ld.acquire.gpu.",
        ("signal_wait_until",),
    ),
    "a release for this GPU alone": ("arch/cuda.h", "st.release.sys.", "st.release.gpu.", ("signal_set",)),
    "relaxed atomics": (
        "arch/cuda.h",
        "atom.acq_rel.sys.",
        "atom.relaxed.sys.",
        ("atomic_add", "signal_add"),
    ),
    "a fence for this GPU alone": ("arch/cuda.h", "fence.sc.sys", "fence.sc.gpu", ("quiet",)),
    "no fence": (
        "raw/copy.cuh",
        "PGAS_FN void quiet() { arch::fence_system(); }",
        "PGAS_FN void quiet() {}",
        ("quiet",),
    ),
    "a barrier that releases nothing": (
        "raw/gate.cuh",
        "    arch::fence_release();",
        "",
        (GATE,),
    ),
    "a barrier that acquires nothing": (
        "raw/gate.cuh",
        "    const u64 word = arch::load_acquire(&own->release);",
        "    const u64 word = arch::load_relaxed(&own->release);",
        (GATE,),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, tmp_path: Path) -> None:
    file, right, wrong, kernels = MUTANTS[name]
    names = ["barrier_thread" if kernel == GATE else kernel for kernel in kernels]
    source = nvrtc_sources.every_function(names)
    shutil.copytree(INCLUDE, tmp_path / "include")
    place = tmp_path / "include" / "pypgas" / file
    text = place.read_text()
    assert right in text, f"{file} has changed: adapt this mutant"
    place.write_text(text.replace(right, wrong))
    compiled = compile_ptx(source, 75, tmp_path / "include")
    assert compiled.ok, compiled.log
    found = nvrtc_sources.violations(compiled.text, kernels)
    for kernel in kernels:
        assert any(line.startswith((kernel, "a fence", "an atomic", "narrower")) for line in found), (
            kernel,
            found,
        )


def example_kernels() -> dict[str, str]:
    """The CUDA C++ sources in the examples, by a name that tells where they are."""
    found = {
        str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "examples").rglob("*.cu"))
    }
    for path in sorted((ROOT / "examples").rglob("*.py")):
        text = path.read_text()
        if "__global__" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__global__" in node.value:
                found[f"{path.relative_to(ROOT)}:{node.lineno}"] = node.value
    return found


@pytest.mark.parametrize("name", example_kernels() or ["none"])
def test_example_kernels(name: str) -> None:
    if name == "none":
        pytest.skip("no example has a kernel")
    source = example_kernels()[name]
    with ThreadPoolExecutor(2) as pool:
        for compiled in pool.map(
            lambda n: compile_ptx(source, n, folders=[ROOT / "examples"]), ARCHITECTURES
        ):
            assert compiled.ok, compiled.log


def test_headers_that_nvrtc_lacks() -> None:
    headers = sorted(path.name for path in SHIMS.iterdir() if path.is_file())
    source = "".join(f"#include <{name}>\n" for name in headers)
    source += """
    #include <cooperative_groups/reduce.h>
    #include <pypgas.cuh>
    namespace cg = cooperative_groups;
    __global__ void k(int64_t *a, float *out, size_t n) {
      cg::grid_group grid = cg::this_grid();
      cg::thread_block block = cg::this_thread_block();
      cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
      auto warp = cg::tiled_partition<32>(block);
      assert(n < SIZE_MAX && INT_MAX > 3 && FLT_MAX > 1.0f);
      const std::uint32_t u = tile.shfl(int(tile.thread_rank()), 3);
      out[grid.thread_rank()] = cg::reduce(warp, float(u) * float(M_PI), cg::plus<float>()) + (tile.any(1) ? INFINITY : 0);
      grid.sync();
      if (memcmp(a, a + 1, sizeof *a) == 0) a[0] = int64_t(block.size()) + cg::coalesced_threads().shfl(3, 0);
    }
    """
    compiled = compile_ptx(source, 75)
    assert compiled.ok, compiled.log
    assert compiled.log == ""


def test_a_small_kernel_compiles_quickly() -> None:
    source = """
    #include <pypgas.cuh>
    __global__ void ring(float *x, uint64_t *signal, int n) {
      const int to = (pgas::my_pe() + 1) % pgas::n_pes();
      pgas::put_signal<pgas::block>(x, x + n, n, signal, 1, pgas::SignalOp::set, to);
      if (threadIdx.x == 0) pgas::signal_wait_until(signal, pgas::Compare::ge, 1);
      __syncthreads();
      x[threadIdx.x] += 1;
    }
    """
    bare = "__global__ void nothing() {}"

    def fastest(text: str) -> float:
        return min(compile_ptx(text, 90).seconds for _ in range(3))

    # Busy machines stretch both. On an idle one the whole takes well under 150 ms.
    assert fastest(source) < 8 * fastest(bare) + 0.1
