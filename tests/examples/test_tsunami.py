# SPDX-License-Identifier: Apache-2.0
"""The tsunami's result depends neither on the number of PEs nor on who computes it."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from PIL import Image
from programs import EXAMPLES, explain, run

SIZE, STEPS = 47, 60  # a prime: no number of PEs divides it
EXCHANGE = "halo.exchange(new, step)"


@pytest.fixture(scope="module")
def digests() -> dict[int, str]:
    """The results at the PE counts tried so far."""
    return {}


@pytest.mark.parametrize("pes", [1, 2, 3, 4, 6])
def test_any_number_of_pes_gives_the_same_bits(pes: int, digests: dict[int, str], tmp_path: Path) -> None:
    options = ("--size", SIZE, "--steps", STEPS, "--check")
    pictures = ("--frames", 5, "--output", tmp_path / "new") if pes == 3 else ()
    job = run("tsunami.py", pes, *options, *pictures)
    assert job.returncode == 0, explain(job)
    assert "check: equal, bit for bit, to the result of one PE" in job.stdout
    assert "check: agrees with the independent solver" in job.stdout
    assert f"step {STEPS}/{STEPS}" in job.stderr

    # Two jobs agree, too.
    found = re.search(r"^sha256 of the result: ([0-9a-f]{64})$", job.stdout, re.MULTILINE)
    assert found, explain(job)
    digests[pes] = found[1]
    assert len(set(digests.values())) == 1

    if pictures:
        with Image.open(tmp_path / "new" / "highest-wave.png") as peak:
            assert peak.size == (800, 600)
        with Image.open(tmp_path / "new" / "waves.gif") as film:
            assert film.size == (800, 600)
            assert film.n_frames == 6  # type: ignore[attr-defined]


@pytest.mark.parametrize("pes", [1, 2, 3, 4])
def test_a_kernel_gives_the_same_bits(pes: int) -> None:
    job = run("tsunami.py", pes, "--size", SIZE, "--steps", STEPS, "--check", "--kernel")
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
    assert job.returncode == 1, explain(job)
    assert "check: DIFFERS from the result of one PE" in job.stdout, explain(job)
    assert "check: DIFFERS from the independent solver" in job.stdout, explain(job)


@pytest.mark.parametrize("pes", range(1, 17))
@pytest.mark.parametrize("size", [32, 47, 100])
def test_blocks_cover_the_map_once(pes: int, size: int) -> None:
    grid = tsunami().Grid(size, pes)
    cells: set[tuple[int, int]] = set()
    total = 0
    for pe in range(pes):
        block = grid.block(pe)
        cells.update((y, x) for y in range(block.y0, block.y1) for x in range(block.x0, block.x1))
        total += block.shape[0] * block.shape[1]
    assert total == len(cells) == size * size


def test_too_many_pes_for_the_map_is_an_error() -> None:
    with pytest.raises(ValueError, match="3 PEs need a map of 6 cells or more a side"):
        tsunami().Grid(5, 3)


def tsunami():  # type: ignore[no-untyped-def]
    sys.path.insert(0, str(EXAMPLES))
    try:
        import tsunami
    finally:
        sys.path.remove(str(EXAMPLES))
    return tsunami
