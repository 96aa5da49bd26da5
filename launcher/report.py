# SPDX-License-Identifier: Apache-2.0
"""What a job says of its end: the failure that caused it once and whole, the others in a line each."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
from typing import Any

from .child import report_path

__all__ = ["PEState", "exit_code", "failures", "first_failure", "format_failure", "format_places", "load"]


@dataclasses.dataclass
class PEState:
    """What is known of one PE.

    Attributes:
        pe: Its number.
        pid: Its process, which leads a process group; 0 before it has started.
        code: How it ended: its exit code, or minus the signal that killed it; ``None`` while it
            runs.
        ended_at: When, in seconds on the monotonic clock.
        killed: It did not end by itself: we or the MPI launcher killed it.
        lost: Nobody said how it ended.
        report: What it wrote about its failure, see `pypgas.launcher.child.describe_failure`.
    """

    pe: int
    pid: int = 0
    code: int | None = None
    ended_at: float = 0.0
    killed: bool = False
    lost: bool = False
    report: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        """Whether it has ended, and not well, by its own doing."""
        return self.report is not None or (self.code not in (None, 0) and not self.killed)

    @property
    def secondary(self) -> bool:
        """Whether its failure only follows from that of another PE."""
        return self.report is not None and bool(self.report.get("secondary", False))

    @property
    def failed_at(self) -> float:
        """When it failed, in seconds on the monotonic clock."""
        return self.ended_at if self.report is None else float(self.report.get("time", self.ended_at))


def load(folder: str, pe: int) -> dict[str, Any] | None:
    """The failure report that PE ``pe`` left in the job's folder, or ``None``."""
    try:
        with open(report_path(folder, pe), encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return found


def failures(states: list[PEState]) -> list[PEState]:
    """The PEs that failed, causes before consequences and each in the order of time."""
    return sorted((s for s in states if s.failed), key=lambda s: (s.secondary, s.failed_at))


def first_failure(states: list[PEState]) -> PEState | None:
    """The PE whose failure ended the job, ``None`` if none failed."""
    return next(iter(failures(states)), None)


def exit_code(state: PEState) -> int:
    """The exit code that a PE's end means for the job, 128 + n for signal n."""
    if state.report is not None and "code" in state.report:
        code = int(state.report["code"]) & 0xFF
        # 0 is an exit that is meant for all PEs, see `pypgas.abort`. No exception is a success.
        return code if state.report.get("kind") == "exit" else code or 1
    code = state.code or 0
    return code if code >= 0 else 128 - code


def signal_title(number: int) -> str:
    """``SIGSEGV (Segmentation fault)`` for 11."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    text = signal.strsignal(number)
    return f"{name} ({text})" if text else name


def _summary(state: PEState) -> str:
    report = state.report
    if report is not None and report.get("kind") == "exit":
        text = f"left with exit code {exit_code(state)}"
        return f"{text}: {report['message']}" if report.get("message") else text
    if report is not None and report.get("kind") == "abort":
        text = f"called abort with exit code {exit_code(state)}"
        return f"{text}: {report['message']}" if report.get("message") else text
    if report is not None:
        message = report.get("message", "")
        text = f"{report.get('type', 'an exception')}: {message}" if message else str(report.get("type"))
        return f"raised {text}"
    if state.code is None or state.killed:
        return "had not ended and was killed"
    if state.code < 0:
        return f"was killed by {signal_title(-state.code)}"
    return f"left with exit code {state.code}" if state.code else "ended normally"


def format_failure(states: list[PEState]) -> str:
    """The report of a job in which a PE failed: lines of text."""
    first = first_failure(states)
    if first is None:
        return ""
    traceback = (first.report or {}).get("traceback", "")
    message = (first.report or {}).get("message", "")
    if len(states) == 1:
        if first.code is not None and first.code < 0 and first.report is None:
            return f"pypgas run: the program {_summary(first)}\n"
        # As `python` does: the traceback, or what sys.exit() was given.
        return traceback or (f"{message}\n" if message else "")
    lines = [f"pypgas run: PE {first.pe} of {len(states)} {_summary(first)}"]
    if traceback:
        # The message may have many lines; the traceback repeats them all.
        lines = [lines[0].splitlines()[0], traceback.rstrip("\n")]
    lines += _others([s for s in states if s is not first])
    return "\n".join(lines) + "\n"


def _others(states: list[PEState]) -> list[str]:
    """One line for PEs that ended in the same way."""
    groups: dict[str, list[PEState]] = {}
    for state in states:
        lines = _summary(state).splitlines()
        # Messages start with the number of the PE that speaks, which says nothing here.
        text = re.sub(rf"\bPE {state.pe}: ", "", lines[0], count=1)
        groups.setdefault(text, []).append(state)
    return [f"pypgas run: {_names(group)} {text}" for text, group in groups.items()]


def _names(states: list[PEState]) -> str:
    numbers = [s.pe for s in states]
    if len(numbers) == 1:
        return f"PE {numbers[0]}"
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"PEs {numbers[0]} to {numbers[-1]} each"
    return "PEs " + ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]} each"


def format_places(states: list[PEState]) -> str:
    """Where each PE was when it was interrupted: lines of text."""
    groups: dict[str, list[PEState]] = {}
    for state in states:
        where = (state.report or {}).get("where")
        if where:
            groups.setdefault(f"was at {where}", []).append(state)
    return "".join(f"pypgas run: {_names(group)} {text}\n" for text, group in groups.items())
