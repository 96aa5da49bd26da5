# SPDX-License-Identifier: Apache-2.0
"""Every small example finds its own answer correct, on any number of PEs."""

from __future__ import annotations

import pytest
from programs import EXAMPLES, explain, run

SMALL = {
    "hello.py": (),
    "gups.py": ("--table", 1021, "--updates", 70_000),
    "sample_sort.py": ("--keys", 3000),
    "matmul.py": ("--size", 61),
    "pagerank.py": (),
    "work_queue.py": ("--limit", 15_000),
    "kernel_gups.py": ("--table", 1021, "--updates", 2000),
    "kernel_allreduce.py": ("--piece", 333),
    "kernel_slices.py": ("--slices", 7, "--length", 500),
    "kernel_pipeline.py": ("--items", 300),
}


def test_every_example_is_tested() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py") if not path.name.startswith("tsunami")}
    assert programs == set(SMALL)


@pytest.mark.parametrize("pes", [1, 2, 3, 4])
@pytest.mark.parametrize("program", SMALL)
def test_program(program: str, pes: int) -> None:
    job = run(program, pes, *SMALL[program])
    assert job.returncode == 0, explain(job)
    lines = job.stdout.strip().splitlines()
    assert len(lines) == 1, explain(job)
    assert lines[0].endswith(": correct")
