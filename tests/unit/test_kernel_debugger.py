# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled with ``debug=True`` can be stepped through in gdb, in their own source."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
import pypgas as pg
TEXT = '''
__device__ int twice(int v) {
  return 2 * v;
}
__global__ void step(int *x) {
  int mine = threadIdx.x + 5;
  __syncthreads();
  x[threadIdx.x] = twice(mine);
}
'''
with pg.init():
    x = np.zeros(4, "i4")
    pg.kernel(TEXT, "step", debug=True)[1, 4](x)
    pg.synchronize()
    print(x.tolist(), flush=True)
"""
COMMANDS = (
    "set breakpoint pending on",
    "tbreak step",
    "run",
    "next",
    "print mine",
    "print pgas::cpu::self->thread_idx.x",
    "tbreak twice",
    "continue",
    "print v",
    "backtrace 2",
    "continue",
)


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb here")
def test_stepping(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    commands = [word for command in COMMANDS for word in ("-ex", command)]
    result = subprocess.run(
        ["gdb", "-q", "-nx", "-batch", *commands, "--args", sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    if "ptrace" in result.stderr:
        pytest.skip("no process may be debugged here")
    said = result.stdout
    assert "6\t  int mine = threadIdx.x + 5;" in said
    assert "7\t  __syncthreads();" in said
    assert "$1 = 5" in said
    assert "$2 = 0" in said
    assert "3\t  return 2 * v;" in said
    assert any(f"$3 = {value}" in said for value in range(5, 9))  # whichever thread goes on first
    assert ".cu:8" in said  # where it was called from
    assert "[10, 12, 14, 16]" in said
