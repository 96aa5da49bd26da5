# SPDX-License-Identifier: Apache-2.0
"""Code for GPUs that are not there: NVRTC, its messages, and the cache of what it makes."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

import pypgas as pg
from pypgas.compiler import build, nvrtc
from pypgas.compiler.cache import Cache
from pypgas.compiler.names import UnknownKernelError
from pypgas.compiler.nvrtc import compile_cubin
from pypgas.compiler.signature import parameters
from pypgas.compiler.unit import Unit

pytest.importorskip("cuda.core", reason="needs the extra cuda13")

SOURCE = """
template <class T, int N> __global__ void scale(T *x, const T *y) { x[threadIdx.x] = N * y[threadIdx.x]; }
extern "C" __global__ void plain(const float *from, float *to, int n) { if (threadIdx.x < n) to[threadIdx.x] = from[0]; }
namespace ns { namespace { __global__ void hidden(unsigned long long *s) { *s = 1; } } }
"""
KERNELS = ("plain", "scale<float,3>", "ns::hidden")


@pytest.fixture
def unit() -> Unit:
    return Unit(SOURCE, "<kernel source>", kernels=KERNELS, symbols=frozenset(["ns::hidden"]))


def types(signature: str) -> list[str]:
    return [str(kind) for kind in parameters(signature)]


def test_symbols_and_signatures(unit: Unit) -> None:
    made = compile_cubin(unit, "sm_90")
    assert made.code[:4] == b"\x7fELF"
    for symbol in made.symbols.values():
        assert symbol.encode() in made.code
    assert made.symbols["plain"] == "plain"
    assert types(made.signatures["plain"]) == ["const float*", "float*", "int"]
    assert types(made.signatures["scale<float,3>"]) == ["float*", "const float*"]
    assert types(made.signatures["ns::hidden"]) == ["unsigned long long*"]


def test_every_architecture() -> None:
    known = nvrtc.architectures()
    assert {"sm_75", "sm_80", "sm_90", "sm_100"} <= set(known)
    small = Unit("__global__ void k(int *x) { *x = 1; }", "k.cu", kernels=("k",), symbols=frozenset("k"))
    codes = {compile_cubin(small, architecture).code for architecture in (known[0], known[-1])}
    assert len(codes) == 2
    for wrong in ("sm_10", "90", "", "compute_90"):
        with pytest.raises(pg.InvalidValueError, match="sm_75"):
            compile_cubin(small, wrong)


@pytest.mark.parametrize("kernel", ["nothing", "scale<float>", "ns::plain", "scale<float, 3, 4>"])
def test_unknown_kernels(unit: Unit, kernel: str) -> None:
    with pytest.raises(UnknownKernelError) as caught:
        compile_cubin(unit._replace(kernels=("plain", kernel)), "sm_90")
    assert caught.value.kernel == kernel


def test_messages_have_the_users_lines(unit: Unit) -> None:
    wrong = SOURCE + "__global__ void wrong() {\n  int x = nothing;\n  other();\n}\n"
    with pytest.raises(pg.CompileError) as caught:
        compile_cubin(unit._replace(source=wrong), "sm_90")
    said = str(caught.value)
    assert "<kernel source>(7): error" in said
    assert "<kernel source>(6): error" in said
    assert "pypgas kernels" not in said
    assert "NVRTC" in said


def test_a_brace_that_is_not_closed(unit: Unit) -> None:
    with pytest.raises(pg.CompileError, match="<kernel source>:6: error: the brace"):
        compile_cubin(unit._replace(source=SOURCE + "\nnamespace x {\n"), "sm_90")


def test_headers_and_defines(tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text("#define B 2\n")
    text = '#include "mine.h"\n__global__ void k(int *x) { *x = A + B + C; }\n'
    for options in (("-DC=3",), ("-D", "C=3")):
        unit = Unit(text, "k.cu", tmp_path, kernels=("k",), defines=("A=1",), options=options)
        assert compile_cubin(unit, "sm_90").code


@pytest.mark.parametrize(
    "option",
    [
        "--use_fast_math",
        "-lineinfo",
        "--maxrregcount=32",
        "--fmad=false",
        "-ftz=true",
        "--std=c++20",
        "--diag-suppress=177",
    ],
)
def test_options(unit: Unit, option: str) -> None:
    assert compile_cubin(unit._replace(options=(option,)), "sm_90").code


@pytest.mark.parametrize(
    "option", ["--no-such-option", "-O9", "--fmad", "--fmad=maybe", "--maxrregcount=x", "word", ""]
)
def test_unknown_options(unit: Unit, option: str) -> None:
    with pytest.raises(pg.InvalidValueError, match="not one of NVRTC's"):
        compile_cubin(unit._replace(options=(option,)), "sm_90")


def test_the_cache(unit: Unit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "cache", 1 << 20)
    first = build.cubin(unit, "sm_90", cache)
    assert build.cubin(unit, "sm_80", cache).code != first.code
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda *_: pytest.fail("compiled again"))
    assert build.cubin(unit, "sm_90", Cache(tmp_path / "cache", 1 << 20)) == first
    assert cache.statistics().entries == 2


def test_a_module_needs_no_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPGAS_CACHE_DIR", str(tmp_path / "cache"))
    module = pg.Module(
        SOURCE, kernels=["scale< double, 2 >"], options={"cuda": ["--fmad=false"], "cpu": ["--unknown"]}
    )
    made = module.cubin("sm_90")
    assert set(made.symbols) == {"plain", "ns::hidden", "scale<double,2>"}
    with pytest.raises(pg.InvalidValueError, match=r"no kernel nothing.*plain, ns::hidden"):
        pg.Module(SOURCE, kernels=["nothing"]).cubin("sm_90")
    with pytest.raises(pg.InvalidValueError, match="defines no __global__ function"):
        pg.Module("int x;").cubin("sm_90")


def test_without_nvrtc(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("cuda"):
            raise ImportError(f"No module named {name!r}")
        return imported(name, *arguments, **options)

    nvrtc.version.cache_clear()
    nvrtc.architectures.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(pg.CompileError, match=r"pip install 'pypgas\[cuda13\]'"):
        compile_cubin(unit, "sm_90")
