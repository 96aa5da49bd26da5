# SPDX-License-Identifier: Apache-2.0
"""Atomic operations on one element of symmetric memory.

Each takes a symmetric array of one element and the PE whose instance is meant; values are
converted to its dtype; results are Python numbers. The ``_nbi`` forms deliver the value from
before into the local one-element array ``fetch``, which holds it after :func:`quiet`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

import pypgas as pg
from pypgas.shmem._enums import AMO, amo_name
from pypgas.shmem._objects import Ctx, resolve_ctx
from pypgas.shmem._operands import Array, same_dtype, single

Number: TypeAlias = int | float | complex | np.number


def _fetch_operands(fetch: object, target: object) -> tuple[Array, Array]:
    """Check both operands of an ``_nbi`` form before anything is changed."""
    into = single(fetch, writable=True)
    element = single(target)
    same_dtype(into, element)
    return into, element


def _number(value: Any) -> Number:
    """Return a NumPy scalar as a Python number."""
    number: Number = value.item()
    return number


def atomic_fetch(source: Array, pe: int, ctx: Ctx | None = None) -> Number:
    """Return the value of ``source`` on ``pe``."""
    return _number(pg.atomic_fetch(single(source), pe, ctx=resolve_ctx(ctx)))


def atomic_fetch_nbi(fetch: Array, source: Array, pe: int, ctx: Ctx | None = None) -> None:
    """Fetch the value of ``source`` on ``pe`` into ``fetch``."""
    into, element = _fetch_operands(fetch, source)
    into[0] = pg.atomic_fetch(element, pe, ctx=resolve_ctx(ctx))


def atomic_set(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Set ``target`` on ``pe`` to ``value``."""
    pg.atomic_set(single(target, writable=True), value, pe, ctx=resolve_ctx(ctx))


def atomic_swap(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> Number:
    """Set ``target`` on ``pe`` to ``value`` and return what it was."""
    element = single(target, writable=True)
    return _number(pg.atomic_swap(element, value, pe, ctx=resolve_ctx(ctx)))


def atomic_swap_nbi(fetch: Array, target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Set ``target`` on ``pe`` to ``value`` and deliver what it was."""
    into, element = _fetch_operands(fetch, target)
    into[0] = pg.atomic_swap(element, value, pe, ctx=resolve_ctx(ctx))


def atomic_compare_swap(
    target: Array, cond: Number, value: Number, pe: int, ctx: Ctx | None = None
) -> Number:
    """Set ``target`` on ``pe`` to ``value`` if it equals ``cond``; return what it was."""
    element = single(target, writable=True)
    return _number(pg.atomic_compare_swap(element, cond, value, pe, ctx=resolve_ctx(ctx)))


def atomic_compare_swap_nbi(
    fetch: Array, target: Array, cond: Number, value: Number, pe: int, ctx: Ctx | None = None
) -> None:
    """Set ``target`` on ``pe`` to ``value`` if it equals ``cond``; deliver what it was."""
    into, element = _fetch_operands(fetch, target)
    into[0] = pg.atomic_compare_swap(element, cond, value, pe, ctx=resolve_ctx(ctx))


def atomic_inc(target: Array, pe: int, ctx: Ctx | None = None) -> None:
    """Add 1 to ``target`` on ``pe``."""
    pg.atomic_inc(single(target, writable=True), pe, ctx=resolve_ctx(ctx))


def atomic_fetch_inc(target: Array, pe: int, ctx: Ctx | None = None) -> Number:
    """Add 1 to ``target`` on ``pe`` and return what it was."""
    return _number(pg.atomic_fetch_inc(single(target, writable=True), pe, ctx=resolve_ctx(ctx)))


def atomic_fetch_inc_nbi(fetch: Array, target: Array, pe: int, ctx: Ctx | None = None) -> None:
    """Add 1 to ``target`` on ``pe`` and deliver what it was."""
    into, element = _fetch_operands(fetch, target)
    into[0] = pg.atomic_fetch_inc(element, pe, ctx=resolve_ctx(ctx))


def atomic_add(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Add ``value`` to ``target`` on ``pe``."""
    pg.atomic_add(single(target, writable=True), value, pe, ctx=resolve_ctx(ctx))


def atomic_fetch_add(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> Number:
    """Add ``value`` to ``target`` on ``pe`` and return what it was."""
    element = single(target, writable=True)
    return _number(pg.atomic_fetch_add(element, value, pe, ctx=resolve_ctx(ctx)))


def atomic_fetch_add_nbi(fetch: Array, target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Add ``value`` to ``target`` on ``pe`` and deliver what it was."""
    into, element = _fetch_operands(fetch, target)
    into[0] = pg.atomic_fetch_add(element, value, pe, ctx=resolve_ctx(ctx))


def atomic_and(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Bitwise-and ``value`` into ``target`` on ``pe``."""
    pg.atomic_and(single(target, writable=True), value, pe, ctx=resolve_ctx(ctx))


def atomic_fetch_and(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> Number:
    """Bitwise-and ``value`` into ``target`` on ``pe`` and return what it was."""
    element = single(target, writable=True)
    return _number(pg.atomic_fetch_and(element, value, pe, ctx=resolve_ctx(ctx)))


def atomic_fetch_and_nbi(fetch: Array, target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Bitwise-and ``value`` into ``target`` on ``pe`` and deliver what it was."""
    into, element = _fetch_operands(fetch, target)
    into[0] = pg.atomic_fetch_and(element, value, pe, ctx=resolve_ctx(ctx))


def atomic_or(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Bitwise-or ``value`` into ``target`` on ``pe``."""
    pg.atomic_or(single(target, writable=True), value, pe, ctx=resolve_ctx(ctx))


def atomic_fetch_or(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> Number:
    """Bitwise-or ``value`` into ``target`` on ``pe`` and return what it was."""
    element = single(target, writable=True)
    return _number(pg.atomic_fetch_or(element, value, pe, ctx=resolve_ctx(ctx)))


def atomic_fetch_or_nbi(fetch: Array, target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Bitwise-or ``value`` into ``target`` on ``pe`` and deliver what it was."""
    into, element = _fetch_operands(fetch, target)
    into[0] = pg.atomic_fetch_or(element, value, pe, ctx=resolve_ctx(ctx))


def atomic_xor(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Bitwise-xor ``value`` into ``target`` on ``pe``."""
    pg.atomic_xor(single(target, writable=True), value, pe, ctx=resolve_ctx(ctx))


def atomic_fetch_xor(target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> Number:
    """Bitwise-xor ``value`` into ``target`` on ``pe`` and return what it was."""
    element = single(target, writable=True)
    return _number(pg.atomic_fetch_xor(element, value, pe, ctx=resolve_ctx(ctx)))


def atomic_fetch_xor_nbi(fetch: Array, target: Array, value: Number, pe: int, ctx: Ctx | None = None) -> None:
    """Bitwise-xor ``value`` into ``target`` on ``pe`` and deliver what it was."""
    into, element = _fetch_operands(fetch, target)
    into[0] = pg.atomic_fetch_xor(element, value, pe, ctx=resolve_ctx(ctx))


def atomic_op(target: Array, value: Number | None, op: AMO, pe: int, ctx: Ctx | None = None) -> None:
    """Apply ``op`` with ``value`` to ``target`` on ``pe``. ``INC`` ignores the value."""
    name = amo_name(op)
    operands = () if name == "inc" else (value,)
    getattr(pg, f"atomic_{name}")(single(target, writable=True), *operands, pe, ctx=resolve_ctx(ctx))


def atomic_fetch_op(target: Array, value: Number | None, op: AMO, pe: int, ctx: Ctx | None = None) -> Number:
    """Apply ``op`` with ``value`` to ``target`` on ``pe`` and return what it was."""
    return _number(_fetch_op(single(target, writable=True), value, op, pe, ctx))


def atomic_fetch_op_nbi(
    fetch: Array, target: Array, value: Number | None, op: AMO, pe: int, ctx: Ctx | None = None
) -> None:
    """Apply ``op`` with ``value`` to ``target`` on ``pe`` and deliver what it was."""
    into, element = _fetch_operands(fetch, target)
    into[0] = _fetch_op(element, value, op, pe, ctx)


def _fetch_op(element: Array, value: Number | None, op: AMO, pe: int, ctx: Ctx | None) -> Any:
    name = amo_name(op)
    operands = () if name == "inc" else (value,)
    function = getattr(pg, "atomic_swap" if name == "set" else f"atomic_fetch_{name}")
    return function(element, *operands, pe, ctx=resolve_ctx(ctx))
