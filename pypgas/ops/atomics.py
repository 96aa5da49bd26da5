# SPDX-License-Identifier: Apache-2.0
"""Atomic operations on elements of any PE's memory, single and in bulk."""

from __future__ import annotations

from .._native import (
    atomic_add,
    atomic_and,
    atomic_compare_swap,
    atomic_fetch,
    atomic_fetch_add,
    atomic_fetch_and,
    atomic_fetch_inc,
    atomic_fetch_or,
    atomic_fetch_xor,
    atomic_inc,
    atomic_or,
    atomic_set,
    atomic_swap,
    atomic_xor,
)

__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_compare_swap",
    "atomic_fetch",
    "atomic_fetch_add",
    "atomic_fetch_and",
    "atomic_fetch_inc",
    "atomic_fetch_or",
    "atomic_fetch_xor",
    "atomic_inc",
    "atomic_or",
    "atomic_set",
    "atomic_swap",
    "atomic_xor",
]
