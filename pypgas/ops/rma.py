# SPDX-License-Identifier: Apache-2.0
"""Moving data between PEs. The functions are the native ones: one call checks and copies."""

from __future__ import annotations

from .._native import g, get, get_nbi, iget, iput, p, put, put_nbi, put_signal, put_signal_nbi

__all__ = ["g", "get", "get_nbi", "iget", "iput", "p", "put", "put_nbi", "put_signal", "put_signal_nbi"]
