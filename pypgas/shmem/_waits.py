# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PT028  (functions named test_* here are no tests)
"""Waiting for, and testing, this PE's instances of symmetric variables.

``cmp`` is a :class:`CMP` or a string such as ``">="``; comparisons are made in the variable's
own type. ``status`` marks variables to be left out with nonzero values. With no variable left,
``all`` is satisfied, ``any`` returns ``None`` and ``some`` an empty list, at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import pypgas as pg
from pypgas.errors import InvalidValueError
from pypgas.shmem._atomics import Number
from pypgas.shmem._enums import CMP, comparison
from pypgas.shmem._operands import Array, flat, single


def _where(ivars: Array, status: Sequence[int] | Array | None) -> npt.NDArray[np.bool_] | None:
    """Turn a mask of what to leave out into one of what to look at."""
    if status is None:
        return None
    mask = np.asarray(status).reshape(-1)
    if mask.size < ivars.size:
        raise InvalidValueError(
            f"PE {pg.my_pe()}: status has {mask.size} elements for {ivars.size} variables"
        )
    included: npt.NDArray[np.bool_] = mask[: ivars.size] == 0
    return included


def _values(ivars: Array, values: Sequence[Number] | Array) -> Array:
    vector = np.asarray(values, dtype=ivars.dtype).reshape(-1)
    if vector.size < ivars.size:
        raise InvalidValueError(
            f"PE {pg.my_pe()}: values has {vector.size} elements for {ivars.size} variables"
        )
    return vector[: ivars.size]


def _indices(found: Any) -> list[int]:
    return [int(index) for index in found]


def wait_until(ivar: Array, cmp: CMP | str, value: Number) -> None:
    """Wait until the one element of ``ivar`` compares to ``value`` as asked."""
    pg.wait_until(single(ivar), comparison(cmp), value)


def test(ivar: Array, cmp: CMP | str, value: Number) -> bool:
    """Return whether the one element of ``ivar`` compares to ``value`` as asked."""
    return pg.test(single(ivar), comparison(cmp), value)


def wait_until_all(
    ivars: Array,
    cmp: CMP | str,
    value: Number,
    status: Sequence[int] | Array | None = None,
) -> None:
    """Wait until all of ``ivars`` compare to ``value``."""
    them = flat(ivars)
    pg.wait_until_all(them, comparison(cmp), value, where=_where(them, status))


def wait_until_all_vector(
    ivars: Array,
    cmp: CMP | str,
    values: Sequence[Number] | Array,
    status: Sequence[int] | Array | None = None,
) -> None:
    """Wait until all of ``ivars`` compare to their own of ``values``."""
    them = flat(ivars)
    pg.wait_until_all(them, comparison(cmp), _values(them, values), where=_where(them, status))


def test_all(
    ivars: Array,
    cmp: CMP | str,
    value: Number,
    status: Sequence[int] | Array | None = None,
) -> bool:
    """Return whether all of ``ivars`` compare to ``value``."""
    them = flat(ivars)
    return pg.test_all(them, comparison(cmp), value, where=_where(them, status))


def test_all_vector(
    ivars: Array,
    cmp: CMP | str,
    values: Sequence[Number] | Array,
    status: Sequence[int] | Array | None = None,
) -> bool:
    """Return whether all of ``ivars`` compare to their own of ``values``."""
    them = flat(ivars)
    return pg.test_all(them, comparison(cmp), _values(them, values), where=_where(them, status))


def wait_until_any(
    ivars: Array,
    cmp: CMP | str,
    value: Number,
    status: Sequence[int] | Array | None = None,
) -> int | None:
    """Wait until one of ``ivars`` compares to ``value``; return its index."""
    them = flat(ivars)
    return pg.wait_until_any(them, comparison(cmp), value, where=_where(them, status))


def wait_until_any_vector(
    ivars: Array,
    cmp: CMP | str,
    values: Sequence[Number] | Array,
    status: Sequence[int] | Array | None = None,
) -> int | None:
    """Wait until one of ``ivars`` compares to its own of ``values``; return its index."""
    them = flat(ivars)
    return pg.wait_until_any(them, comparison(cmp), _values(them, values), where=_where(them, status))


def test_any(
    ivars: Array,
    cmp: CMP | str,
    value: Number,
    status: Sequence[int] | Array | None = None,
) -> int | None:
    """Return the index of one of ``ivars`` that compares to ``value``."""
    them = flat(ivars)
    return pg.test_any(them, comparison(cmp), value, where=_where(them, status))


def test_any_vector(
    ivars: Array,
    cmp: CMP | str,
    values: Sequence[Number] | Array,
    status: Sequence[int] | Array | None = None,
) -> int | None:
    """Return the index of one of ``ivars`` that compares to its own of ``values``."""
    them = flat(ivars)
    return pg.test_any(them, comparison(cmp), _values(them, values), where=_where(them, status))


def wait_until_some(
    ivars: Array,
    cmp: CMP | str,
    value: Number,
    status: Sequence[int] | Array | None = None,
) -> list[int]:
    """Wait until one of ``ivars`` or more compare to ``value``; return all their indices."""
    them = flat(ivars)
    return _indices(pg.wait_until_some(them, comparison(cmp), value, where=_where(them, status)))


def wait_until_some_vector(
    ivars: Array,
    cmp: CMP | str,
    values: Sequence[Number] | Array,
    status: Sequence[int] | Array | None = None,
) -> list[int]:
    """Wait until one of ``ivars`` or more compare to their own of ``values``; return all their indices."""
    them = flat(ivars)
    return _indices(
        pg.wait_until_some(them, comparison(cmp), _values(them, values), where=_where(them, status))
    )


def test_some(
    ivars: Array,
    cmp: CMP | str,
    value: Number,
    status: Sequence[int] | Array | None = None,
) -> list[int]:
    """Return the indices of all of ``ivars`` that compare to ``value``."""
    them = flat(ivars)
    return _indices(pg.test_some(them, comparison(cmp), value, where=_where(them, status)))


def test_some_vector(
    ivars: Array,
    cmp: CMP | str,
    values: Sequence[Number] | Array,
    status: Sequence[int] | Array | None = None,
) -> list[int]:
    """Return the indices of all of ``ivars`` that compare to their own of ``values``."""
    them = flat(ivars)
    return _indices(pg.test_some(them, comparison(cmp), _values(them, values), where=_where(them, status)))
