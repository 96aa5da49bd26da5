# SPDX-License-Identifier: Apache-2.0
"""The bootstrap of a job of one PE. It needs no MPI library."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["SingleBootstrap"]

T = TypeVar("T")


class SingleBootstrap:
    """A group of one process, see `pypgas.bootstrap.base.Bootstrap`."""

    name = "single"
    rank = 0
    size = 1

    def allgather(self, obj: T) -> list[T]:
        """Return ``[obj]``."""
        return [obj]

    def bcast(self, obj: T, root: int = 0) -> T:
        """Return ``obj``; ``root`` can only be 0."""
        if root != 0:
            raise ValueError(f"root {root} in a group of one process")
        return obj

    def barrier(self) -> None:
        """Return at once."""

    def finalize(self) -> None:
        """Do nothing: there is nothing to release."""
