# SPDX-License-Identifier: Apache-2.0
"""Compiled code kept on disk, shared by all processes of one user.

Layout of the folder, which nobody but the user can write to::

    entries/<key>/entry.json   what is known of an entry: its files with sizes and checksums, and facts
    entries/<key>/...          its files; the folder's time of change is when it was last used
    staging/<random>/          an entry while it is written; renamed to entries/<key> when it is complete
    sources/<hash>.cu          sources that were given as text and compiled for a debugger
    facts/<hash>               answers worth keeping, such as what a compiler is
    locks/<xx>                 files that are locked by whoever compiles; never removed

Several processes that need the same entry compile it once: the first takes a lock, the others wait for it. The lock is the
operating system's (``flock``), so it goes with a process that dies, and the next one compiles. Compiling in all of them
and letting the last one win would be as safe, but costs each PE of a busy host a share of seconds of compiling, where
waiting costs milliseconds. Locks only save work: entries are complete from the moment they exist, because they are
renamed into place, and checksums tell those that a crash of the host cut short. So where locks don't work, or one is
held for too long, a process compiles without.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import stat
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .unit import short_hash

__all__ = ["Cache", "CacheStatistics", "Entry", "default_folder", "open_cache"]

_log = logging.getLogger("pypgas")

_FORMAT = 1
_LOCKS = 256
_LOCK_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_ABANDONED_SECONDS = 3600.0
_SHARE_AFTER_EVICTION = 0.8
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Entry(NamedTuple):
    """Compiled code in the cache.

    Attributes:
        folder: Where its files are. They may be removed at any time, by `Cache.clear` in another process, say.
        facts: What was stored beside them.
    """

    folder: Path
    facts: dict[str, Any]


class Failure(NamedTuple):
    """Why another process could not compile what this one waited for."""

    facts: dict[str, Any]


class CacheStatistics(NamedTuple):
    """What a cache holds.

    Attributes:
        folder: Where it is.
        entries: Number of compiled modules.
        nbytes: Bytes on disk, in all files.
        limit: Most bytes it may hold.
        refused: Why it is not used, or "".
    """

    folder: Path
    entries: int
    nbytes: int
    limit: int
    refused: str


def default_folder() -> Path | None:
    """Return ``$XDG_CACHE_HOME/pypgas``, or that in the user's home; ``None`` for a user without a home."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    # Relative paths are to be ignored, as the XDG specification has it.
    if chosen and Path(chosen).is_absolute():
        return Path(chosen) / "pypgas"
    try:
        return Path.home() / ".cache" / "pypgas"
    except RuntimeError:
        return None


_open: dict[tuple[str, int], Cache] = {}


def open_cache(folder: str | None, limit: int) -> Cache:
    """Return the cache in ``folder`` (by default the user's) that may grow to ``limit`` bytes; 0 turns it off."""
    place = Path(folder).expanduser().absolute() if folder else default_folder()
    key = (str(place), limit)
    if key not in _open:
        _open[key] = Cache(place, limit)
    return _open[key]


class Cache:
    """Entries on disk. No method raises for what may go wrong with a disk: the cache then does less, and says so once."""

    def __init__(self, folder: Path | None, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._refused: str | None = None  # unknown until it is used
        self._complained = False

    # ---- whether it can be used

    @property
    def refused(self) -> str:
        """Why the cache is not used, or ""."""
        if self._refused is None:
            self._refused = self._examine()
            if self._refused and self.limit:
                _log.warning("compiled kernels are not kept: %s", self._refused)
        return self._refused

    def _examine(self) -> str:
        if self.limit == 0:
            return "the setting cache_size is 0"
        if self.folder is None:
            return "this user has no home folder; name a folder in PYPGAS_CACHE_DIR"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.stat()
        except OSError as error:
            return (
                f"the folder {self.folder} can't be made ({error.strerror}); name another in PYPGAS_CACHE_DIR"
            )
        if not stat.S_ISDIR(found.st_mode):
            return f"{self.folder} is no folder; name another in PYPGAS_CACHE_DIR"
        return _unsafe(self.folder, found)

    def _complain(self, what: str, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            reason = error.strerror or str(error)
            _log.warning("%s %s: %s; kernels are compiled again in each run", what, self.folder, reason)

    # ---- entries

    def lookup(self, key: str) -> Entry | None:
        """Return the entry, complete and undamaged, or ``None``."""
        if self.refused:
            return None
        assert self.folder is not None
        folder = self.folder / "entries" / key
        try:
            stored = json.loads((folder / "entry.json").read_bytes())
            whole = stored["format"] == _FORMAT and all(
                _sum((folder / name).read_bytes()) == expected for name, expected in stored["files"].items()
            )
            facts = stored["facts"]
        except FileNotFoundError:
            if not folder.is_dir():
                return None
            whole, facts = False, {}
        except OSError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError):
            whole, facts = False, {}
        if not whole:
            _log.info("the cached kernel %s is damaged, and is compiled again", key)
            self._remove(folder)
            return None
        with contextlib.suppress(OSError):  # a read-only cache forgets what is used, and never evicts
            os.utime(folder)
        return Entry(folder, facts)

    def store(self, key: str, files: Mapping[str, Path], facts: Mapping[str, Any]) -> Entry | None:
        """Copy files into a new entry and return it; ``None`` if the disk does not take it."""
        if self.refused:
            return None
        assert self.folder is not None
        final = self.folder / "entries" / key
        staged = self.folder / "staging" / _random_name()
        try:
            for parent in (staged.parent, final.parent):
                parent.mkdir(mode=0o700, exist_ok=True)
            staged.mkdir(mode=0o700)
            sums = {}
            for name, path in files.items():
                data = path.read_bytes()
                (staged / name).write_bytes(data)
                sums[name] = _sum(data)
            text = json.dumps({"format": _FORMAT, "files": sums, "facts": dict(facts)})
            (staged / "entry.json").write_text(text, encoding="utf-8")
            try:
                staged.rename(final)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                _remove_tree(staged)  # another process was faster
        except OSError as error:
            _remove_tree(staged)
            self._complain("can't keep compiled kernels in", error)
            return None
        self._evict(keep=key)
        return Entry(final, dict(facts))

    # ---- one process compiles, the others wait

    @contextlib.contextmanager
    def building(self, key: str) -> Iterator[Failure | None]:
        """Be the only process that builds ``key``, as far as locks work here.

        Gives what `failed` recorded, if that happened while this process waited for the lock.
        """
        began = time.time()
        fd, waited = (-1, False) if self.refused else self._lock(key)
        try:
            yield self._failure_since(key, began) if waited else None
        finally:
            if fd >= 0:
                os.close(fd)

    def _lock(self, key: str) -> tuple[int, bool]:
        """The descriptor that holds the lock, or -1, and whether another process held it before."""
        assert self.folder is not None
        number = zlib.crc32(key.encode()) % _LOCKS
        waited = False
        try:
            (self.folder / "locks").mkdir(mode=0o700, exist_ok=True)
            fd = os.open(
                self.folder / "locks" / f"{number:02x}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError:
            return -1, False  # what can't be locked can't be written either, and storing will say so
        try:
            end, pause = time.monotonic() + _LOCK_SECONDS, _FIRST_PAUSE
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return fd, waited
                except BlockingIOError:
                    waited = True
                if time.monotonic() > end:
                    _log.warning("another process has compiled for %g s; not waiting for it", _LOCK_SECONDS)
                    break
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        except OSError:
            pass  # this file system has no locks
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return -1, waited

    def failed(self, key: str, facts: Mapping[str, Any]) -> None:
        """Tell the processes that wait for ``key`` why there won't be an entry, so that not each of them tries too."""
        if not self.refused:
            self._write_small(f"failed-{key}", json.dumps(dict(facts)))

    def _failure_since(self, key: str, began: float) -> Failure | None:
        assert self.folder is not None
        path = self.folder / "facts" / f"failed-{key}"
        try:
            # Clocks of file servers may be off by a little; an old failure at worst is reported once more.
            if path.stat().st_mtime < began - 1:
                return None
            return Failure(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    # ---- small facts

    def load_fact(self, name: str) -> str | None:
        """Return what `save_fact` kept under ``name``."""
        if self.refused:
            return None
        assert self.folder is not None
        try:
            return (self.folder / "facts" / _fact(name)).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

    def save_fact(self, name: str, text: str) -> None:
        """Keep a short text."""
        if not self.refused:
            self._write_small(_fact(name), text)

    def _write_small(self, name: str, text: str) -> None:
        assert self.folder is not None
        path = self.folder / "facts" / name
        fresh = path.with_name(f".{_random_name()}")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            fresh.write_text(text, encoding="utf-8")
            fresh.rename(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                fresh.unlink()
            self._complain("can't write to", error)

    # ---- sources

    def keep_source(self, text: str) -> Path | None:
        """Keep a source for debuggers to show, and return its file."""
        if self.refused:
            return None
        assert self.folder is not None
        data = text.encode("utf-8", "surrogateescape")
        path = self.folder / "sources" / f"{short_hash(data)[:16]}.cu"
        if not path.exists():
            fresh = path.with_name(f".{_random_name()}")
            try:
                path.parent.mkdir(mode=0o700, exist_ok=True)
                fresh.write_bytes(data)
                fresh.rename(path)
            except OSError as error:
                self._complain("can't write to", error)
                return None
        return path

    def holds(self, path: Path) -> bool:
        """Whether a file is one of the cache's."""
        return self.folder is not None and self.folder in path.parents

    # ---- size

    def statistics(self) -> CacheStatistics:
        """Return what the cache holds."""
        folder = self.folder or Path()
        if self.refused and self.limit:
            return CacheStatistics(folder, 0, 0, self.limit, self.refused)
        if not folder.is_dir():
            return CacheStatistics(folder, 0, 0, self.limit, self.refused)
        entries = sum(1 for _ in _folders(folder / "entries"))
        return CacheStatistics(folder, entries, _nbytes(folder), self.limit, self.refused)

    def clear(self) -> CacheStatistics:
        """Remove everything and return what there was. Processes that use an entry now keep it, or compile it again."""
        before = self.statistics()
        if not before.refused or self.limit == 0:
            for name in ("entries", "staging", "facts", "sources"):
                for path in list(_children(before.folder / name)):
                    self._remove(path)
        return before

    def _evict(self, keep: str) -> None:
        """Remove the entries that were not used for longest, if there are too many bytes, and what crashes left."""
        assert self.folder is not None
        old = time.time() - _ABANDONED_SECONDS
        leftovers = [*_children(self.folder / "staging"), *(self.folder / "facts").glob("failed-*")]
        for path in leftovers:
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < old:
                    self._remove(path)
        entries = []
        for path in _folders(self.folder / "entries"):
            with contextlib.suppress(OSError):
                entries.append((path.stat().st_mtime, _nbytes(path), path))
        total = sum(nbytes for _, nbytes, _ in entries)
        if total <= self.limit:
            return
        for _, nbytes, path in sorted(entries):
            if path.name != keep:
                self._remove(path)
                total -= nbytes
            if total <= self.limit * _SHARE_AFTER_EVICTION:
                break

    def _remove(self, path: Path) -> None:
        """Remove an entry or file; entries vanish in one step, so that nobody finds half of one."""
        assert self.folder is not None
        try:
            if path.parent.name == "entries":
                (self.folder / "staging").mkdir(mode=0o700, exist_ok=True)
                path = path.rename(self.folder / "staging" / _random_name())
            if path.is_dir() and not path.is_symlink():
                _remove_tree(path)
            else:
                path.unlink()
        except FileNotFoundError:
            pass  # another process removed it
        except OSError as error:
            self._complain("can't remove from", error)


def _unsafe(folder: Path, found: os.stat_result) -> str:
    """Why code from this folder must not be run, or ""."""
    if found.st_uid != os.geteuid():
        return (
            f"the folder {folder} belongs to user {found.st_uid}, not to you ({os.geteuid()}), who could put code there that "
            "would run as you; name a folder of your own in PYPGAS_CACHE_DIR"
        )
    for parent in folder.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"anybody may replace {folder}, because anybody may write to {parent}; name another in PYPGAS_CACHE_DIR"
    if found.st_mode & _OTHERS_MAY_WRITE:
        return (
            f"other users may write to the folder {folder} (mode {stat.S_IMODE(found.st_mode):o}), and could put code there "
            f"that would run as you; run `chmod 700 {folder}`, or name another folder in PYPGAS_CACHE_DIR"
        )
    return ""


def _random_name() -> str:
    return os.urandom(8).hex()


def _remove_tree(folder: Path) -> None:
    import shutil  # which brings compression with it, and is not needed to find an entry

    shutil.rmtree(folder, ignore_errors=True)


def _sum(data: bytes) -> list[int]:
    return [len(data), zlib.crc32(data)]


def _fact(name: str) -> str:
    return short_hash(name.encode("utf-8", "surrogateescape"))


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _folders(folder: Path) -> list[Path]:
    return [path for path in _children(folder) if path.is_dir()]


def _nbytes(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(parent) / name).stat().st_size
    return total
