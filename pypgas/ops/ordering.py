# SPDX-License-Identifier: Apache-2.0
"""Ordering and completing operations, and synchronising teams."""

from __future__ import annotations

from .._native import barrier, barrier_all, fence, quiet, sync, sync_all

__all__ = ["barrier", "barrier_all", "fence", "quiet", "sync", "sync_all"]
