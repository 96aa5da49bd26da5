# SPDX-License-Identifier: Apache-2.0
"""Kernels that can't be compiled or launched: a clear error on this PE, nothing left behind, and the job goes on."""

import dataclasses
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import pypgas as pg
from pypgas.compiler import host
from pypgas.core.runtime import current_runtime
from pypgas.testing import pes

SOURCE = """
__global__ void fill(int *x, int value) { x[threadIdx.x] = value; }
template <class T> __global__ void scale(T *x) { x[threadIdx.x] *= 2; }
namespace ns { __global__ void other() {} }
"""


@pytest.fixture(scope="module")
def fill():
    return pg.Module(SOURCE).kernel("fill")


@pytest.fixture
def settings(monkeypatch):
    """Other settings for a while; gives a function that sets them."""
    runtime = current_runtime("test")

    def change(**values):
        monkeypatch.setattr(runtime, "settings", dataclasses.replace(runtime.settings, **values))

    return change


@pytest.fixture(autouse=True)
def nothing_left(tmp_path, monkeypatch):
    """No test leaves files where temporary files go, and all PEs are there after it."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield
    assert list(scratch.iterdir()) == []
    assert pg.reduce(1) == pg.n_pes()


def works(text="__global__ void works(int *x) { x[0] = 42; }", **options):
    x = np.zeros(1, "i4")
    pg.kernel(text, "works", **options)[1, 1](x)
    pg.synchronize()
    return x[0] == 42


def raises(kind, text, call, *arguments, **options):
    with pytest.raises(kind, match=text) as caught:
        call(*arguments, **options)
    assert str(caught.value).startswith(f"PE {pg.my_pe()}: ")
    return caught.value


# ---------------------------------------------------------------- compiling


def test_a_syntax_error():
    error = raises(
        pg.CompileError,
        r"<kernel source>:3:\d+: error: .*missing",
        pg.kernel,
        "// line 1\n__global__ void k(int *x) {\n  *x = missing;\n}\n",
        "k",
    )
    assert "missing" in error.log
    assert "pypgas_module" not in str(error)
    raises(
        pg.CompileError,
        r"mine\.cu:1:\d+: error",
        pg.Module("__global__ void k( {}", name="mine.cu").kernel,
        "k",
    )
    assert works()


def test_an_error_in_a_file(tmp_path):
    path = tmp_path / "bad.cu"
    path.write_text("\n\n__global__ void k() { nothing(); }\n")
    raises(pg.CompileError, rf"{path}:3:\d+: error", pg.Module(path).kernel, "k")


def test_all_pes_get_the_error_of_the_one_that_compiled():
    number = pg.broadcast(np.random.default_rng().integers(1 << 60), root=0)
    raises(
        pg.CompileError,
        rf":1:\d+: error.*x{number}",
        pg.kernel,
        f"__global__ void k() {{ x{number}(); }}",
        "k",
    )


def test_an_unknown_kernel():
    module = pg.Module(SOURCE)
    error = raises(pg.InvalidValueError, "has no kernel fil ", module.kernel, "fil")
    assert "fill, scale, ns::other" in str(error)
    assert "Did you mean fill?" in str(error)
    for name in ("ns::fill", "scale<Unknown>"):
        raises(pg.InvalidValueError, "has no kernel", module.kernel, name)
    raises(
        pg.InvalidValueError, "has no kernel nothing", pg.Module(SOURCE, kernels=["nothing"]).kernel, "fill"
    )
    assert module.kernel("fill").name == "fill"


@pytest.mark.parametrize("name", ["", "a;b", "f(", "x{}", '"x"'])
def test_what_is_no_name(name):
    raises(pg.InvalidValueError, "can't be the name", pg.Module(SOURCE).kernel, name)
    with pytest.raises(pg.InvalidValueError):
        pg.Module(SOURCE, kernels=[name])


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "text"),
    [
        ((3,), {}, pg.InvalidTypeError, "neither text nor a path"),
        (("no such file.cu",), {}, pg.InvalidValueError, "no such file"),
        ((SOURCE,), {"kernels": [3]}, pg.InvalidTypeError, "kernels"),
        ((SOURCE,), {"include": "/no/such/folder"}, pg.InvalidValueError, "is no folder"),
        ((SOURCE,), {"include": [3]}, pg.InvalidTypeError, "is no path"),
        ((SOURCE,), {"defines": {"1A": 2}}, pg.InvalidValueError, "is no macro"),
        ((SOURCE,), {"defines": [3]}, pg.InvalidTypeError, "defines"),
        ((SOURCE,), {"options": {"gpu": []}}, pg.InvalidValueError, "devices are cpu and cuda"),
        ((SOURCE,), {"options": [3]}, pg.InvalidTypeError, "options"),
        ((SOURCE,), {"name": "a/b"}, pg.InvalidValueError, "name"),
    ],
)
def test_wrong_arguments_of_modules(arguments, options, kind, text):
    raises(kind, text, pg.Module, *arguments, **options)


def test_an_unknown_option():
    raises(pg.CompileError, "no-such-option", pg.kernel, SOURCE, "fill", options=["--no-such-option"])


def test_a_source_without_kernels():
    raises(pg.InvalidValueError, "has no kernel k", pg.Module("int x;").kernel, "k")


# ---------------------------------------------------------------- launching


def test_shapes_that_are_too_large(fill):
    x = np.zeros(1, "i4")
    for block in (1025, (32, 33), (1024, 1, 2), (1, 1, 1025), 2**40):
        raises(pg.InvalidValueError, "block = ", lambda block=block: fill[1, block](x, 1))
    for grid in (2**31, (1, 2**31), 2**100):
        raises(pg.InvalidValueError, "grid = ", lambda grid=grid: fill[grid, 1](x, 1))
    for shape in (0, -1, (1, 0), (), (1, 1, 1, 1)):
        raises(pg.InvalidValueError, "grid = ", lambda shape=shape: fill[shape, 1](x, 1))
        raises(pg.InvalidValueError, "block = ", lambda shape=shape: fill[1, shape](x, 1))
    for shape in (1.0, "1", None, (1, None), (1.5,), np.zeros(2)):
        raises(pg.InvalidTypeError, "grid = ", lambda shape=shape: fill[shape, 1](x, 1))
    for index in (1, (1, 1, 1), slice(1), ()):
        raises(pg.InvalidTypeError, r"k\[grid, block\]", lambda index=index: fill[index])
    raises(pg.InvalidTypeError, r"k\[grid, block\]", fill, x, 1)
    assert x[0] == 0


def test_too_much_shared_memory(fill):
    x = np.zeros(1, "i4")
    for shared in ((1 << 20) + 1, 1 << 40, -1):
        raises(
            pg.InvalidValueError, "shared = .*1048576", lambda shared=shared: fill[1, 1](x, 1, shared=shared)
        )
    for shared in (1.0, "1", None):
        raises(pg.InvalidTypeError, "shared = ", lambda shared=shared: fill[1, 1](x, 1, shared=shared))
    fill[1, 1](x, 5, shared=1 << 20)
    pg.synchronize()
    fill[1, 1](x, 6, shared=np.int64(16))
    pg.synchronize()
    assert x[0] == 6


def test_what_is_no_stream(fill):
    with pytest.raises(TypeError, match="stream"):
        fill[1, 1](np.zeros(1, "i4"), 1, stream="s")
    with pytest.raises(TypeError):
        fill[1, 1](np.zeros(1, "i4"), 1, streams=None)


OUTSIDE = """
import sys, numpy as np, pypgas as pg
text = "__global__ void k(int *x) { x[0]++; }"
x = np.zeros(1, "i4")
module, unused = pg.Module(text), pg.Module(text)
def refused(kind, call):
    try:
        call()
    except kind as error:
        return print(type(error).__name__, error)
    sys.exit("a kernel was used outside its runtime")
refused(pg.NotInitializedError, lambda: module.kernel("k"))
refused(pg.NotInitializedError, lambda: pg.kernel(text, "k"))
pg.init()
k = module.kernel("k")
launch = k[1, 1]
launch(x)
pg.finalize()
assert x[0] == 1  # finalize waits for what is queued
def all_stale():
    refused(pg.StaleArrayError, lambda: module.kernel("k"))
    refused(pg.StaleArrayError, lambda: k[1, 1](x))
    refused(pg.StaleArrayError, lambda: launch(x))
all_stale()
refused(pg.NotInitializedError, lambda: unused.kernel("k"))
pg.init()
all_stale()
unused.kernel("k")[1, 1](x)
pg.Module(text).kernel("k")[1, 1](x)
pg.finalize()
assert x[0] == 3
"""


def alone(program, **environ):
    launchers = ("OMPI_", "PMI", "PMIX", "MPI_LOCAL", "HYDRA", "SLURM_", "PRTE_", "PYPGAS_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(launchers)}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**kept, **environ},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.returncode == 0, result.stderr
    return result


@pes(1)
def test_modules_belong_to_their_runtime(tmp_path):
    alone(OUTSIDE, PYPGAS_CACHE_DIR=str(tmp_path / "cache"))


# ---------------------------------------------------------------- the machine


def test_no_compiler_on_the_machine(settings, monkeypatch, tmp_path):
    settings(cache_dir=str(tmp_path / "cache"))
    monkeypatch.setattr(host, "_known", {})
    monkeypatch.setattr(host, "_zig_program", lambda: None)
    monkeypatch.delenv("CXX", raising=False)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        raises(pg.CompileError, r"no C\+\+ compiler.*CXX", pg.kernel, SOURCE, "fill")
    monkeypatch.setenv("CXX", "no-such-compiler")
    raises(pg.CompileError, "no-such-compiler", pg.kernel, SOURCE, "fill")


def test_a_read_only_cache_folder(settings, caplog):
    settings(cache_dir="/proc/self")  # takes no files, not even root's
    with caplog.at_level(logging.WARNING, "pypgas"):
        assert works("// in a folder nobody can write to\n__global__ void works(int *x) { x[0] = 42; }")
        assert works("// again\n__global__ void works(int *x) { x[0] = 42; }")
    assert len([r for r in caplog.records if "/proc/self" in r.getMessage()]) <= 1  # once in a process


def test_a_full_cache_folder(settings, caplog, tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    settings(cache_dir=str(folder))
    write = Path.write_bytes

    def full(path, data):
        if folder in path.parents:
            write(path, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with caplog.at_level(logging.WARNING, "pypgas"):
        assert works()
        assert works()
    assert len([r for r in caplog.records if "No space left" in r.getMessage()]) == 1
    assert list(folder.rglob("*.so")) == []


def test_a_cache_folder_that_others_can_write_to(settings, caplog, tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    settings(cache_dir=str(folder))
    with caplog.at_level(logging.WARNING, "pypgas"):
        assert works()
    assert "other users may write" in caplog.text
    assert list(folder.iterdir()) == []


def test_a_damaged_entry(settings, tmp_path):
    settings(cache_dir=str(tmp_path / "cache"))
    assert works()
    for path in (tmp_path / "cache").rglob("module.so"):
        path.write_bytes(b"\x7fELF, or not")
    assert works()


def test_an_entry_removed_between_two_looks(settings, tmp_path, monkeypatch):
    from pypgas.compiler import build

    settings(cache_dir=str(tmp_path / "cache"))
    assert works()
    look = build.cached_host_module

    def removed(*arguments):
        found = look(*arguments)
        assert found is not None
        shutil.rmtree(found.parent)
        return found

    monkeypatch.setattr(build, "cached_host_module", removed)
    assert works()


def test_no_cache(settings, tmp_path):
    settings(cache_dir=str(tmp_path / "cache"), cache_size=0)
    assert works()
    assert not (tmp_path / "cache").exists()
