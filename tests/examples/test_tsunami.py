# SPDX-License-Identifier: Apache-2.0
"""The tsunami's result depends neither on the number of PEs nor on who computes it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from PIL import Image
from programs import EXAMPLES, explain, run

SIZE, STEPS = 47, 40  # a prime: no number of PEs divides it
EXCHANGE = "halo.exchange(new, step)"


@pytest.fixture(scope="module")
def one_pe() -> str:
    return digest(1)


def digest(pes: int) -> str:
    job = run("tsunami.py", pes, "--size", SIZE, "--steps", STEPS)
    assert job.returncode == 0, explain(job)
    found = re.search(r"^sha256 of the result: ([0-9a-f]{64})$", job.stdout, re.MULTILINE)
    assert found, explain(job)
    return found[1]


@pytest.mark.parametrize("pes", [2, 3, 4, 6])
def test_any_number_of_pes_gives_the_same_bits(pes: int, one_pe: str) -> None:
    assert digest(pes) == one_pe


@pytest.mark.parametrize("pes", [1, 4])
def test_check_passes(pes: int) -> None:
    job = run("tsunami.py", pes, "--size", 96, "--steps", 150, "--check")
    assert job.returncode == 0, explain(job)
    assert "check: equal, bit for bit, to the result of one PE" in job.stdout
    assert "check: agrees with the independent solver" in job.stdout


def test_without_halo_exchange_check_fails(tmp_path: Path) -> None:
    for file in EXAMPLES.glob("tsunami*.py"):
        shutil.copy(file, tmp_path)
    copy = tmp_path / "tsunami.py"
    source = copy.read_text()
    assert source.count(EXCHANGE) == 1
    copy.write_text(source.replace(EXCHANGE, "pass"))

    job = run(copy, 4, "--size", SIZE, "--steps", STEPS, "--check")
    assert job.returncode != 0, explain(job)
    assert "check: DIFFERS from the result of one PE" in job.stdout, explain(job)
    assert "check: DIFFERS from the independent solver" in job.stdout, explain(job)


def test_pictures(tmp_path: Path) -> None:
    options = ("--size", SIZE, "--steps", STEPS, "--frames", 5, "--output", tmp_path / "new")
    job = run("tsunami.py", 2, *options)
    assert job.returncode == 0, explain(job)
    with Image.open(tmp_path / "new" / "highest-wave.png") as peak:
        assert peak.size == (800, 600)
    with Image.open(tmp_path / "new" / "waves.gif") as film:
        assert film.size == (800, 600)
        assert film.n_frames == 6  # type: ignore[attr-defined]


def test_too_many_pes_for_the_map_is_an_error() -> None:
    job = run("tsunami.py", 3, "--size", 4)
    assert job.returncode != 0
    assert "3 PEs need a map of 6 cells or more a side" in job.stderr
