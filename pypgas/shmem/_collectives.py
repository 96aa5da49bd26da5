# SPDX-License-Identifier: Apache-2.0
"""Collective operations over a team, the world if ``None``.

Arrays are taken in memory order; target and source must have one dtype. ``size`` counts the
elements of one PE's contribution (of one block in the all-to-all operations).
"""

from __future__ import annotations

import numpy as np

import pypgas as pg
from pypgas.errors import InvalidValueError
from pypgas.shmem._enums import OP, reduction_name
from pypgas.shmem._objects import Team, member_team, pe_number
from pypgas.shmem._operands import (
    Array,
    count,
    flat,
    has_operations,
    movable,
    movable_strided,
    pair,
    same_dtype,
    strided_count,
)


def barrier_all() -> None:
    """Complete the default context's operations and wait until all PEs have called this."""
    pg.barrier_all()


def sync_all() -> None:
    """Wait until all PEs have called this. Completes local stores only."""
    pg.sync_all()


def sync(team: Team | None = None) -> None:
    """Wait until all PEs of the team have called this. Completes local stores only."""
    pg.sync(member_team(team))


def broadcast(
    target: Array, source: Array, root: int, size: int | None = None, team: Team | None = None
) -> None:
    """Copy ``source`` of PE ``root`` of the team to ``target`` on all its PEs, the root too."""
    members = member_team(team)
    to, of = pair(target, source, size)
    if pe_number(root) == pg.my_pe(members):
        np.copyto(to, of)
    pg.broadcast(to, root, team=members)


def collect(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Concatenate all PEs' ``source`` in ``target``, in team order; ``size`` may differ."""
    to, of = _target_and_source(target, source)
    n = count(size, of.size)
    parts = pg.collect(movable(of[:n]), team=member_team(team))
    room = movable(to)
    if parts.size > room.size:
        raise InvalidValueError(
            f"PE {pg.my_pe()}: the target has {room.nbytes} bytes, the result {parts.nbytes}"
        )
    room[: parts.size] = parts


def fcollect(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Concatenate all PEs' ``source`` in ``target``, in team order; ``size`` must be equal."""
    members = member_team(team)
    to, of = _target_and_source(target, source)
    n = count(size, of.size)
    out = _head(to, n * pg.n_pes(members))
    pg.fcollect(movable(of[:n]), team=members, out=movable(out))


def alltoall(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Send block ``i`` of ``source`` to PE ``i``; put the one from there in block ``i``.

    ``size`` is the number of elements of one block; the arrays are divided evenly if ``None``.
    """
    members = member_team(team)
    to, of = _target_and_source(target, source)
    n = _block(min(to.size, of.size), size, pg.n_pes(members)) * pg.n_pes(members)
    pg.alltoall(movable(of[:n]), team=members, out=movable(to[:n]))


def alltoalls(
    target: Array,
    source: Array,
    tst: int = 1,
    sst: int = 1,
    size: int | None = None,
    team: Team | None = None,
) -> None:
    """As :func:`alltoall`, with elements ``tst`` apart in ``target`` and ``sst`` in ``source``."""
    members = member_team(team)
    to, of = _target_and_source(target, source)
    room = min(strided_count(to.size, tst), strided_count(of.size, sst))
    n = _block(room, size, pg.n_pes(members))
    pg.alltoalls(movable_strided(to), movable_strided(of), tst, sst, n, team=members)


def reduce(
    target: Array,
    source: Array,
    op: OP = OP.SUM,
    size: int | None = None,
    team: Team | None = None,
) -> None:
    """Combine all PEs' ``source`` element by element into ``target`` on all PEs.

    The arrays may be the same one, but must not overlap otherwise.
    """
    name = reduction_name(op)
    members = member_team(team)
    to, of = _target_and_source(target, source)
    n = count(size, min(to.size, of.size))
    to, of = to[:n], of[:n]
    if has_operations(to.dtype):
        pg.reduce(of, op=name, team=members, out=to)
        return
    # The device library has no long double. NumPy has, once the contributions are here.
    parts = np.asarray(pg.fcollect(movable(of), team=members)).view(to.dtype)
    to[...] = _UFUNCS[name].reduce(parts.reshape(pg.n_pes(members), n), axis=0, dtype=to.dtype)


_UFUNCS: dict[str, np.ufunc] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "max": np.maximum,
    "min": np.minimum,
    "sum": np.add,
    "prod": np.multiply,
}


def and_reduce(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Reduce to the bitwise and of the elements. See :func:`reduce`."""
    reduce(target, source, OP.AND, size, team)


def or_reduce(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Reduce to the bitwise or of the elements. See :func:`reduce`."""
    reduce(target, source, OP.OR, size, team)


def xor_reduce(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Reduce to the bitwise exclusive or of the elements. See :func:`reduce`."""
    reduce(target, source, OP.XOR, size, team)


def max_reduce(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Reduce to the largest of the elements. See :func:`reduce`."""
    reduce(target, source, OP.MAX, size, team)


def min_reduce(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Reduce to the smallest of the elements. See :func:`reduce`."""
    reduce(target, source, OP.MIN, size, team)


def sum_reduce(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Reduce to the sum of the elements. See :func:`reduce`."""
    reduce(target, source, OP.SUM, size, team)


def prod_reduce(target: Array, source: Array, size: int | None = None, team: Team | None = None) -> None:
    """Reduce to the product of the elements. See :func:`reduce`."""
    reduce(target, source, OP.PROD, size, team)


def _target_and_source(target: object, source: object) -> tuple[Array, Array]:
    to = flat(target, writable=True)
    of = flat(source)
    same_dtype(to, of)
    return to, of


def _head(target: Array, n: int) -> Array:
    """Return the first ``n`` elements of the target."""
    if n > target.size:
        raise InvalidValueError(f"PE {pg.my_pe()}: the target has {target.size} elements, the result {n}")
    return target[:n]


def _block(room: int, size: int | None, n_pes: int) -> int:
    """Return the elements per block when ``room`` elements hold one block for each PE."""
    if size is None:
        block, rest = divmod(room, n_pes)
        if rest:
            raise InvalidValueError(f"PE {pg.my_pe()}: {room} elements cannot be divided among {n_pes} PEs")
        return block
    return count(size, room // n_pes)
