# SPDX-License-Identifier: Apache-2.0
"""The host's compiler: found, known again without being called, and its messages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pypgas as pg
from pypgas.compiler import build, host
from pypgas.compiler import unit as unit_module
from pypgas.compiler.cache import Cache
from pypgas.compiler.host import HostCompiler, compile_module, find_compiler
from pypgas.compiler.names import UnknownKernelError
from pypgas.compiler.unit import Unit

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler here"
)

SOURCE = """
template <class T, int N> __global__ void scale(T *x) { x[threadIdx.x] *= N; }
__global__ void copy(const float *from, float *to, int n) {
  extern __shared__ float piece[];
  piece[threadIdx.x] = from[threadIdx.x];
  if (threadIdx.x < n) to[threadIdx.x] = piece[threadIdx.x];
}
"""
KERNELS = ("copy", "scale<float,3>")


@pytest.fixture
def unit() -> Unit:
    return Unit(SOURCE, "<kernel source>", kernels=KERNELS)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_known", {})


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def fake_gcc(path: Path, version: int = 12) -> Path:
    return program(
        path,
        f"printf '#define __GNUC__ {version}\\n#define __GNUC_MINOR__ 3\\n#define __GNUC_PATCHLEVEL__ 1\\n'",
    )


# ---------------------------------------------------------------- finding it


def test_the_order_of_the_search(tmp_path: Path) -> None:
    path = f"{tmp_path / 'a'}:{tmp_path / 'b'}"
    clang = program(
        tmp_path / "a" / "clang++", "echo '#define __clang__ 1'; echo '#define __clang_major__ 18'"
    )
    assert find_compiler({"PATH": path}).command == (str(clang),)
    assert find_compiler({"PATH": path}).family == "clang"
    gxx = fake_gcc(tmp_path / "b" / "g++")
    assert find_compiler({"PATH": path}) == HostCompiler(
        (str(gxx),), "GCC 12.3.1", "gcc", os.uname().machine == "x86_64"
    )
    cxx = fake_gcc(tmp_path / "b" / "c++")
    assert find_compiler({"PATH": path}).command == (str(cxx),)
    chosen = fake_gcc(tmp_path / "c" / "my-compiler", 13)
    environ = {"PATH": path, "CXX": f"{chosen} -m64 '-DA B'"}
    assert find_compiler(environ).command == (str(chosen), "-m64", "-DA B")
    assert find_compiler(environ).version == "GCC 13.3.1"
    assert find_compiler({"PATH": path, "CXX": "clang++"}).command == (str(clang),)
    assert find_compiler({"PATH": path, "CXX": " "}).command == (str(cxx),)


def test_no_compiler_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_zig_program", lambda: None)
    with pytest.raises(pg.CompileError, match="no C\\+\\+ compiler") as caught:
        find_compiler({"PATH": str(tmp_path)})
    for remedy in ("CXX", "g++", "clang++", "pip install"):
        assert remedy in str(caught.value)


def test_the_ziglang_package_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zig = program(tmp_path / "zig", 'test "$1" = version && echo 0.15.1')
    monkeypatch.setattr(host, "_zig_program", lambda: str(zig))
    assert find_compiler({"PATH": str(tmp_path / "empty")}) == HostCompiler(
        (str(zig), "c++"), "zig 0.15.1", "zig", False
    )


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("no-such-compiler", "no-such-compiler.*not there"),
        ("'unclosed", "no command"),
        ("{folder}/broken", "does not work:\nlibmpc.so is missing"),
        ("{folder}/silent", "neither GCC nor clang"),
        ("{folder}/garbage", "can't be run"),
    ],
)
def test_a_compiler_that_does_not_work(tmp_path: Path, chosen: str, expected: str) -> None:
    program(tmp_path / "broken", "echo libmpc.so is missing >&2; exit 1")
    program(tmp_path / "silent", "true")
    (tmp_path / "garbage").write_bytes(b"\x7fELF")
    (tmp_path / "garbage").chmod(0o755)
    with pytest.raises(pg.CompileError, match=expected):
        find_compiler({"PATH": os.defpath, "CXX": chosen.format(folder=tmp_path)})


def test_a_compiler_is_asked_once_for_as_long_as_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache", 1 << 20)
    gxx = fake_gcc(tmp_path / "bin" / "g++")

    def find() -> str:
        monkeypatch.setattr(host, "_known", {})  # as in another process
        return find_compiler({"PATH": str(gxx.parent)}, cache.load_fact, cache.save_fact).version

    assert find() == "GCC 12.3.1"
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("the compiler was called"))
        assert find() == "GCC 12.3.1"
    fake_gcc(gxx, 14)
    os.utime(gxx, (1000, 1000))
    assert find() == "GCC 14.3.1"


def test_the_device_library_is_read_once_for_as_long_as_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, cache = tmp_path / "device", Cache(tmp_path / "cache", 1 << 20)
    (library / "include").mkdir(parents=True)
    header = library / "include" / "a.h"
    header.write_text("1")
    monkeypatch.setattr(unit_module, "DEVICE_FOLDER", library)

    def read() -> str:
        monkeypatch.setattr(unit_module, "_device", None)  # as in another process
        return unit_module.device_digest(cache.load_fact, cache.save_fact)

    first = read()
    with monkeypatch.context() as patch:
        patch.setattr(unit_module, "blake2b", lambda **_: pytest.fail("the files were read again"))
        assert unit_module.device_digest() == first
    assert read() == first
    header.write_text("2")
    os.utime(header, (1000, 1000))
    second = read()
    (library / "include" / "b.h").write_text("2")
    assert len({first, second, read()}) == 3


def test_damaged_facts_are_asked_for_again(tmp_path: Path) -> None:
    gxx = fake_gcc(tmp_path / "g++")
    for text in ("", "[]", '{"version": 1}', "{"):
        host._known.clear()
        found = find_compiler({"PATH": str(gxx.parent)}, lambda key, text=text: text)  # type: ignore[misc]
        assert found.version == "GCC 12.3.1"


# ---------------------------------------------------------------- compiling


@needs_compiler
def test_a_module(unit: Unit, tmp_path: Path) -> None:
    module = compile_module(find_compiler(), unit, tmp_path)
    assert module.read_bytes()[:4] == b"\x7fELF"


@needs_compiler
def test_headers_defines_and_options(tmp_path: Path) -> None:
    include, out = tmp_path / "include", tmp_path / "out"
    include.mkdir()
    out.mkdir()
    (include / "mine.h").write_text(
        "__device__ inline float *tile() { extern __shared__ float t[]; return t; }\n"
    )
    text = '#include "mine.h"\n__global__ void k(float *x) { x[0] = tile()[0] + A + B; }\n'
    unit = Unit(text, "k.cu", kernels=("k",), include=(include,), defines=("A=3",), options=("-DB=2",))
    assert compile_module(find_compiler(), unit, out).exists()


def errors(unit: Unit, folder: Path) -> pg.CompileError:
    with pytest.raises(pg.CompileError) as caught:
        compile_module(find_compiler(), unit, folder)
    return caught.value


@needs_compiler
def test_messages_have_the_users_lines_and_nothing_else(unit: Unit, tmp_path: Path) -> None:
    text = SOURCE + "__global__ void wrong() {\n  int x = nothing;\n  other();\n}\n"
    error = errors(unit._replace(source=text), tmp_path)
    said = str(error)
    assert "<kernel source>:9:" in said
    assert "<kernel source>:10:" in said
    assert "int x = nothing;" in said
    for ours in ("pypgas kernels", "PGAS_", "kernel.h", str(tmp_path), "pypgas_module"):
        assert ours not in said
    assert "<kernel source>:9:" in error.log
    assert not isinstance(error, UnknownKernelError)


@needs_compiler
def test_messages_name_the_users_file_and_headers(tmp_path: Path) -> None:
    source, out = tmp_path / "src", tmp_path / "out"
    source.mkdir()
    out.mkdir()
    (source / "mine.h").write_text("\n\nint f() { extern __shared__ int s[]; return nothing; }\n")
    text = '#include "mine.h"\n__global__ void k() {}\n'
    (source / "k.cu").write_text(text)
    unit = Unit(text, str(source / "k.cu"), source, kernels=("k",))
    said = str(errors(unit, out))
    assert f"{source}/mine.h:3:" in said
    assert f"{source}/k.cu:1" in said


@needs_compiler
@pytest.mark.parametrize(
    "kernel", ["nothing", "scale<float>", "ns::copy", "scale", "scale<float,3,4>", "scale<Nothing,3>"]
)
def test_unknown_kernels(unit: Unit, tmp_path: Path, kernel: str) -> None:
    error = errors(unit._replace(kernels=("copy", kernel)), tmp_path)
    assert isinstance(error, UnknownKernelError)
    assert error.kernel == kernel
    assert f"has no kernel {kernel}" in str(error)


@needs_compiler
def test_a_brace_that_is_not_closed(unit: Unit, tmp_path: Path) -> None:
    error = errors(unit._replace(source=SOURCE + "namespace x {\n"), tmp_path)
    assert "<kernel source>:8: error: the brace that is opened here is never closed" in str(error)


@needs_compiler
def test_long_logs_are_cut_in_the_message_only(unit: Unit, tmp_path: Path) -> None:
    wrong = "".join(f"  a{i} = 1;\n" for i in range(100))
    error = errors(unit._replace(source=SOURCE + f"__global__ void wrong() {{\n{wrong}}}\n"), tmp_path)
    assert str(error).count("\n") < 70
    assert "more lines" in str(error)
    assert "a99" in error.log


@needs_compiler
def test_warnings_are_passed_on(unit: Unit, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = SOURCE + "__device__ int *f() { int x = 0; return &x; }\n"
    compile_module(find_compiler(), unit._replace(source=text), tmp_path)
    assert "<kernel source>:8:" in caplog.text


def test_a_folder_that_takes_no_files(unit: Unit, tmp_path: Path) -> None:
    compiler = HostCompiler(("/bin/false",), "none", "gcc", False)
    with pytest.raises(pg.CompileError, match="can't be compiled"):
        compile_module(compiler, unit, tmp_path / "missing")


# ---------------------------------------------------------------- with the cache


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A compiler that copies its source, and says how often it was called."""
    script = """
case "$*" in *-dM*) printf '#define __GNUC__ 12\\n'; exit;; *-fsyntax-only*) exit;; esac
echo >>"$COUNT"
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
grep -q '^syntax error' "$1" && { echo '<kernel source>:1:1: error: syntax' >&2; exit 1; }
cp "$1" "$out"
"""
    count = tmp_path / "count"
    count.write_text("")
    monkeypatch.setenv("COUNT", str(count))
    monkeypatch.setenv("CXX", str(program(tmp_path / "bin" / "compiler", script)))
    return lambda: len(count.read_text().splitlines())


def built(unit: Unit, cache: Cache) -> str:
    with build.host_module(unit, cache) as path:
        return path.read_text()


def test_compiled_once(unit: Unit, tmp_path: Path, compiler: Callable[[], int]) -> None:
    cache = Cache(tmp_path / "cache", 1 << 20)
    assert build.cached_host_module(unit, cache) is None
    assert "scale<float,3>" in built(unit, cache)
    assert built(unit, cache) == built(unit, Cache(tmp_path / "cache", 1 << 20))
    assert compiler() == 1
    found = build.cached_host_module(unit, cache)
    assert found is not None
    assert cache.holds(found)


def test_compiled_again_for_anything_else(
    unit: Unit, tmp_path: Path, compiler: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache", 1 << 20)
    built(unit, cache)
    changes: list[dict[str, Any]] = [{"defines": ("A",)}, {"debug": True}, {"source": SOURCE + "\n"}]
    for n, change in enumerate(changes, 2):
        built(unit._replace(**change), cache)
        assert compiler() == n
    with build.host_module(unit, cache, "address"):
        assert compiler() == 5
    with monkeypatch.context() as patch:  # another processor
        patch.setattr(host, "_features", "other flags")
        built(unit, cache)
        assert compiler() == 6
    with monkeypatch.context() as patch:  # another version of this library
        patch.setattr(build, "digest", lambda *_: "ff" * 20)
        built(unit, cache)
        assert compiler() == 7
    os.utime(os.environ["CXX"], (1000, 1000))  # another compiler
    built(unit, cache)
    assert compiler() == 8
    built(unit, cache)
    assert compiler() == 8


def test_without_a_cache(unit: Unit, tmp_path: Path, compiler: Callable[[], int]) -> None:
    for cache in (Cache(None, 1 << 20), Cache(tmp_path / "cache", 0), Cache(Path("/proc/self"), 1 << 20)):
        before = compiler()
        assert "scale" in built(unit, cache)
        assert "scale" in built(unit, cache)
        assert compiler() == before + 2


def test_nothing_is_left_behind(
    unit: Unit, tmp_path: Path, compiler: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    cache = Cache(tmp_path / "cache", 1 << 20)
    built(unit, cache)
    built(unit, Cache(None, 1 << 20))
    for place in (cache, Cache(None, 1 << 20)):
        with pytest.raises(pg.CompileError, match="<kernel source>:1:1: error: syntax"):
            built(unit._replace(source="syntax error"), place)
    assert list(scratch.iterdir()) == []
    assert len(list((tmp_path / "cache" / "entries").iterdir())) == 1


def test_no_room_to_compile_in(
    unit: Unit, tmp_path: Path, compiler: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc/self")
    with pytest.raises(pg.CompileError, match="no room"):
        built(unit, Cache(tmp_path / "cache", 1 << 20))


def test_a_failure_is_told_as_it_was(unit: Unit) -> None:
    for error in (pg.CompileError("text", "log"), UnknownKernelError("k", "text", "log")):
        again = build._told(build.Failure(json.loads(json.dumps(build._tell(error)))))
        assert type(again) is type(error)
        assert (str(again), again.log) == ("text", "log")
        assert getattr(again, "kernel", "") == getattr(error, "kernel", "")
