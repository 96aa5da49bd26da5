# SPDX-License-Identifier: Apache-2.0
"""The GPU's copy routine on a machine without one: every pair of offsets 0 to 31 with every size 0 to 300."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def test_copies_at_every_offset_and_size(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source, program = Path(__file__).with_name("gpu_copy.cpp"), tmp_path / "copies"
    command = [compiler, "-std=c++17", "-O2", "-fno-strict-aliasing", f"-I{ROOT / 'device' / 'include'}"]
    command += [str(source), "-o", str(program)]
    built = subprocess.run([*command, *SANITIZERS], capture_output=True, text=True, check=False)
    if built.returncode:  # sanitizers are not everywhere
        built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
