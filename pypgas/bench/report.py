# SPDX-License-Identifier: Apache-2.0
"""Results as a table and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from ..config import format_size
from .timing import Measurement

__all__ = ["as_json", "format_time", "header", "row"]

_BANDWIDTH_FROM = 4096  # bytes; below that a rate says nothing


def format_time(seconds: float) -> str:
    """Return a time in the unit that suits it, three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three(seconds / scale)} {unit}"
    return f"{_three(seconds / 1e-9)} ns"


def _three(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def header(sides: Sequence[str]) -> str:
    """Return the head of the table that `row` continues."""
    line = f"{'operation':<20}{'size':>7}{'pypgas':>11}{'GB/s':>8}"
    for side in sides:
        if side != "pypgas":
            line += f"{side:>12}{'ratio':>8}"
    return f"{line}\n{'-' * len(line)}"


def row(m: Measurement, sides: Sequence[str]) -> str:
    """Return a line: median times of a round, and pypgas's time over each peer's (below 1 is faster)."""
    size = format_size(m.nbytes) if m.nbytes else ""
    rate = _three(m.bandwidth("pypgas") / 1e9) if m.nbytes >= _BANDWIDTH_FROM else ""
    line = f"{m.operation:<20}{size:>7}{format_time(m.median('pypgas')):>11}{rate:>8}"
    for side in sides:
        if side == "pypgas":
            continue
        if side in m.seconds:
            line += f"{format_time(m.median(side)):>12}{m.ratio(side):>8.2f}"
        else:
            line += f"{'-':>12}{'':>8}"
    return line


def as_json(m: Measurement) -> dict[str, Any]:
    """Return a measurement as JSON can hold it; times are of one round, in seconds."""
    return {
        "operation": m.operation,
        "nbytes": m.nbytes,
        "messages": m.messages,
        "sides": {
            side: {
                "statement": m.statements[side],
                "rounds": m.rounds[side],
                "seconds": seconds,
                "median": statistics.median(seconds),
                "best": min(seconds),
            }
            for side, seconds in m.seconds.items()
        },
        "ratios": {side: m.ratio(side) for side in m.seconds if side != "pypgas"},
    }
