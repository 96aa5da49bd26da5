# SPDX-License-Identifier: Apache-2.0
"""What a program has to be started with so that its kernels can be compiled with a sanitizer."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .launchers import LauncherError

__all__ = ["SANITIZERS", "sanitized"]

SANITIZERS = ("address", "undefined")

# Python and its packages leak by design; fibers have no stacks that the sanitizer could move variables away from.
_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def sanitized(sanitizer: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to add to the environment of each PE.

    The sanitizer's library has to be loaded before all others, because it replaces ``malloc``, so it is preloaded into
    the PEs' Python.

    Raises:
        LauncherError: there is no compiler, or the one that would be used has no such sanitizer here.
    """
    from pypgas.compiler.host import find_compiler, sanitizer_library
    from pypgas.errors import CompileError

    try:
        library = sanitizer_library(find_compiler(), sanitizer)
    except CompileError as error:
        raise LauncherError(f"--sanitize {sanitizer}: {error}") from None
    added = {name: os.environ.get(name) or options for name, options in _OPTIONS.items()}
    added["PYPGAS_SANITIZE"] = sanitizer
    if library is not None:
        added["LD_PRELOAD"] = ":".join(filter(None, [library, environ.get("LD_PRELOAD")]))
    return added
