# SPDX-License-Identifier: Apache-2.0
"""Waiting for, and testing, variables that other PEs update."""

from __future__ import annotations

from .._native import (
    test,
    test_all,
    test_any,
    test_some,
    wait_until,
    wait_until_all,
    wait_until_any,
    wait_until_some,
)

__all__ = [
    "test",
    "test_all",
    "test_any",
    "test_some",
    "wait_until",
    "wait_until_all",
    "wait_until_any",
    "wait_until_some",
]
