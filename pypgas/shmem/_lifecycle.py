# SPDX-License-Identifier: Apache-2.0
"""Starting and ending, and who is there."""

from __future__ import annotations

import os
from typing import NoReturn

import pypgas as pg
from pypgas import rc
from pypgas.errors import InvalidValueError
from pypgas.shmem._enums import THREAD

MAJOR_VERSION: int = 1
"""Major version of the OpenSHMEM specification whose meaning these operations have."""
MINOR_VERSION: int = 5
"""Minor version of that specification."""
VENDOR_STRING: str = f"pypgas {pg.__version__}"
"""Name of the implementation."""


def info_get_version() -> tuple[int, int]:
    """Return ``(MAJOR_VERSION, MINOR_VERSION)``."""
    return (MAJOR_VERSION, MINOR_VERSION)


def info_get_name() -> str:
    """Return ``VENDOR_STRING``."""
    return VENDOR_STRING


def init() -> None:
    """Initialise the runtime. Collective over all PEs; harmless if that was done before."""
    if not pg.is_initialized():
        pg.init()


def init_thread(requested: THREAD = THREAD.MULTIPLE) -> THREAD:
    """Initialise the runtime for calls from several threads and return the level provided."""
    if not isinstance(requested, int) or requested not in THREAD._value2member_map_:
        raise InvalidValueError(f"{requested!r} is no thread level; use shmem.THREAD")
    init()
    return query_thread()


def query_thread() -> THREAD:
    """Return the level of thread support, which is always ``MULTIPLE``."""
    return THREAD.MULTIPLE


def finalize() -> None:
    """Complete all operations and release all symmetric memory. Collective over all PEs."""
    pg.finalize()


def global_exit(status: int = 0) -> NoReturn:
    """End all PEs of the job with this exit status. Any PE may call it, alone."""
    pg.abort(status)


def my_pe() -> int:
    """Return this PE's number."""
    return pg.my_pe()


def n_pes() -> int:
    """Return the number of PEs."""
    return pg.n_pes()


def pcontrol(level: int = 1) -> None:
    """Do nothing: there is no profiling level to set."""


def start() -> None:
    """Do on import what :mod:`pypgas.rc` and the ``SHMEM4PY_RC_*`` variables say."""
    for name in ("initialize", "threads", "thread_level", "finalize"):
        value = os.environ.get(f"SHMEM4PY_RC_{name.upper()}", "").lower()
        if value in ("true", "yes", "on", "y", "1"):
            setattr(rc, name, True)
        elif value in ("false", "no", "off", "n", "0"):
            setattr(rc, name, False)
        elif value:
            setattr(rc, name, value)
    if rc.initialize:
        if rc.threads:
            init_thread(THREAD[rc.thread_level.upper()])
        else:
            init()
        if rc.finalize is None:
            rc.finalize = True
