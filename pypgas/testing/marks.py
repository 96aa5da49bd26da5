# SPDX-License-Identifier: Apache-2.0
"""The marks of the harness and what a mark means for a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import MarkDecorator

__all__ = ["counts_for", "limit_for", "parse_counts", "pes", "time_limit"]


def pes(*counts: int, min: int = 1) -> MarkDecorator:
    """Mark a test to run on every PE of a job, at these numbers of PEs.

    Without ``counts`` it runs at those of ``--pes`` that are at least ``min``. Raises
    ``ValueError`` for a count below 1 or ``counts`` together with ``min``.
    """
    if any(not isinstance(n, int) or n < 1 for n in (*counts, min)):
        raise ValueError(f"pes: a number of PEs is an int of at least 1, got {counts or min}")
    if counts and min != 1:
        raise ValueError("pes: give either the counts or min=, not both")
    return pytest.mark.pes(*counts, min=min)


def time_limit(seconds: float) -> MarkDecorator:
    """Mark a test that must end within ``seconds`` on all PEs (default: ``--time-limit``).

    When it does not, the test fails with every PE's Python stack. Raises ``ValueError``
    unless ``seconds`` is positive.
    """
    if not seconds > 0:
        raise ValueError(f"time_limit: the number of seconds must be positive, got {seconds}")
    return pytest.mark.time_limit(seconds)


def parse_counts(text: str) -> list[int]:
    """Numbers of PEs from ``"1,2,4"``; raises ``pytest.UsageError`` for anything else."""
    try:
        counts = [int(part) for part in text.replace(" ", ",").split(",") if part]
    except ValueError:
        counts = []
    if not counts or any(n < 1 for n in counts):
        raise pytest.UsageError(f"--pes: expected numbers of PEs such as 1,2,4, got {text!r}")
    return list(dict.fromkeys(counts))


def counts_for(node: pytest.Item, asked: Sequence[int] | None, default: Sequence[int]) -> list[int]:
    """The numbers of PEs at which a test runs.

    ``asked`` is what the command line says (``None`` when it says nothing), ``default`` what
    the configuration says. A mark with counts is restricted by the command line only.
    """
    mark = node.get_closest_marker("pes")
    counts = list(asked if asked is not None else default)
    if mark is None:
        return counts
    if mark.args:
        return [n for n in mark.args if asked is None or n in asked]
    return [n for n in counts if n >= mark.kwargs.get("min", 1)]


def limit_for(item: pytest.Item, default: float) -> float:
    """The time limit of a test in seconds."""
    mark = item.get_closest_marker("time_limit")
    return float(mark.args[0]) if mark is not None and mark.args else default
