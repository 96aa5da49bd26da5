# SPDX-License-Identifier: Apache-2.0
"""Making and ending teams: agreeing on members and on a synchronisation area they all have free."""

from __future__ import annotations

import operator
import struct

import numpy as np

from .. import _native
from ..errors import InvalidPEError, InvalidTypeError, InvalidValueError, ResourceLimitError
from . import runtime
from .team import Team

__all__ = ["destroy", "split", "split_2d", "split_strided", "translate_pe"]

_PREDEFINED = 3
_MEMBER = struct.Struct("<qqq")  # in a new team?, color, key


def split_strided(parent: Team, start: int, stride: int, size: int) -> Team | None:
    """See `Team.split_strided`."""
    n = parent.n_pes
    here = f"PE {_native.my_pe()}: split_strided"
    start, stride, size = (_integer(here, *item) for item in (("start", start), ("stride", stride), ("size", size)))
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
    return _split(parent, "split_strided", color, key, f"{parent.name}[{start}:{stride}:{size}]")


def split_2d(parent: Team, xrange: int) -> tuple[Team, Team]:
    """See `Team.split_2d`."""
    here = f"PE {_native.my_pe()}: split_2d"
    xrange = _integer(here, "xrange", xrange)
    if xrange < 1:
        raise InvalidValueError(f"{here}: xrange = {xrange} must be at least 1")
    xrange = min(xrange, parent.n_pes)
    _native.agree("split_2d", "split", parent, xrange, 1, None)
    y, x = divmod(parent.my_pe, xrange)
    row = _split(parent, "split_2d", y, x, f"{parent.name}.x[{y}]")
    column = _split(parent, "split_2d", x, y, f"{parent.name}.y[{x}]")
    assert row is not None and column is not None
    return row, column


def split(parent: Team, color: int | None, key: int = 0) -> Team | None:
    """See `Team.split`."""
    here = f"PE {_native.my_pe()}: split"
    if color is not None:
        color = _integer(here, "color", color)
    return _split(parent, "split", color, _integer(here, "key", key), f"{parent.name}.split[{color}]")


def _integer(here: str, name: str, value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidTypeError(f"{here}: {name} = {value!r} is not an integer") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise InvalidValueError(f"{here}: {name} = {number} does not fit in 64 bits")
    return number


def _split(parent: Team, operation: str, color: int | None, key: int, name: str) -> Team | None:
    owner = runtime.current_runtime(operation)
    number = _common_free_number(owner, parent, operation)
    mine = _MEMBER.pack(color is not None, color or 0, key)
    everyone = [_MEMBER.unpack(item) for item in _native.exchange_small(operation, "split", parent, 2, mine, None)]
    team: Team | None = None
    if color is not None:
        same = [(k, i) for i, (member, c, k) in enumerate(everyone) if member and c == color]
        world = parent.pes
        team = Team(number, tuple(world[i] for _, i in sorted(same)), name)
        owner.used_teams.add(number)
    # Nobody may enter the new team's gate before all its members have prepared their part of it.
    _native.agree(operation, "split", parent, 0, 3, None)
    return team


def _common_free_number(owner: runtime.Runtime, parent: Team, operation: str) -> int:
    """The lowest team number free on all PEs of the parent. Teams without a common PE may share a number."""
    limit = owner.settings.max_teams
    free = np.ones(limit, np.uint8)
    free[list(owner.used_teams)] = 0
    common = np.empty_like(free)
    code = _native.operation_code("reduce")
    _native.collective(operation, code, parent, free, common, 0, "and", None)
    if not common.any():
        raise ResourceLimitError(
            f"PE {_native.my_pe()}: {operation}: no team number is free on all {parent.n_pes} PEs of {parent.name}: "
            f"{limit} teams may exist at a time, {len(owner.used_teams)} exist here. Destroy teams that are no longer "
            "used, or raise the setting max_teams (PYPGAS_MAX_TEAMS)"
        )
    return int(common.argmax())


def translate_pe(team: Team, pe: int, other: Team) -> int | None:
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


def destroy(team: Team) -> None:
    """See `Team.destroy`."""
    owner = runtime.current_runtime("destroy")
    if team._id < _PREDEFINED:
        raise InvalidValueError(f"PE {_native.my_pe()}: destroy: {team.name} exists as long as the runtime")
    if not team.alive:
        return
    _native.quiet()
    _native.agree("destroy", "barrier", team, 0, 1, None)
    team._end()
    owner.used_teams.discard(team._id)
