# SPDX-License-Identifier: Apache-2.0
"""Which operations are measured, and what one round of each is."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Protocol

__all__ = ["BATCH", "OPERATIONS", "Code", "Operation", "Roles", "Side", "select"]


BATCH = 16  # puts in a round of put_nbi


class Roles(enum.Enum):
    """Who does what in a round."""

    ORIGIN = "PE 0 acts on its neighbour's memory, the others rest"
    PAIR = "PE 0 and its neighbour answer each other, the others rest"
    ALL = "all PEs take part alike"


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation that `pypgas bench` measures.

    Attributes:
        name: Its name on the command line and in the results.
        roles: Who takes part.
        sized: Whether it is measured over sizes.
        summary: What one round is. Sizes count the bytes that one PE contributes (blocks of ``alltoall`` and
            ``reduce_scatter``: what one PE sends to one other).
        messages: Transfers in a round.
    """

    name: str
    roles: Roles
    sized: bool
    summary: str
    messages: int = 1


@dataclasses.dataclass(frozen=True)
class Code:
    """How one side does a round: statements that are compiled into the timed loop, so that no call is added to them.

    Attributes:
        names: What the statements refer to.
        statement: The round on PE 0, and on all PEs unless ``partner`` is given.
        partner: The round on PE 0's neighbour, where it differs.
    """

    names: dict[str, Any]
    statement: str
    partner: str | None = None


class Side(Protocol):
    """A library that is measured."""

    name: str

    def prepare(self, operation: Operation, nbytes: int) -> Code | None:
        """Return how this side does the operation (collective); ``None`` if it has no such thing."""

    def verify(self, operation: Operation, nbytes: int) -> None:
        """Check, after the rounds, that the data arrived (collective); raises AssertionError."""

    def release(self) -> None:
        """Let go of what `prepare` made (collective)."""

    def settle(self) -> None:
        """Wait for all PEs with little processor time (collective)."""

    def close(self) -> None:
        """Let go of everything (collective)."""

    def versions(self) -> dict[str, str]:
        """Return what this side consists of."""


OPERATIONS: tuple[Operation, ...] = (
    Operation("put", Roles.ORIGIN, True, "a blocking put, completed at the target"),
    Operation("get", Roles.ORIGIN, True, "a blocking get"),
    Operation("put_nbi", Roles.ORIGIN, True, f"{BATCH} puts, completed together", BATCH),
    Operation("p", Roles.ORIGIN, False, "one float64 written, completed at the target"),
    Operation("g", Roles.ORIGIN, False, "one float64 read"),
    Operation("atomic_fetch_add", Roles.ORIGIN, False, "on an int64, the old value returned"),
    Operation("atomic_add", Roles.ORIGIN, False, "on an int64, completed at the target"),
    Operation("atomic_swap", Roles.ORIGIN, False, "on an int64, the old value returned"),
    Operation("atomic_compare_swap", Roles.ORIGIN, False, "on an int64, the old value returned"),
    Operation("atomic_fetch", Roles.ORIGIN, False, "of an int64"),
    Operation("put_signal", Roles.PAIR, True, "ping-pong of data with a signal: the round trip", 2),
    Operation("barrier_all", Roles.ALL, False, "all PEs"),
    Operation("broadcast", Roles.ALL, True, "from PE 0, ordinary arrays"),
    Operation("reduce", Roles.ALL, True, "sum of float64 to every PE, ordinary arrays"),
    Operation("reduce_scatter", Roles.ALL, True, "sum of float64, ordinary arrays"),
    Operation("fcollect", Roles.ALL, True, "ordinary arrays"),
    Operation("alltoall", Roles.ALL, True, "ordinary arrays"),
    Operation("inclusive_scan", Roles.ALL, True, "sum of float64, ordinary arrays"),
)


def select(names: str | None) -> tuple[Operation, ...]:
    """Return the operations of a comma-separated list, all of them for ``None``.

    Raises:
        ValueError: a name is not one of them; the message lists them.
    """
    if names is None:
        return OPERATIONS
    known = {operation.name: operation for operation in OPERATIONS}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise ValueError(f"{', '.join(unknown) or names!r}: no such operation; there are {', '.join(known)}")
    return tuple(known[name] for name in wanted)
