# SPDX-License-Identifier: Apache-2.0
"""The method: every library in turn, seven times, in the same processes; the median of the ratios counts.

Other jobs on the machine slow a stretch of time down, not a library. Trials of the libraries therefore alternate,
ours, a peer's, ours, a peer's, and each trial of a peer is divided by the trial of ours beside it.
"""

from __future__ import annotations

import dataclasses
import statistics
import timeit
from collections.abc import Callable, Sequence

import pypgas as pg

from .operations import Code, Operation, Roles, Side

__all__ = ["Measurement", "interleave", "measure", "ratio"]

_MOST_ROUNDS = 1 << 20


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One operation at one size.

    Attributes:
        operation: Its name.
        nbytes: Its size, 0 where it has none.
        messages: Transfers in a round.
        seconds: For each side, the time of a round in each trial, in seconds.
        rounds: For each side, how many rounds a trial had.
        statements: For each side, what a round was on PE 0.
    """

    operation: str
    nbytes: int
    messages: int
    seconds: dict[str, list[float]]
    rounds: dict[str, int]
    statements: dict[str, str]

    def median(self, side: str) -> float:
        """Median time of a round, in seconds."""
        return statistics.median(self.seconds[side])

    def ratio(self, side: str) -> float:
        """Median over the trials of pypgas's time over that side's."""
        return ratio(self.seconds["pypgas"], self.seconds[side])

    def bandwidth(self, side: str) -> float:
        """Bytes per second that one transfer of a round moves, by the median time."""
        return self.nbytes * self.messages / self.median(side)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios of trials that were made one after the other."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def interleave(sides: dict[str, Callable[[], float]], trials: int) -> dict[str, list[float]]:
    """Run each side once in each of ``trials`` trials, in turn; returns the results of each."""
    results: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(trials):
        for name, run in sides.items():
            results[name].append(run())
    return results


def _timer(operation: Operation, code: Code) -> timeit.Timer | None:
    """The loop that this PE runs, ``None`` if it rests."""
    me = pg.my_pe()
    statement = code.statement
    if operation.roles is Roles.ORIGIN and me != 0:
        return None
    if operation.roles is Roles.PAIR:
        if me > 1:
            return None
        if me == 1 and code.partner is not None:
            statement = code.partner
    return timeit.Timer(statement, globals=code.names)


def _run(side: Side, timer: timeit.Timer | None, rounds: int) -> float:
    """Time of a round on this PE, 0 if it rests (collective)."""
    side.settle()
    taken = 0.0
    if timer is not None:
        timer.timeit(1)  # brings those that take part into step, and what they use into the caches
        taken = timer.timeit(rounds) / rounds
    side.settle()
    return taken


def _from_first(value: float) -> float:
    return float(pg.broadcast(float(value)))


def _rounds(side: Side, timer: timeit.Timer | None, budget: float) -> int:
    """Rounds that take about ``budget`` seconds, the same on every PE (collective)."""
    rounds = 1
    while True:
        taken = _from_first(_run(side, timer, rounds)) * rounds
        if taken >= budget / 4 or rounds >= _MOST_ROUNDS:
            return max(1, min(_MOST_ROUNDS, round(rounds * budget / max(taken, 1e-9))))
        rounds *= min(10, max(2, int(budget / 2 / max(taken, 1e-9))))


def measure(
    operation: Operation, nbytes: int, sides: Sequence[Side], trials: int, budget: float
) -> Measurement:
    """Measure one operation at one size on all sides that have it (collective).

    Args:
        operation: What to measure.
        nbytes: Its size in bytes, 0 where it has none.
        sides: The libraries, pypgas first.
        trials: How often each is timed.
        budget: Seconds that one trial of one side should take.

    Returns:
        PE 0's times; on the other PEs those have no meaning.
    """
    timers: dict[str, timeit.Timer | None] = {}
    statements: dict[str, str] = {}
    taking_part: dict[str, Side] = {}
    for side in sides:
        code = side.prepare(operation, nbytes)
        if code is not None:
            taking_part[side.name] = side
            timers[side.name] = _timer(operation, code)
            statements[side.name] = code.statement
    rounds = {name: _rounds(side, timers[name], budget) for name, side in taking_part.items()}

    def trial(name: str) -> Callable[[], float]:
        return lambda: _run(taking_part[name], timers[name], rounds[name])

    seconds = interleave({name: trial(name) for name in taking_part}, trials)
    for side in taking_part.values():
        side.verify(operation, nbytes)
        side.settle()
        side.release()
    return Measurement(operation.name, nbytes, operation.messages, seconds, rounds, statements)
