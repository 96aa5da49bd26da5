# SPDX-License-Identifier: Apache-2.0
"""What the runtime needs from whatever brings its PEs together."""

from __future__ import annotations

from typing import Protocol, TypeVar

__all__ = ["Bootstrap"]

T = TypeVar("T")


class Bootstrap(Protocol):
    """A group of processes that can exchange Python objects while a job starts and ends.

    Every method is collective over the group, and every object passed must be picklable.
    Nothing on a fast path goes through here.

    Attributes:
        name: ``"mpi"`` or ``"single"``.
        rank: Number of this process, the PE number of the job.
        size: Number of processes.
    """

    @property
    def name(self) -> str: ...

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def allgather(self, obj: T) -> list[T]:
        """Return the objects of all processes in rank order."""

    def bcast(self, obj: T, root: int = 0) -> T:
        """Return the object that process ``root`` passed."""

    def barrier(self) -> None:
        """Wait until every process has called this."""

    def finalize(self) -> None:
        """Release the group. Calling it again does nothing."""
