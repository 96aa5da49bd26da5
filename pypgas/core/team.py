# SPDX-License-Identifier: Apache-2.0
"""The team object. What makes new teams is in `pypgas.ops.teams`."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .. import _native

__all__ = ["Team"]


class Team(_native.TeamBase):
    """An ordered group of PEs, this one among them. Numbers in a team count from 0.

    Made by `split_strided`, `split_2d` and `split`; PEs that are not members hold ``None`` instead. ``TEAM_WORLD``,
    ``TEAM_SHARED`` and ``TEAM_NODE`` exist while the runtime is live.
    """

    # Not slots: the base is a C structure, and the methods of pypgas.ops.teams are attached by subclassing there.
    name: str

    def __new__(cls, number: int, pes: tuple[int, ...], name: str) -> Team:
        """Make a team object; collective in effect, so left to the library."""
        self = super().__new__(cls, number, pes)
        self.name = name
        return self

    def __len__(self) -> int:
        return len(self.pes)

    def split_strided(self, start: int, stride: int, size: int) -> Team | None:
        """Return the team of ``size`` PEs ``start, start + stride, …`` of this one; ``None`` on all others.

        Collective over this team. A negative stride reverses the order; a stride of 0 needs ``size`` 1.

        Raises:
            InvalidValueError: the triplet leaves the team; on every PE, with no team made.
            ResourceLimitError: ``max_teams`` teams exist already.
        """
        return _operations().split_strided(self, start, stride, size)

    def split_2d(self, xrange: int) -> tuple[Team, Team]:
        """Return the teams of this PE's row and column: PE ``p`` stands at ``(p % xrange, p // xrange)``.

        Collective over this team. The x-team holds the PEs of the same row, the y-team those of the same column.

        Raises:
            InvalidValueError: ``xrange`` is below 1.
            ResourceLimitError: ``max_teams`` teams exist already.
        """
        return _operations().split_2d(self, xrange)

    def split(self, color: int | None, key: int = 0) -> Team | None:
        """Return the team of the PEs that gave the same color, ordered by key, then by number here.

        Collective over this team. ``None`` as color: this PE is in no new team and gets ``None``.

        Raises:
            ResourceLimitError: ``max_teams`` teams exist already.
        """
        return _operations().split(self, color, key)

    def translate_pe(self, pe: int, other: Team) -> int | None:
        """Return the number in ``other`` of this team's PE ``pe``; ``None`` if it is not a member there.

        Raises:
            InvalidPEError: ``pe`` is not in this team.
        """
        return _operations().translate_pe(self, pe, other)

    def destroy(self) -> None:
        """End the team (collective over it). Destroying it again does nothing.

        Raises:
            InvalidValueError: it is one of the predefined teams.
        """
        _operations().destroy(self)

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None and self.alive:
            self.destroy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a Team can't be pickled: it is part of this process's runtime")

    def __repr__(self) -> str:
        return f"<pypgas.Team {self.name} of {len(self.pes)} PEs{'' if self.alive else ', ended'}>"


def _operations() -> Any:
    from . import splitting

    return splitting
