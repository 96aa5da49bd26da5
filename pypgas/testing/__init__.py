# SPDX-License-Identifier: Apache-2.0
"""Testing programs on symmetric memory with pytest, on every PE of real jobs.

The plugin ``pypgas.testing.plugin`` is active wherever pypgas is installed: mark a test with
:func:`pes` and run ``pytest``. See ``docs/testing.md``.
"""

from pypgas.testing.lockstep import given, lockstep_settings, shared_random
from pypgas.testing.marks import pes, time_limit
from pypgas.testing.side import agree, exchange

__all__ = ["agree", "exchange", "given", "lockstep_settings", "pes", "shared_random", "time_limit"]
