# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled code: what it promises to processes that share it, and what it survives."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypgas.compiler import cache as cache_module
from pypgas.compiler.cache import Cache, default_folder, open_cache

KEY = "ab" * 20
OTHER = "cd" * 20
MIB = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cache(folder: Path) -> Cache:
    return Cache(folder, 64 * MIB)


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    path = tmp_path / "out.so"
    path.write_bytes(b"code" * 1000)
    return path


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_what_is_stored_is_found(cache: Cache, folder: Path, compiled: Path) -> None:
    assert cache.lookup(KEY) is None
    stored = cache.store(KEY, {"module.so": compiled}, {"a": [1, 2]})
    for found in (stored, cache.lookup(KEY), Cache(folder, MIB).lookup(KEY)):
        assert found is not None
        assert (found.folder / "module.so").read_bytes() == compiled.read_bytes()
        assert found.facts == {"a": [1, 2]}
    assert cache.lookup(OTHER) is None
    assert list((folder / "staging").iterdir()) == []


def test_storing_twice_keeps_the_first(cache: Cache, compiled: Path) -> None:
    cache.store(KEY, {"module.so": compiled}, {"n": 1})
    assert cache.store(KEY, {"module.so": compiled}, {"n": 2}) is not None
    found = cache.lookup(KEY)
    assert found is not None
    assert found.facts == {"n": 1}


def test_only_the_user_can_read_it(cache: Cache, folder: Path, compiled: Path) -> None:
    old = os.umask(0)
    try:
        cache.store(KEY, {"module.so": compiled}, {})
        with cache.building(KEY):
            pass
        cache.save_fact("x", "y")
    finally:
        os.umask(old)
    for place in (folder, *(p for p in folder.rglob("*") if p.is_dir())):
        assert place.stat().st_mode & 0o077 == 0, place


@pytest.mark.parametrize(
    "damage", ["truncated", "changed", "missing", "no entry.json", "json", "other format", "list"]
)
def test_damaged_entries_are_compiled_again(cache: Cache, folder: Path, compiled: Path, damage: str) -> None:
    cache.store(KEY, {"module.so": compiled}, {})
    entry = folder / "entries" / KEY
    code, facts = entry / "module.so", entry / "entry.json"
    if damage == "truncated":
        code.write_bytes(code.read_bytes()[:-1])
    elif damage == "changed":
        code.write_bytes(code.read_bytes().replace(b"code", b"cold"))
    elif damage == "missing":
        code.unlink()
    elif damage == "no entry.json":
        facts.unlink()
    elif damage == "json":
        facts.write_text("{")
    elif damage == "other format":
        facts.write_text(json.dumps({"format": 0, "files": {}, "facts": {}}))
    else:
        facts.write_text("[]")
    assert cache.lookup(KEY) is None
    assert cache.store(KEY, {"module.so": compiled}, {"new": True}) is not None
    found = cache.lookup(KEY)
    assert found is not None
    assert found.facts == {"new": True}


# ---------------------------------------------------------------- whose folder it is


def test_a_folder_that_others_may_write_to_is_refused(
    folder: Path, compiled: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for mode in (0o770, 0o707, 0o777):
        caplog.clear()
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
        cache = Cache(folder, MIB)
        assert cache.store(KEY, {"module.so": compiled}, {}) is None
        assert cache.lookup(KEY) is None
        with cache.building(KEY) as failure:
            assert failure is None
        assert list(folder.iterdir()) == []
        (said,) = warnings(caplog)
        assert str(folder) in said
        assert "other users may write" in said
        assert "chmod 700" in said


def test_a_folder_that_anybody_may_replace_is_refused(tmp_path: Path) -> None:
    parent = tmp_path / "open"
    parent.mkdir()
    parent.chmod(0o777)
    assert "anybody may replace" in Cache(parent / "cache", MIB).refused
    parent.chmod(0o1777)  # as /tmp is
    assert Cache(parent / "cache", MIB).refused == ""


def test_a_folder_of_another_user_is_refused(
    folder: Path, compiled: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if os.geteuid() == 0:
        folder.mkdir()
        os.chown(folder, 12345, 12345)
    else:
        folder.mkdir()
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    cache = Cache(folder, MIB)
    assert cache.store(KEY, {"module.so": compiled}, {}) is None
    assert cache.lookup(KEY) is None
    (said,) = warnings(caplog)
    assert "belongs to user" in said
    assert "PYPGAS_CACHE_DIR" in said


def test_where_there_can_be_no_folder(
    tmp_path: Path, compiled: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "below", None):
        caplog.clear()
        cache = Cache(place, MIB)
        assert cache.lookup(KEY) is None
        assert cache.store(KEY, {"module.so": compiled}, {}) is None
        cache.save_fact("a", "b")
        assert cache.load_fact("a") is None
        assert len(warnings(caplog)) == 1


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "pypgas"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_folder() == tmp_path / "home" / ".cache" / "pypgas"
    assert open_cache(None, MIB).folder == default_folder()
    assert open_cache(str(tmp_path / "x"), MIB) is open_cache(str(tmp_path / "x"), MIB)


def test_a_limit_of_zero_turns_it_off(folder: Path, compiled: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = Cache(folder, 0)
    assert cache.store(KEY, {"module.so": compiled}, {}) is None
    assert not folder.exists()
    assert warnings(caplog) == []


# ---------------------------------------------------------------- disks that don't take it


def test_a_read_only_folder_is_read(folder: Path, compiled: Path, caplog: pytest.LogCaptureFixture) -> None:
    Cache(folder, MIB).store(KEY, {"module.so": compiled}, {})
    places = [folder, *(p for p in folder.rglob("*") if p.is_dir())]
    for place in places:
        place.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write everywhere")
        cache = Cache(folder, MIB)
        assert cache.lookup(KEY) is not None
        with cache.building(OTHER):
            assert cache.store(OTHER, {"module.so": compiled}, {}) is None
        assert cache.store(OTHER, {"module.so": compiled}, {}) is None
        cache.save_fact("a", "b")
        assert len(warnings(caplog)) == 1
    finally:
        for place in places:
            place.chmod(0o700)


def test_a_folder_nobody_can_write_to(compiled: Path, caplog: pytest.LogCaptureFixture) -> None:
    """/proc takes no files, not even root's."""
    cache = Cache(Path("/proc/self"), MIB)
    assert cache.lookup(KEY) is None
    for _ in range(2):
        with cache.building(KEY) as failure:
            assert failure is None
            assert cache.store(KEY, {"module.so": compiled}, {}) is None
        cache.save_fact("a", "b")
        cache.failed(KEY, {})
    (said,) = warnings(caplog)
    assert "/proc/self" in said


@pytest.mark.parametrize("room", [0, 10, 1000, 4010])
def test_a_full_disk(
    folder: Path, compiled: Path, room: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = [room]
    write = Path.write_bytes

    def limited(path: Path, data: bytes) -> int:
        n = write(path, data[: left[0]])
        left[0] -= n
        if n < len(data):
            raise OSError(28, "No space left on device")
        return n

    monkeypatch.setattr(Path, "write_bytes", limited)
    monkeypatch.setattr(Path, "write_text", lambda path, text, encoding=None: limited(path, text.encode()))
    cache = Cache(folder, MIB)
    for _ in range(2):
        assert cache.store(KEY, {"module.so": compiled}, {}) is None
        assert cache.keep_source("x" * 5000) is None
    monkeypatch.undo()
    assert cache.lookup(KEY) is None
    left_over = [p for p in folder.rglob("*") if p.is_file()]
    assert [p for p in left_over if p.parent.name != "sources"] == []
    (said,) = warnings(caplog)
    assert "No space left" in said
    assert cache.store(KEY, {"module.so": compiled}, {}) is not None  # once there is room again


# ---------------------------------------------------------------- size


def test_the_least_recently_used_go_first(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(100_000))
    cache = Cache(folder, 450_000)
    keys = [f"{i:040x}" for i in range(5)]
    for i, key in enumerate(keys[:4]):
        cache.store(key, {"module.so": data}, {})
        os.utime(folder / "entries" / key, (1000 + i, 1000 + i))
    assert cache.lookup(keys[0]) is not None  # used now
    cache.store(keys[4], {"module.so": data}, {})
    assert [cache.lookup(key) is not None for key in keys] == [True, False, False, True, True]
    assert cache.statistics().nbytes <= 450_000


def test_an_entry_larger_than_the_limit_is_usable(folder: Path, compiled: Path) -> None:
    cache = Cache(folder, 10)
    for key in (KEY, OTHER):
        cache.store(key, {"module.so": compiled}, {})
        assert cache.lookup(key) is not None
    assert cache.lookup(KEY) is None


def test_what_a_crash_left_is_removed(cache: Cache, folder: Path, compiled: Path) -> None:
    cache.store(KEY, {"module.so": compiled}, {})
    old, new = folder / "staging" / "old", folder / "staging" / "new"
    for place in (old, new):
        place.mkdir()
        (place / "module.so").write_bytes(b"half")
    os.utime(old, (1000, 1000))
    cache.store(OTHER, {"module.so": compiled}, {})
    assert not old.exists()
    assert new.exists()  # somebody may still be writing it


def test_clear(cache: Cache, folder: Path, compiled: Path) -> None:
    cache.store(KEY, {"module.so": compiled}, {})
    cache.store(OTHER, {"module.so": compiled}, {})
    cache.save_fact("a", "b")
    kept = cache.keep_source("text")
    assert kept is not None
    assert kept.read_text() == "text"
    assert cache.holds(kept)
    before = cache.clear()
    assert before.entries == 2
    assert before.nbytes > 2 * 4000
    after = cache.statistics()
    assert (after.entries, after.nbytes) == (0, 0)
    assert cache.lookup(KEY) is None
    assert cache.load_fact("a") is None
    assert cache.store(KEY, {"module.so": compiled}, {}) is not None


def test_facts(cache: Cache, folder: Path) -> None:
    assert cache.load_fact("a\n/b") is None
    cache.save_fact("a\n/b", "text ü")
    cache.save_fact("other", "x")
    assert Cache(folder, MIB).load_fact("a\n/b") == "text ü"


# ---------------------------------------------------------------- several processes

PROGRAM = """
import os, pathlib, signal, sys, time
from pypgas.compiler.cache import Cache
folder, mode = pathlib.Path(sys.argv[1]), sys.argv[2]
cache = Cache(folder / "cache", 1 << 26)
key = "ab" * 20
(folder / f"ready-{os.getpid()}").touch()
while not (folder / "go").exists():
    time.sleep(0.001)
with cache.building(key) as failure:
    found = cache.lookup(key)
    if found is None and failure is not None:
        print("told", failure.facts["why"])
        sys.exit()
    if found is None:
        with open(folder / "compiled", "a") as log:
            log.write("x")
        time.sleep(0.3)
        if mode == "crash" and len((folder / "compiled").read_text()) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if mode == "fail":
            cache.failed(key, {"why": "syntax"})
            print("failed syntax")
            sys.exit()
        out = folder / f"out-{os.getpid()}"
        out.write_bytes(b"code")
        found = cache.store(key, {"module.so": out}, {})
print("got", (found.folder / "module.so").read_text())
"""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def together(
    folder: Path, mode: str, processes: list[subprocess.Popen[str]], n: int = 4
) -> list[tuple[int, str]]:
    for _ in range(n):
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(folder), mode], stdout=subprocess.PIPE, text=True
            )
        )
    while len(list(folder.glob("ready-*"))) < n:
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
    (folder / "go").touch()
    results = []
    for process in processes:
        output, _ = process.communicate(timeout=60)
        results.append((process.returncode, output.strip()))
    return results


def test_one_process_compiles_and_the_others_wait(
    tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    assert together(tmp_path, "good", processes) == [(0, "got code")] * 4
    assert (tmp_path / "compiled").read_text() == "x"


def test_when_the_compiling_process_dies_the_next_one_compiles(
    tmp_path: Path, processes: list[subprocess.Popen[str]]
) -> None:
    results = together(tmp_path, "crash", processes)
    assert sorted(results) == [(-signal.SIGKILL, ""), *[(0, "got code")] * 3]
    assert (tmp_path / "compiled").read_text() == "xx"


def test_a_failure_is_told_to_those_who_wait(tmp_path: Path, processes: list[subprocess.Popen[str]]) -> None:
    results = together(tmp_path, "fail", processes)
    assert sorted(results) == [(0, "failed syntax"), *[(0, "told syntax")] * 3]
    assert (tmp_path / "compiled").read_text() == "x"


def test_an_earlier_failure_is_no_answer(cache: Cache) -> None:
    cache.failed(KEY, {"why": "syntax"})
    with cache.building(KEY) as failure:
        assert failure is None


def test_a_lock_that_is_held_for_too_long_is_not_waited_for(
    cache: Cache, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache_module, "_LOCK_SECONDS", 0.05)
    with cache.building(KEY), Cache(folder, MIB).building(KEY) as failure:
        assert failure is None
    assert "not waiting" in warnings(caplog)[0]


def test_file_systems_without_locks(
    cache: Cache, compiled: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(cache_module.fcntl, "flock", no_locks)
    with cache.building(KEY):
        assert cache.store(KEY, {"module.so": compiled}, {}) is not None
    assert warnings(caplog) == []
