# SPDX-License-Identifier: Apache-2.0
"""Ending the whole job from one PE."""

from __future__ import annotations

import logging
from typing import NoReturn

from ..core import runtime
from ..core.status import call_site

__all__ = ["abort"]

_log = logging.getLogger("pypgas")


class _JobEnd(SystemExit):
    """The exit of one PE that is meant for all; ``pypgas run`` looks for the attribute, also at code 0."""

    ends_job = True


def abort(code: int = 1, message: str = "") -> NoReturn:
    """End the job: the other PEs' waits raise `PeerFailedError`, and the launcher reports ``code``.

    This PE leaves by `SystemExit`, so that its own clean-up runs. OpenSHMEM 1.6, SHMEM_GLOBAL_EXIT.
    """
    reason = f"abort({code}) at {call_site()}" + (f": {message}" if message else "")
    if message:
        _log.error("abort: %s", message)
    runtime.mark_failed(reason)
    raise _JobEnd(code)
