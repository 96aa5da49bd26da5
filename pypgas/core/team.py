# SPDX-License-Identifier: Apache-2.0
"""Teams: ordered groups of PEs, and how new ones are made.

A team needs a number that is free on all its PEs: it selects their synchronisation areas. Teams without a
common PE may share a number, so all teams of one split take the same.
"""

from __future__ import annotations

import operator
import struct
from types import TracebackType
from typing import NoReturn

import numpy as np

from .. import _native
from ..errors import InvalidPEError, InvalidTypeError, InvalidValueError, ResourceLimitError

__all__ = ["Team", "predefined"]

_PREDEFINED = 3
_MEMBER = struct.Struct("<qqq")  # in a new team?, color, key

_used: set[int] = set()  # numbers of the teams that exist in the live runtime
_limit = 0


def predefined(limit: int, everyone: tuple[int, ...], here: tuple[int, ...]) -> tuple[Team, Team, Team]:
    """Return the world, shared and node teams of a new runtime that allows ``limit`` teams at a time."""
    global _limit
    _limit = limit
    _used.clear()
    _used.update(range(_PREDEFINED))
    return Team(0, everyone, "TEAM_WORLD"), Team(1, here, "TEAM_SHARED"), Team(2, here, "TEAM_NODE")


class Team(_native.TeamBase):
    """An ordered group of PEs, this one among them. Numbers in a team count from 0.

    Made by `split_strided`, `split_2d` and `split`; PEs that are not members hold ``None`` instead. ``TEAM_WORLD``,
    ``TEAM_SHARED`` and ``TEAM_NODE`` exist while the runtime is live.
    """

    name: str

    def __new__(cls, number: int, pes: tuple[int, ...], name: str) -> Team:
        """Make a team object; collective in effect, so left to the library."""
        self: Team = super().__new__(cls, number, pes)
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
        return _split_strided(self, start, stride, size)

    def split_2d(self, xrange: int) -> tuple[Team, Team]:
        """Return the teams of this PE's row and column: PE ``p`` stands at ``(p % xrange, p // xrange)``.

        Collective over this team. The x-team holds the PEs of the same row, the y-team those of the same column.

        Raises:
            InvalidValueError: ``xrange`` is below 1.
            ResourceLimitError: ``max_teams`` teams exist already.
        """
        return _split_2d(self, xrange)

    def split(self, color: int | None, key: int = 0) -> Team | None:
        """Return the team of the PEs that gave the same color, ordered by key, then by number here.

        Collective over this team. ``None`` as color: this PE is in no new team and gets ``None``.

        Raises:
            ResourceLimitError: ``max_teams`` teams exist already.
        """
        return _split(self, color, key)

    def translate_pe(self, pe: int, other: Team) -> int | None:
        """Return the number in ``other`` of this team's PE ``pe``; ``None`` if it is not a member there.

        Raises:
            InvalidPEError: ``pe`` is not in this team.
        """
        return _translate_pe(self, pe, other)

    def destroy(self) -> None:
        """End the team (collective over it). Destroying it again does nothing.

        Raises:
            InvalidValueError: it is one of the predefined teams.
        """
        _destroy(self)

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None and self.alive:
            self.destroy()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InvalidTypeError("a Team can't be pickled: it is part of this process's runtime")

    def __repr__(self) -> str:
        return f"<pypgas.Team {self.name} of {len(self.pes)} PEs{'' if self.alive else ', ended'}>"


def _split_strided(parent: Team, start: int, stride: int, size: int) -> Team | None:
    """See `Team.split_strided`."""
    n = parent.n_pes
    here = f"PE {_native.my_pe()}: split_strided"
    start, stride, size = (
        _integer(here, *item) for item in (("start", start), ("stride", stride), ("size", size))
    )
    last = start + (size - 1) * stride
    if size < 1 or not 0 <= start < n or not 0 <= last < n or (stride == 0 and size != 1):
        raise InvalidValueError(
            f"{here}: start = {start}, stride = {stride}, size = {size} is not a set of PEs of a team of {n}: "
            f"start and the last PE ({last}) must be in 0..{n - 1}, and a stride of 0 needs size 1"
        )
    members = [start + i * stride for i in range(size)]
    # The triplet is part of the call's signature, so PEs that gave different ones raise.
    _native.agree("split_strided", "split", parent, hash((start, stride, size)) & ((1 << 62) - 1), 0, None)
    me = parent.my_pe
    color, key = (0, members.index(me)) if me in members else (None, 0)
    return _form(parent, "split_strided", color, key, f"{parent.name}[{start}:{stride}:{size}]")


def _split_2d(parent: Team, xrange: int) -> tuple[Team, Team]:
    """See `Team.split_2d`."""
    here = f"PE {_native.my_pe()}: split_2d"
    xrange = _integer(here, "xrange", xrange)
    if xrange < 1:
        raise InvalidValueError(f"{here}: xrange = {xrange} must be at least 1")
    xrange = min(xrange, parent.n_pes)
    _native.agree("split_2d", "split", parent, xrange, 1, None)
    y, x = divmod(parent.my_pe, xrange)
    row = _form(parent, "split_2d", y, x, f"{parent.name}.x[{y}]")
    column = _form(parent, "split_2d", x, y, f"{parent.name}.y[{x}]")
    assert row is not None
    assert column is not None
    return row, column


def _split(parent: Team, color: int | None, key: int = 0) -> Team | None:
    """See `Team.split`."""
    here = f"PE {_native.my_pe()}: split"
    if color is not None:
        color = _integer(here, "color", color)
    return _form(parent, "split", color, _integer(here, "key", key), f"{parent.name}.split[{color}]")


def _integer(here: str, name: str, value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidTypeError(f"{here}: {name} = {value!r} is not an integer") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise InvalidValueError(f"{here}: {name} = {number} does not fit in 64 bits")
    return number


def _form(parent: Team, operation: str, color: int | None, key: int, name: str) -> Team | None:
    number = _common_free_number(parent, operation)
    mine = _MEMBER.pack(color is not None, color or 0, key)
    everyone = [
        _MEMBER.unpack(item) for item in _native.exchange_small(operation, "split", parent, 2, mine, None)
    ]
    team: Team | None = None
    if color is not None:
        same = [(k, i) for i, (member, c, k) in enumerate(everyone) if member and c == color]
        world = parent.pes
        team = Team(number, tuple(world[i] for _, i in sorted(same)), name)
        _used.add(number)
    # Nobody may enter the new team's gate before all its members have prepared their part of it.
    _native.agree(operation, "split", parent, 0, 3, None)
    return team


def _common_free_number(parent: Team, operation: str) -> int:
    """The lowest team number free on all PEs of the parent. Teams without a common PE may share a number."""
    limit = _limit
    free = np.ones(limit, np.uint8)
    free[list(_used)] = 0
    common = np.empty_like(free)
    code = _native.operation_code("reduce")
    _native.collective(operation, code, parent, free, common, 0, "and", None, None)
    if not common.any():
        raise ResourceLimitError(
            f"PE {_native.my_pe()}: {operation}: no team number is free on all {parent.n_pes} PEs of {parent.name}: "
            f"{limit} teams may exist at a time, {len(_used)} exist here. Destroy teams that are no longer "
            "used, or raise the setting max_teams (PYPGAS_MAX_TEAMS)"
        )
    return int(common.argmax())


def _translate_pe(team: Team, pe: int, other: Team) -> int | None:
    """See `Team.translate_pe`."""
    here = f"PE {_native.my_pe()}: translate_pe"
    if not isinstance(other, Team):
        raise InvalidTypeError(f"{here}: other = {other!r} is not a Team")
    number, pes = _integer(here, "pe", pe), team.pes
    if not 0 <= number < team.n_pes:
        raise InvalidPEError(f"{here}: pe = {number} is not in 0..{len(pes) - 1}, the PEs of {team.name}")
    other.n_pes  # noqa: B018 - raises if the team has ended
    members = other.pes
    return members.index(pes[number]) if pes[number] in members else None


def _destroy(team: Team) -> None:
    """See `Team.destroy`."""
    _native.check("destroy")
    if team._id < _PREDEFINED:
        raise InvalidValueError(f"PE {_native.my_pe()}: destroy: {team.name} exists as long as the runtime")
    if not team.alive:
        return
    _native.quiet()
    _native.agree("destroy", "barrier", team, 0, 1, None)
    team._end()
    _used.discard(team._id)
