# SPDX-License-Identifier: Apache-2.0
"""Options that :mod:`pypgas.shmem` reads when it is imported, as ``shmem4py.rc`` has them.

Set them before the import, as attributes, by calling the module, or as ``SHMEM4PY_RC_<NAME>``
environment variables (which win)::

    from pypgas import rc

    rc.initialize = False
    from pypgas import shmem

    shmem.init()

An unknown name raises ``TypeError``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

initialize: bool = True
"""Initialise when :mod:`pypgas.shmem` is imported."""

threads: bool = False
"""Initialise through ``init_thread``, asking for :data:`thread_level`."""

thread_level: str = "multiple"
"""The thread level to ask for: multiple, serialized, funneled or single."""

finalize: bool | None = None
"""Kept for compatibility: pypgas ends an initialised runtime with the program in any case."""


class _Options(ModuleType):
    """The type of this module: a module that can be called and has no room for new names."""

    __module__ = "pypgas"

    def __call__(self, **options: Any) -> None:
        for name in options:
            self._check(name)
        for name, value in options.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        self._check(name)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.rc>"

    def _check(self, name: str) -> None:
        if name not in self.__dict__:
            raise TypeError(f"pypgas.rc has no option {name!r}; see help(pypgas.rc)")


sys.modules[__name__].__class__ = _Options
