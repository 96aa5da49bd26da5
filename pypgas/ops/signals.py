# SPDX-License-Identifier: Apache-2.0
"""Signals: uint64 variables that say that data has arrived."""

from __future__ import annotations

from .._native import signal_add, signal_fetch, signal_set, signal_wait_until

__all__ = ["signal_add", "signal_fetch", "signal_set", "signal_wait_until"]
