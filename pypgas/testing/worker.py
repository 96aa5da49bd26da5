# SPDX-License-Identifier: Apache-2.0
"""One PE of a pool: ``python -m pypgas.testing.worker --connect SOCKET``.

It initialises pypgas once, runs an ordinary pytest session in this process, and lets the
controller choose the tests, so that fixtures, marks and plugins work as everywhere.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import importlib
import os
import shutil
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest.config import Config  # fromdictargs is not public; pytest-xdist relies on it too

import pypgas as pg
from pypgas.testing import side
from pypgas.testing.channel import Channel, Message
from pypgas.testing.heapwatch import HeapWatch

__all__ = ["main"]

# A PE that outlives its controller while it hangs ends itself this long after the test's limit.
_ORPHAN_PATIENCE = 60.0


class WorkerPlugin:
    """The part of the session that obeys the controller."""

    def __init__(self, channel: Channel, folder: Path, stacks: Any, pe: int, n: int) -> None:
        self._channel = channel
        self._folder = folder
        self._stacks = stacks
        self._pe = pe
        self._n = n
        self._config: pytest.Config
        self._reports: list[Message] = []
        self._warnings: list[Message] = []
        self._errors: list[str] = []
        self._heap = HeapWatch()

    def pytest_configure(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        try:
            self._obey(session)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            _leave_orphaned(self._folder)
        return True

    def _obey(self, session: pytest.Session) -> None:
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()  # what is loaded by now is not looked at again: collections stay cheap
        self._heap.begin()
        self._channel.send(
            {"kind": "ready", "pe": self._pe, "n": self._n, "items": list(items), "errors": self._errors}
        )
        while True:
            message = self._channel.receive()
            if message["kind"] == "run":
                self._run(items, message)
            elif message["kind"] == "sweep":
                self._channel.send({"kind": "swept", "leaks": self._heap.sweep()})
            elif message["kind"] == "stop":
                return

    def _run(self, items: dict[str, pytest.Item], message: Message) -> None:
        self._reports, self._warnings = [], []
        item, following = items[message["nodeid"]], items.get(message["next"] or "")
        side.begin(Path(message["shared"]), message["limit"])
        faulthandler.dump_traceback_later(message["limit"] + _ORPHAN_PATIENCE, exit=True, file=self._stacks)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException as error:
            # KeyboardInterrupt or pytest.exit() in a test: pytest ends the session.
            self._channel.send({"kind": "left", "reason": "".join(traceback.format_exception(error))})
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
        done = {
            "kind": "done",
            "reports": self._reports,
            "warnings": self._warnings,
            "suspect": self._heap.suspect(),
            "ended": not pg.is_initialized(),
        }
        self._channel.send(done)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        self._reports.append(hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._errors.append(str(report.longrepr))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str
    ) -> None:
        if when == "runtest":
            self._warnings.append(
                {
                    "text": str(warning_message.message),
                    "category": warning_message.category.__name__,
                    "file": warning_message.filename,
                    "line": warning_message.lineno,
                    "nodeid": nodeid,
                }
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        # A module's or session's fixture may keep arrays over many tests.
        with self._heap.allowing(fixturedef.scope != "function"):
            return (yield)


def _load_hypothesis(files: list[str]) -> None:
    """Import hypothesis now if a test uses it.

    Later, pytest would rewrite the whole package as that of a plugin; where bytecode is not
    written that costs each PE two seconds.
    """
    if any(b"hypothesis" in Path(file).read_bytes() for file in files):
        importlib.import_module("hypothesis")


def _leave_orphaned(folder: Path) -> NoReturn:
    """The controller was killed: remove what it can't remove any more, and wait for nobody."""
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _session(channel: Channel, folder: Path, stacks: Any) -> int:
    setup = channel.receive()
    pe, n = pg.my_pe(), pg.n_pes()
    os.chdir(setup["cwd"])
    sys.path[:] = setup["path"]
    options = dict(setup["options"])
    options["basetemp"] = f"{setup['basetemp']}-pe{pe}"
    _load_hypothesis(setup["arguments"])
    config = Config.fromdictargs(options, list(setup["arguments"]))
    config.pluginmanager.register(WorkerPlugin(channel, folder, stacks, pe, n), "pypgas-worker")
    try:
        return int(config.hook.pytest_cmdline_main(config=config))
    finally:
        config._ensure_unconfigure()


def main(arguments: list[str] | None = None) -> int:
    """Run one PE's session; returns pytest's exit code."""
    parser = argparse.ArgumentParser(description="A PE of a pypgas test pool (started by the pytest plugin).")
    parser.add_argument("--connect", required=True, type=Path, help="the controller's socket")
    address: Path = parser.parse_args(arguments).connect
    stacks_path = address.parent / f"stacks-{os.getpid()}"
    stacks = stacks_path.open("w")
    faulthandler.enable(stacks)
    faulthandler.register(signal.SIGUSR2, stacks)
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(os.fspath(address))
        channel = Channel(sock)
        channel.send({"kind": "hello", "pid": os.getpid(), "stacks": str(stacks_path)})
    except (BrokenPipeError, ConnectionError):
        _leave_orphaned(address.parent)
    try:
        pg.init()
        side.attach(channel, pg.my_pe(), pg.n_pes())
        code = _session(channel, address.parent, stacks)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        _leave_orphaned(address.parent)
    except BaseException as error:
        reason = "".join(traceback.format_exception(error))
        channel.send({"kind": "failed", "reason": reason})
        raise
    side.detach()
    if code == pytest.ExitCode.INTERRUPTED:
        return code
    pg.finalize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
