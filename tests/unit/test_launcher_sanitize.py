# SPDX-License-Identifier: Apache-2.0
"""``pypgas run --sanitize``: kernels under a sanitizer, in real jobs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pypgas.compiler.host import HostCompiler, find_compiler, sanitizer_library
from pypgas.errors import CompileError

PROGRAM = """
import sys
import numpy as np
import pypgas as pg
TEXT = '''
__global__ void beyond(int *x, int n) {
  __syncthreads();
  x[n + threadIdx.x] = 1;
}
__global__ void overflow(int *x, int n) {
  x[0] = n + 1;
}
'''
with pg.init():
    module = pg.Module(TEXT)
    x = np.zeros(100, "i4")
    module.kernel("beyond")[4, 25](x, 0)
    module.kernel("overflow")[1, 1](x, 1)
    pg.synchronize()
    print("all is well so far", flush=True)
    if sys.argv[1] == "address":
        module.kernel("beyond")[1, 2](x, 99)
    else:
        module.kernel("overflow")[1, 1](x, 2**31 - 1)
    pg.synchronize()
    pg.barrier_all()
"""


def run(tmp_path: Path, sanitizer: str, fault: str, n: int) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "pypgas",
        "run",
        "-n",
        str(n),
        "--sanitize",
        sanitizer,
        str(program),
        fault,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def available(sanitizer: str) -> bool:
    try:
        sanitizer_library(find_compiler(), sanitizer)
    except CompileError:
        return False
    return True


@pytest.mark.parametrize("n", [1, 2])
def test_an_access_beyond_an_array(tmp_path: Path, n: int) -> None:
    if not available("address"):
        pytest.skip("no address sanitizer here")
    result = run(tmp_path, "address", "address", n)
    assert result.stdout.count("all is well so far") == n
    assert result.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in result.stderr
    assert ".cu:4" in result.stderr
    assert "in beyond(int*, int)" in result.stderr


def test_an_overflow(tmp_path: Path) -> None:
    if not available("undefined"):
        pytest.skip("no undefined-behaviour sanitizer here")
    result = run(tmp_path, "undefined", "undefined", 2)
    assert result.stdout.count("all is well so far") == 2
    assert result.stderr.count("signed integer overflow") == 2
    assert ".cu:7:" in result.stderr


def test_a_compiler_without_sanitizers(tmp_path: Path) -> None:
    for family in ("zig", "gcc", "clang"):
        compiler = HostCompiler(("/bin/echo",), "a compiler", family, False)
        with pytest.raises(CompileError, match="a compiler"):
            sanitizer_library(compiler, "address")


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    result = run(tmp_path, "address", "address", 1)
    assert result.returncode == 2
    assert "pypgas run: --sanitize address: the C++ compiler that CXX names" in result.stderr


def test_an_unknown_sanitizer(tmp_path: Path) -> None:
    result = run(tmp_path, "thread", "address", 1)
    assert result.returncode == 2
    assert "--sanitize" in result.stderr
