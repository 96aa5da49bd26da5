# SPDX-License-Identifier: Apache-2.0
"""The litmus kernels notice mistakes in the device library: mutants of it are caught, the library itself passes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from launcher_jobs import run

from pypgas.compiler.unit import DEVICE_FOLDER

PROGRAM = Path(__file__).parents[1] / "litmus" / "mutants.py"
LIBRARY = Path(DEVICE_FOLDER) / "include"

sys.path.append(str(PROGRAM.parent))
mutants = importlib.import_module("mutants")


def litmus(include: Path, repetitions: int, kernels: tuple[str, ...], wait_timeout: float) -> tuple[int, str]:
    environ = {"PYPGAS_WAIT_TIMEOUT": str(wait_timeout), "PYPGAS_CACHE_DIR": str(include.parent / "cache")}
    status, out, err = run(
        *("-n", "2", str(PROGRAM), str(include), str(repetitions), *kernels), environ=environ
    )
    return status, out + err


def test_the_library_passes(tmp_path: Path) -> None:
    include = mutants.write(None, LIBRARY, tmp_path / "include")
    status, said = litmus(include, 3, tuple(mutants.KERNELS), 50)
    assert status == 0, said


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_mutants_are_caught(tmp_path: Path, name: str) -> None:
    mutant = mutants.MUTANTS[name]
    include = mutants.write(mutant, LIBRARY, tmp_path / "include")
    status, said = litmus(include, 100, mutant.kernels, 2)
    assert status == mutants.CAUGHT, said
    assert "caught by " in said
