# SPDX-License-Identifier: Apache-2.0
"""The settings of a runtime, one ``PYPGAS_<FIELD>`` environment variable each.

A setting comes from, in this order: the keyword given to ``init()``, the environment variable,
the default below. A ``PYPGAS_*`` variable that names no setting is an error, because a
misspelled one would otherwise be ignored in silence.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from .errors import ConfigError

__all__ = ["NO_TIME_LIMIT", "PREFIX", "Settings", "format_size", "parse_size"]

PREFIX = "PYPGAS_"

NO_TIME_LIMIT = 1e9
"""Seconds (about 31 years) that stand for "no limit"; ``inf`` is stored as this number, so that
every time limit is finite and can be converted to integer nanoseconds."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Return the number of bytes that ``text`` spells: ``"4096"``, ``"512K"``, ``"1.5GiB"``.

    K, M, G and T are powers of 1024, with or without ``B`` or ``iB`` after them.

    Raises:
        ValueError: ``text`` is not a size.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 4096, 512K, 64M or 2G")
    number, unit = match.groups()
    scale = _UNITS[unit.upper()]
    # Integers stay integers: a float would round sizes above 2**53.
    return int(number) * scale if "." not in number else int(float(number) * scale)


def format_size(nbytes: int) -> str:
    """Return ``nbytes`` in the largest unit that divides it, in the syntax of `parse_size`."""
    for unit in ("T", "G", "M", "K"):
        if nbytes and nbytes % _UNITS[unit] == 0:
            return f"{nbytes // _UNITS[unit]}{unit}"
    return str(nbytes)


def _size(minimum: int, multiple: int = 1) -> Callable[[object], int]:
    """Bytes, at least ``minimum``, rounded up to a multiple of ``multiple``."""

    def convert(value: object) -> int:
        if isinstance(value, str):
            nbytes = parse_size(value)
        else:
            nbytes = _as_int(value, "a number of bytes")
        if nbytes < minimum:
            raise ValueError(f"{nbytes} bytes is below the minimum, {format_size(minimum)}")
        return -(-nbytes // multiple) * multiple

    return convert


def _count(minimum: int, maximum: int) -> Callable[[object], int]:
    def convert(value: object) -> int:
        if isinstance(value, str):
            if not value.strip().isdecimal():
                raise ValueError(f"{value!r} is not a whole number")
            number = int(value)
        else:
            number = _as_int(value, "a whole number")
        if not minimum <= number <= maximum:
            raise ValueError(f"{number} is not in {minimum} ... {maximum}")
        return number

    return convert


def _seconds(value: object) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        seconds = float(value)  # type: ignore[arg-type]  # anything else is a TypeError
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is not a number of seconds") from None
    if math.isnan(seconds) or seconds <= 0:
        raise ValueError(f"{value!r} is not a positive number of seconds (inf: no limit)")
    return min(seconds, NO_TIME_LIMIT)


def _log_level(value: object) -> str:
    levels = logging.getLevelNamesMapping()
    name = str(value).strip().upper()
    if name not in levels:
        known = ", ".join(sorted(levels, key=lambda level: levels[level]))
        raise ValueError(f"{value!r} is not one of {known}")
    return name


def _sanitizer(value: object) -> str:
    name = str(value).strip().lower()
    if name not in ("address", "undefined"):
        raise ValueError(f"{value!r} is neither address nor undefined")
    return name


def _path(value: object) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError(f"{value!r} is not a path")
    return os.fspath(value)


def _as_int(value: object, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{value!r} is not {what}")
    return int(value.__index__())


def _setting(
    default: object,
    convert: Callable[[object], object],
    summary: str,
    show: Callable[[Any], str] = str,
) -> Any:
    metadata = {"convert": convert, "summary": summary, "show": show}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What ``init()`` can be told, with keywords or ``PYPGAS_*`` variables.

    All PEs of a job must use the same values; ``init()`` checks that.

    Attributes:
        heap_size: Upper limit of each PE's symmetric heap, in bytes. ``None`` lets ``init()``
            choose a share of the node's memory. Only address space is reserved: memory is
            used as arrays are allocated and touched.
        wait_timeout: Seconds after which a wait on other PEs raises ``WaitTimeoutError``.
            ``inf`` means no limit.
        wait_report: Seconds after which a wait that goes on is reported to the log, with the
            PEs that are missing and what they are doing.
        max_teams: Most teams that can exist at one time on a PE, the predefined ones included.
        staging_size: Bytes of the buffer that each PE keeps for collectives on ordinary
            (not symmetric) arrays, rounded up to a multiple of 64, so that no element is
            divided. Longer arrays pass through it in pieces.
        log_level: Level of the ``pypgas`` logger: a name of Python's ``logging``.
        cache_dir: Folder for compiled kernels. ``None``: ``$XDG_CACHE_HOME/pypgas``, or
            ``~/.cache/pypgas``. It must belong to the user, and others must not write to it.
        cache_size: Most bytes of compiled kernels to keep there; those that were not used for
            longest go first. 0 keeps none.
        sanitize: ``"address"`` or ``"undefined"``: compile kernels for the CPU with that
            sanitizer. Set by ``pypgas run --sanitize``, because a program has to be started
            in a certain way for it.
        job_dir: Private folder of the job in which PEs leave reports of failures. Set by
            ``pypgas run``, not meant to be set by hand.

    Raises:
        ConfigError: a value is of the wrong kind or out of range.
    """

    heap_size: int | None = _setting(
        None, _size(1 << 16), "most bytes of each PE's heap, such as 512M (default: by memory)"
    )
    wait_timeout: float = _setting(300.0, _seconds, "seconds until a wait raises")
    wait_report: float = _setting(10.0, _seconds, "seconds until a wait is reported")
    max_teams: int = _setting(64, _count(4, 4096), "teams at one time")
    staging_size: int = _setting(256 << 10, _size(1 << 12, 64), "bytes staged by collectives", format_size)
    log_level: str = _setting("WARNING", _log_level, "level of the log")
    cache_dir: str | None = _setting(None, _path, "folder for compiled kernels (default: the user's cache)")
    cache_size: int = _setting(
        256 << 20, _size(0), "most bytes of compiled kernels kept, 0: none", format_size
    )
    sanitize: str | None = _setting(None, _sanitizer, "sanitizer of kernels (set by pypgas run --sanitize)")
    job_dir: str | None = _setting(None, _path, "folder for failure reports (set by pypgas run)")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None and field.default is None:
                continue
            object.__setattr__(self, field.name, _convert(field, value, f"setting {field.name}"))

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, **overrides: object) -> Settings:
        """Return the settings given by ``environ`` (``os.environ`` by default) and keywords.

        A keyword that is not ``None`` wins over its variable. A variable set to an empty
        string counts as unset.

        Raises:
            ConfigError: a ``PYPGAS_*`` variable or a keyword is unknown or malformed; the
                message lists the valid ones.
        """
        if environ is None:
            environ = os.environ
        fields = {field.name: field for field in dataclasses.fields(cls)}
        values: dict[str, object] = {}
        for variable in sorted(environ):
            if not variable.startswith(PREFIX):
                continue
            name = variable.removeprefix(PREFIX).lower()
            if name not in fields or variable != _variable(name):
                raise ConfigError(_unknown(variable, [_variable(known) for known in fields]))
            if environ[variable].strip():
                values[name] = _convert(fields[name], environ[variable], variable)
        for name, value in overrides.items():
            if name not in fields:
                raise ConfigError(_unknown(name, list(fields)))
            if value is not None:
                values[name] = _convert(fields[name], value, f"setting {name}")
        return cls(**values)  # type: ignore[arg-type]  # converted by each field's own rule

    @classmethod
    def describe(cls) -> str:
        """Return one line for each variable: its name, default and meaning."""
        lines = []
        for field in dataclasses.fields(cls):
            default = field.default
            shown = "" if default is None else f" [{field.metadata['show'](default)}]"
            lines.append(f"  {_variable(field.name)}{shown}: {field.metadata['summary']}")
        return "\n".join(lines)


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _convert(field: dataclasses.Field[Any], value: object, source: str) -> object:
    try:
        return field.metadata["convert"](value)
    except ValueError as error:
        raise ConfigError(f"{source}: {error}. Valid settings:\n{Settings.describe()}") from None


def _unknown(name: str, known: list[str]) -> str:
    import difflib  # only for this message: it takes longer to import than the rest of this module

    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"{name}: no such setting.{hint} Valid settings:\n{Settings.describe()}"
