# SPDX-License-Identifier: Apache-2.0
"""Puts and gets, with signals too.

In each, ``size`` counts elements and is as many as both arrays have if ``None``; arrays are
taken in memory order and must have one dtype; ``pe`` counts in the team of ``ctx``.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

import pypgas as pg
from pypgas.errors import InvalidTypeError
from pypgas.shmem._enums import CMP, SIGNAL, comparison, signal_op
from pypgas.shmem._memory import free, zeros
from pypgas.shmem._objects import Ctx, resolve_ctx
from pypgas.shmem._operands import (
    Array,
    count,
    flat,
    movable_strided,
    pair,
    same_dtype,
    single,
    strided_count,
)

SigAddr: TypeAlias = npt.NDArray[np.uint64]
_UINT64 = np.dtype(np.uint64)


def put(target: Array, source: Array, pe: int, size: int | None = None, ctx: Ctx | None = None) -> None:
    """Copy local ``source`` to symmetric ``target`` on PE ``pe``.

    Returns when ``source`` may be reused; the data has arrived after :func:`quiet`.
    """
    to, of = pair(target, source, size)
    pg.put(to, of, pe, ctx=resolve_ctx(ctx))


def get(target: Array, source: Array, pe: int, size: int | None = None, ctx: Ctx | None = None) -> None:
    """Copy symmetric ``source`` on PE ``pe`` to local ``target``."""
    to, of = pair(target, source, size)
    pg.get(to, of, pe, ctx=resolve_ctx(ctx))


def put_nbi(target: Array, source: Array, pe: int, size: int | None = None, ctx: Ctx | None = None) -> None:
    """As :func:`put`, but ``source`` may be reused only after :func:`quiet`."""
    to, of = pair(target, source, size)
    pg.put_nbi(to, of, pe, ctx=resolve_ctx(ctx))


def get_nbi(target: Array, source: Array, pe: int, size: int | None = None, ctx: Ctx | None = None) -> None:
    """As :func:`get`, but ``target`` holds the data only after :func:`quiet`."""
    to, of = pair(target, source, size)
    pg.get_nbi(to, of, pe, ctx=resolve_ctx(ctx))


def iput(
    target: Array,
    source: Array,
    pe: int,
    tst: int = 1,
    sst: int = 1,
    size: int | None = None,
    ctx: Ctx | None = None,
) -> None:
    """Copy every ``sst``-th element of ``source`` to every ``tst``-th of ``target`` on ``pe``."""
    to, of, n = _strided(target, source, tst, sst, size)
    pg.iput(to, of, tst, sst, n, pe, ctx=resolve_ctx(ctx))


def iget(
    target: Array,
    source: Array,
    pe: int,
    tst: int = 1,
    sst: int = 1,
    size: int | None = None,
    ctx: Ctx | None = None,
) -> None:
    """Copy every ``sst``-th element of ``source`` on ``pe`` to every ``tst``-th of ``target``."""
    to, of, n = _strided(target, source, tst, sst, size)
    pg.iget(to, of, tst, sst, n, pe, ctx=resolve_ctx(ctx))


def _strided(
    target: object, source: object, tst: int, sst: int, size: int | None
) -> tuple[Array, Array, int]:
    to = flat(target, writable=True)
    of = flat(source)
    same_dtype(to, of)
    n = count(size, min(strided_count(to.size, tst), strided_count(of.size, sst)))
    return movable_strided(to), movable_strided(of), n


def new_signal() -> SigAddr:
    """Return a new signal, a symmetric uint64 array of one element. Collective over all PEs."""
    return zeros(1, np.uint64)


def del_signal(signal: SigAddr) -> None:
    """Free a signal. Collective over all PEs."""
    free(_signal(signal))


def put_signal(
    target: Array,
    source: Array,
    pe: int,
    signal: SigAddr,
    value: int,
    sigop: SIGNAL,
    size: int | None = None,
    ctx: Ctx | None = None,
) -> None:
    """Put, then set ``signal`` on ``pe`` to ``value`` or add it. Who sees the signal sees the data.

    Args:
        target: symmetric array to be written on ``pe``.
        source: local array to be copied.
        pe: the other PE.
        signal: the signal, from :func:`new_signal`.
        value: value for the signal.
        sigop: ``SIGNAL_SET`` or ``SIGNAL_ADD``.
        size: number of elements.
        ctx: the context; the default one if ``None``.
    """
    to, of = pair(target, source, size)
    pg.put_signal(to, of, _signal(signal), value, pe, op=signal_op(sigop), ctx=resolve_ctx(ctx))


def put_signal_nbi(
    target: Array,
    source: Array,
    pe: int,
    signal: SigAddr,
    value: int,
    sigop: SIGNAL,
    size: int | None = None,
    ctx: Ctx | None = None,
) -> None:
    """As :func:`put_signal`, but ``source`` may be reused only after :func:`quiet`."""
    to, of = pair(target, source, size)
    pg.put_signal_nbi(to, of, _signal(signal), value, pe, op=signal_op(sigop), ctx=resolve_ctx(ctx))


def signal_fetch(signal: SigAddr) -> int:
    """Return the value of this PE's ``signal``."""
    return int(pg.signal_fetch(_signal(signal)))


def signal_wait_until(signal: SigAddr, cmp: CMP | str, value: int) -> int:
    """Wait until this PE's ``signal`` compares to ``value`` as asked; return what it was then."""
    return int(pg.signal_wait_until(_signal(signal), comparison(cmp), value))


def _signal(signal: object) -> SigAddr:
    one = single(signal)
    if one.dtype != _UINT64:
        raise InvalidTypeError(
            f"PE {pg.my_pe()}: a signal is a uint64 array from new_signal(), not {one.dtype}"
        )
    return one
