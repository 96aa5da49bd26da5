# SPDX-License-Identifier: Apache-2.0
"""``pypgas cache``: what is kept of compiled kernels, and how to get rid of it."""

from __future__ import annotations

import logging
import sys

__all__ = ["cache"]

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def cache(clear: bool = False) -> int:
    """Show the cache of compiled kernels, or remove what is in it. Returns the exit code."""
    from pypgas.compiler.cache import open_cache
    from pypgas.config import Settings
    from pypgas.errors import ConfigError

    logging.getLogger("pypgas").setLevel(logging.ERROR)  # what there is to say is said below
    try:
        settings = Settings.from_environment()
    except ConfigError as error:
        print(f"pypgas cache: {error}", file=sys.stderr)
        return 2
    opened = open_cache(settings.cache_dir, settings.cache_size)
    found = opened.clear() if clear else opened.statistics()
    if found.refused and settings.cache_size:
        print(f"pypgas cache: not used: {found.refused}", file=sys.stderr)
        return 1
    modules = f"{found.entries} compiled module{'' if found.entries == 1 else 's'}, {_size(found.nbytes)}"
    if clear:
        print(f"removed from {found.folder}: {modules}")
        return 0
    print(f"folder:  {found.folder}")
    print(f"entries: {modules}")
    print(f"limit:   {_size(found.limit) if found.limit else 'turned off (PYPGAS_CACHE_SIZE is 0)'}")
    return 0


def _size(nbytes: int) -> str:
    size, unit = float(nbytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.4g} {_UNITS[unit]}"
