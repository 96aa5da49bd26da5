# SPDX-License-Identifier: Apache-2.0
"""One source to compile, with everything that decides what comes out, and the headers it can reach."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

try:
    from _blake2 import (
        blake2b,  # `hashlib` loads OpenSSL, which takes longer than finding a kernel in the cache
    )
except ImportError:
    from hashlib import blake2b

__all__ = [
    "DEVICE_FOLDER",
    "Header",
    "Unit",
    "device_digest",
    "digest",
    "headers",
    "quoted",
    "rewritten",
    "short_hash",
]

DEVICE_FOLDER = Path(__file__).resolve().parent.parent / "device"
"""The device library, as it is installed with the package."""

# The third group is what names a header by a macro.
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:([<"])([^>"\n]+)[>"]|([^\s<"]))', re.MULTILINE)


class Unit(NamedTuple):
    """What is compiled.

    Attributes:
        source: The text of the kernels.
        name: What compilers call it in their messages: a path, or a made-up name.
        folder: Where the source looks for its own headers first; ``None`` if it is no file.
        kernels: Names of the kernels to build: plain names and template instances.
        include: Folders of headers.
        defines: Macros, as ``NAME`` or ``NAME=VALUE``.
        options: Further options for the compiler.
        debug: Without optimisation, with debug information.
        symbols: Kernels whose symbol tells their parameters: neither templates nor of C linkage.
    """

    source: str
    name: str
    folder: Path | None = None
    kernels: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    debug: bool = False
    symbols: frozenset[str] = frozenset()

    def search_folders(self) -> tuple[Path, ...]:
        """Folders to search for headers, the source's own first."""
        return (self.folder, *self.include) if self.folder is not None else self.include


class Header(NamedTuple):
    """A header of the program (not of the system or of this library).

    Attributes:
        path: Where it is.
        text: Its contents.
        uses: The headers that it includes, by the way it spells them.
    """

    path: Path
    text: str
    uses: dict[tuple[str, str], Path]


_texts: dict[Path, tuple[tuple[int, int], str]] = {}  # by path: size and time of change, contents


def _read(path: Path) -> str | None:
    try:
        status = path.stat()
        stamp = (status.st_size, status.st_mtime_ns)
        known = _texts.get(path)
        if known is None or known[0] != stamp:
            known = _texts[path] = (stamp, path.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        return None
    return known[1]


def _found(spelled: tuple[str, str], beside: Path | None, folders: Iterable[Path]) -> Path | None:
    sign, name = spelled
    places = [beside, *folders] if sign == '"' and beside is not None else folders
    for place in places:
        path = place / name
        if path.is_file():
            return path
    return None


def _uses(text: str, beside: Path | None, folders: tuple[Path, ...]) -> dict[tuple[str, str], Path]:
    found = {}
    for sign, name, _ in _INCLUDE.findall(text):
        path = _found((sign, name), beside, folders) if name else None
        if path is not None:
            found[sign, name] = path
    return found


def headers(unit: Unit) -> list[Header]:
    """Return every header that the unit can reach in its folders, in the order in which they are met.

    Conditions are not looked at, so headers that the compiler will not read may be among them.
    """
    folders = unit.search_folders()
    result: dict[Path, Header] = {}
    queue = list(_uses(unit.source, unit.folder, folders).values())
    while queue:
        path = queue.pop(0)
        if path in result:
            continue
        text = _read(path)
        if text is None:
            continue
        uses = _uses(text, path.parent, folders)
        result[path] = Header(path, text, uses)
        queue += uses.values()
    return list(result.values())


def short_hash(data: bytes) -> str:
    """Return 32 hexadecimal digits that stand for ``data``."""
    return blake2b(data, digest_size=16).hexdigest()


def digest(unit: Unit, target: Iterable[str], device: str | None = None) -> str | None:
    """Return the key of what comes out of compiling the unit: same key, same result.

    ``target`` says what it is compiled for and by what, ``device`` is the `device_digest` if it is known. There is no
    key if a macro names one of the headers, because only a compiler could tell which one is meant.
    """
    reached = headers(unit)
    texts = [unit.source, *(header.text for header in reached)]
    if any(macro for text in texts for _, _, macro in _INCLUDE.findall(text)):
        return None
    key = blake2b(digest_size=20)

    def add(*parts: str) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogateescape")
            key.update(b"%d:" % len(data))
            key.update(data)

    from .. import __version__

    add("pypgas", __version__, "target", *target)
    add("device", device or device_digest())
    add("source", unit.name, unit.source)
    add("kernels", *unit.kernels)
    add("include", *map(str, unit.search_folders()))
    add("defines", *unit.defines)
    add("options", *unit.options, "debug" if unit.debug else "")
    for header in reached:
        add("header", str(header.path), header.text)
    return key.hexdigest()


_device: tuple[str, str] | None = None  # sizes and times of change, digest


def device_digest(
    load: Callable[[str], str | None] = lambda key: None,
    save: Callable[[str, str], None] = lambda key, text: None,
) -> str:
    """Return the digest of the device library's files; they are read again when one of them changes.

    ``load`` and ``save`` keep it from one process to the next.
    """
    global _device
    files = sorted(_stamps(str(DEVICE_FOLDER)))
    stamps = f"device {DEVICE_FOLDER} {files}"
    if _device is None or _device[0] != stamps:
        found = load(stamps)
        if found is None:
            key = blake2b(digest_size=20)
            for path, size, _ in files:
                key.update(f"{path}:{size}:".encode())
                key.update((DEVICE_FOLDER / path).read_bytes())
            found = key.hexdigest()
            save(stamps, found)
        _device = (stamps, found)
    return _device[1]


def _stamps(folder: str, prefix: str = "") -> Iterable[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith((".", "__")):
                continue
            if entry.is_dir():
                yield from _stamps(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file():
                status = entry.stat()
                yield prefix + entry.name, status.st_size, status.st_mtime_ns


def rewritten(unit: Unit, folder: Path) -> str:
    """Return the unit's source as a host compiler can read it; lines keep their numbers.

    Where headers need rewriting too, copies of all of them are written to ``folder`` and included instead.

    Raises:
        OSError: the copies can't be written.
    """
    from .source import host_source

    source = host_source(unit.source)
    found = headers(unit)
    if not any("__shared__" in header.text and "extern" in header.text for header in found):
        return source
    copies = {header.path: folder / str(i) / header.path.name for i, header in enumerate(found)}
    for header in found:
        copy = copies[header.path]
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = _redirected(host_source(header.text), header.uses, copies)
        copy.write_text(
            f"#line 1 {quoted(str(header.path))}\n{text}", encoding="utf-8", errors="surrogateescape"
        )
    return _redirected(source, _uses(unit.source, unit.folder, unit.search_folders()), copies)


def _redirected(text: str, uses: dict[tuple[str, str], Path], copies: dict[Path, Path]) -> str:
    def replace(found: re.Match[str]) -> str:
        copy = copies.get(uses.get((found[1], found[2]), Path()))
        return found[0] if copy is None else f'#include "{copy}"'

    return _INCLUDE.sub(replace, text)


def quoted(text: str) -> str:
    """Return text as a string of C."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
