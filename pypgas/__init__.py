# SPDX-License-Identifier: Apache-2.0
"""pypgas: one-sided communication on symmetric memory, from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import dtypes as _dtypes
from ._native import my_pe, n_pes
from .config import Settings
from .core.runtime import Runtime, current_runtime, finalize, init, is_initialized
from .core.team import Team
from .devices.streams import Event, Stream, synchronize
from .dtypes import EQ, GE, GT, LE, LT, NE, SIGNAL_ADD, SIGNAL_SET, Compare, SignalOp
from .errors import *  # noqa: F403 - the error tree lists its own public names
from .errors import __all__ as _errors
from .info import VERSION, info
from .kernel import Kernel, Module, kernel
from .memory.array import SymmetricArray
from .memory.creation import alloc, array, empty, free, full, heap_statistics, is_symmetric, ones, zeros
from .memory.heap import HeapStatistics, LiveBlock
from .memory.remote import RemoteHandle
from .ops.atomics import *  # noqa: F403
from .ops.atomics import __all__ as _atomics
from .ops.collectives import *  # noqa: F403
from .ops.collectives import __all__ as _collectives
from .ops.contexts import Context
from .ops.ending import abort
from .ops.locks import Lock
from .ops.ordering import barrier, barrier_all, fence, quiet, sync, sync_all
from .ops.rma import g, get, get_nbi, iget, iput, p, put, put_nbi, put_signal, put_signal_nbi
from .ops.signals import signal_add, signal_fetch, signal_set, signal_wait_until
from .ops.waits import (
    test,
    test_all,
    test_any,
    test_some,
    wait_until,
    wait_until_all,
    wait_until_any,
    wait_until_some,
)

if TYPE_CHECKING:
    import numpy as np

    DTYPES: tuple[np.dtype[Any], ...]
    bfloat16: np.dtype[Any]
    TEAM_WORLD: Team
    TEAM_SHARED: Team
    TEAM_NODE: Team

__version__ = VERSION

_TEAMS = {"TEAM_WORLD": "world", "TEAM_SHARED": "shared", "TEAM_NODE": "node"}


def __getattr__(name: str) -> Any:
    # The predefined teams belong to the runtime that is live when they are asked for.
    if name in _TEAMS:
        return getattr(current_runtime(name), _TEAMS[name])
    if name in ("DTYPES", "bfloat16"):
        return getattr(_dtypes, name)
    raise AttributeError(f"module 'pypgas' has no attribute {name!r}")


__all__ = [
    "DTYPES",
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "SIGNAL_ADD",
    "SIGNAL_SET",
    "TEAM_NODE",
    "TEAM_SHARED",
    "TEAM_WORLD",
    "Compare",
    "Context",
    "Event",
    "HeapStatistics",
    "Kernel",
    "LiveBlock",
    "Lock",
    "Module",
    "RemoteHandle",
    "Runtime",
    "Settings",
    "SignalOp",
    "Stream",
    "SymmetricArray",
    "Team",
    "__version__",
    "abort",
    "alloc",
    "array",
    "barrier",
    "barrier_all",
    "bfloat16",
    "empty",
    "fence",
    "finalize",
    "free",
    "full",
    "g",
    "get",
    "get_nbi",
    "heap_statistics",
    "iget",
    "info",
    "init",
    "iput",
    "is_initialized",
    "is_symmetric",
    "kernel",
    "my_pe",
    "n_pes",
    "ones",
    "p",
    "put",
    "put_nbi",
    "put_signal",
    "put_signal_nbi",
    "quiet",
    "signal_add",
    "signal_fetch",
    "signal_set",
    "signal_wait_until",
    "sync",
    "sync_all",
    "synchronize",
    "test",
    "test_all",
    "test_any",
    "test_some",
    "wait_until",
    "wait_until_all",
    "wait_until_any",
    "wait_until_some",
    "zeros",
    *_errors,
    *_atomics,
    *_collectives,
]
