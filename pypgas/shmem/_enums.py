# SPDX-License-Identifier: Apache-2.0
"""The enumerations of the OpenSHMEM interface and what they mean to pypgas."""

from __future__ import annotations

import enum

import pypgas as pg
from pypgas.errors import InvalidTypeError, InvalidValueError


class THREAD(enum.IntEnum):
    """Levels of thread support."""

    SINGLE = 0
    FUNNELED = 1
    SERIALIZED = 2
    MULTIPLE = 3


class CTX(enum.IntFlag):
    """Options for creating a context. All are hints; every context may be used by any thread."""

    SERIALIZED = 1
    PRIVATE = 2
    NOSTORE = 4


class MALLOC(enum.IntFlag):
    """Hints for allocating memory. All symmetric memory suits atomics and signals."""

    ATOMICS_REMOTE = 1
    SIGNAL_REMOTE = 2


class SIGNAL(enum.IntEnum):
    """How a put with signal updates its signal."""

    SET = 0
    ADD = 1


class CMP(enum.IntEnum):
    """Comparisons for waits and tests."""

    EQ = 0
    NE = 1
    GT = 2
    LE = 3
    LT = 4
    GE = 5


class AMO(enum.StrEnum):
    """Atomic memory operations for :func:`atomic_op` and its kin."""

    SET = "set"
    INC = "inc"
    ADD = "add"
    AND = "and"
    OR = "or"
    XOR = "xor"


class OP(enum.StrEnum):
    """Reduction operations."""

    AND = "and"
    OR = "or"
    XOR = "xor"
    MAX = "max"
    MIN = "min"
    SUM = "sum"
    PROD = "prod"


_COMPARISONS: dict[object, pg.Compare] = {}
for _name, _symbol in [
    ("EQ", "=="),
    ("NE", "!="),
    ("GT", ">"),
    ("LE", "<="),
    ("LT", "<"),
    ("GE", ">="),
]:
    for _key in (CMP[_name], _symbol, _name, _name.lower()):
        _COMPARISONS[_key] = pg.Compare[_name]


def comparison(cmp: CMP | str) -> pg.Compare:
    """Return our comparison for a :class:`CMP`, its number, its name or its symbol (``">="``)."""
    # The exact types: SIGNAL.ADD equals CMP.NE as a number, and is a mistake here.
    if type(cmp) in (CMP, int, str):
        found = _COMPARISONS.get(cmp)
        if found is not None:
            return found
        raise InvalidValueError(
            f"PE {pg.my_pe()}: {cmp!r} is no comparison; use shmem.CMP or one of "
            "'==', '!=', '>', '<=', '<', '>='"
        )
    raise InvalidTypeError(
        f"PE {pg.my_pe()}: a comparison is a shmem.CMP or a string, not {type(cmp).__name__}"
    )


def signal_op(op: SIGNAL) -> pg.SignalOp:
    """Return our signal operation for a :class:`SIGNAL` or its number."""
    if type(op) in (SIGNAL, int):
        if op == SIGNAL.SET:
            return pg.SIGNAL_SET
        if op == SIGNAL.ADD:
            return pg.SIGNAL_ADD
    raise InvalidValueError(
        f"PE {pg.my_pe()}: {op!r} is no signal operation; use shmem.SIGNAL_SET or SIGNAL_ADD"
    )


def amo_name(op: AMO | str) -> str:
    """Return the lower-case name of an atomic operation."""
    name = str(op).lower()
    if not isinstance(op, str) or name not in AMO._value2member_map_:
        raise InvalidValueError(f"PE {pg.my_pe()}: {op!r} is no atomic operation; use shmem.AMO")
    return name


def reduction_name(op: OP | str) -> str:
    """Return the lower-case name of a reduction operation."""
    name = str(op).lower()
    if not isinstance(op, str) or name not in OP._value2member_map_:
        raise InvalidValueError(f"PE {pg.my_pe()}: {op!r} is no reduction; use shmem.OP")
    return name
