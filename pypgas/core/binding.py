# SPDX-License-Identifier: Apache-2.0
"""Hands the native layer the Python objects it raises, compares by identity, and calls back."""

from __future__ import annotations

import os
from collections.abc import Callable

from .. import _native, dtypes, errors
from . import operands, status

__all__ = ["bind"]


def bind(released: Callable[[list[int]], None]) -> None:
    """Connect the native layer; ``released`` is called with the ids of blocks that every PE has dropped."""
    names = (
        "NotInitializedError",
        "ForkedChildError",
        "InvalidPEError",
        "InvalidTypeError",
        "InvalidValueError",
        "NotSymmetricError",
        "StaleArrayError",
        "ResourceLimitError",
        "UnreachableError",
    )
    table: dict[str, object] = {name: getattr(errors, name) for name in names}
    table.update({member.name: member for member in dtypes.Compare})
    table.update({f"SIGNAL_{member.name}": member for member in dtypes.SignalOp})
    table.update(
        call_site=status.call_site,
        report=status.report,
        explain=status.explain,
        as_array=operands.as_array,
        released=released,
        find_bfloat16=dtypes.find_bfloat16,
    )
    _native.bind(table)


def _no_heap(blocks: list[int]) -> None:
    """Stand in for a heap's release before there is one."""


bind(_no_heap)  # calls before the first init() must raise the right exceptions, too
os.register_at_fork(after_in_child=_native.mark_forked)
