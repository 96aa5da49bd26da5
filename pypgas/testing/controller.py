# SPDX-License-Identifier: Apache-2.0
"""The controller: runs a session's parallel tests in one pool after the other."""

from __future__ import annotations

import builtins
import contextlib
import json
import logging
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pypgas.testing.marks import limit_for
from pypgas.testing.merge import failure_report, merge, name_pes
from pypgas.testing.pool import Outcome, Pool, PoolError

__all__ = ["Controller", "Settings"]

_log = logging.getLogger(__name__)

_SWEEP_PATIENCE = 20.0  # s for a collective garbage collection

# Options that belong to the controller alone, with what a PE's own session gets instead.
_PE_OPTIONS: dict[str, Any] = {
    "cacheclear": False,
    "collectonly": False,
    "capture": "sys",  # output below Python's level goes to the job's log, which a crash leaves behind
    "debug": None,
    "deselect": None,
    "failedfirst": False,
    "keyword": "",
    "lf": False,
    "log_file": None,
    "markexpr": "",
    "maxfail": 0,
    "newfirst": False,
    "pastebin": None,
    "session_timeout": None,
    "stepwise": False,
    "stepwise_skip": False,
    "timeout": None,  # of pytest-timeout: the harness has its own
    "trace": False,
    "usepdb": False,
    "xmlpath": None,
}
# The terminal belongs to the controller, and so does its faulthandler file to the worker.
_PE_PLUGINS = ["no:terminal", "no:faulthandler", "no:lfplugin", "no:nfplugin", "no:stepwiseplugin"]
# pypgas is imported before pytest can rewrite it; nothing in it needs that.
_PE_WARNINGS = ["ignore:Module already imported:pytest.PytestAssertRewriteWarning"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How pools are run; times in seconds."""

    template: str | None
    time_limit: float
    grace: float
    start_limit: float


class Controller:
    """Keeps at most one pool alive and runs one test after the other in it."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._pool: Pool | None = None
        self._pools_started = 0
        self._unloadable: dict[tuple[int, str], str] = {}  # (PEs, file) -> why no pool starts with it

    def run(self, item: pytest.Item, n: int, upcoming: Sequence[pytest.Item]) -> list[pytest.TestReport]:
        """Run one test on ``n`` PEs and return its reports.

        ``upcoming`` are the tests that follow at the same number of PEs, in order.
        """
        try:
            pool = self._pool_for(item, n, upcoming)
        except PoolError as error:
            return [failure_report(item, f"the job of {n} PEs did not start", str(error), when="setup")]
        missing = [member for member in pool.members if item.nodeid not in member.items]
        if missing:
            whom = name_pes(member.pe for member in missing)
            text = "\n".join(missing[0].errors) or (
                "It was collected here but not there: names and parameters must be the same everywhere."
            )
            return [failure_report(item, f"{whom} did not collect the test", text, when="setup")]
        following = upcoming[0].nodeid if upcoming else None
        outcome = pool.run(item.nodeid, following, limit_for(item, self._settings.time_limit))
        reports = merge(item, outcome)
        _forward_warnings(self._config, outcome)
        if any(report.failed or hasattr(report, "wasxfail") for report in reports):
            # Interrupted on some PE in the middle of something: its state can't be trusted.
            self._discard()
        elif any(result["ended"] for result in outcome.results.values()):
            self._discard()
            text = "The tests of a job share its runtime: start a job of its own for this."
            report = failure_report(item, "the test finalized the runtime", text, when="teardown")
            reports[:] = [other for other in reports if other.when != "teardown"]
            reports.append(report)
        elif any(result["suspect"] for result in outcome.results.values()):
            self._check_heap(pool, item, reports)
        return reports

    def close(self) -> None:
        """End the pool in order."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()

    def _discard(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.kill()

    def _pool_for(self, item: pytest.Item, n: int, upcoming: Sequence[pytest.Item]) -> Pool:
        if self._pool is not None and self._pool.n == n:
            return self._pool
        self.close()
        known = self._unloadable.get((n, str(item.path)))
        if known is not None:
            raise PoolError(known)
        wanted = dict.fromkeys(str(other.path) for other in (item, *upcoming))
        files = [path for path in wanted if (n, path) not in self._unloadable]
        try:
            self._pool = self._start(n, files)
        except PoolError as error:
            reason = error
            # One of the files may be to blame: try with this test's file alone.
            if len(files) > 1:
                with contextlib.suppress(PoolError):
                    self._pool = self._start(n, files[:1])
                    return self._pool
            self._unloadable[n, files[0]] = str(reason)
            raise
        return self._pool

    def _start(self, n: int, files: list[str]) -> Pool:
        pool = Pool(
            n,
            template=self._settings.template,
            grace=self._settings.grace,
            show_output=self._config.getoption("capture") == "no",
        )
        pool.start(self._setup(n, files), self._settings.start_limit)
        return pool

    def _setup(self, n: int, files: list[str]) -> dict[str, Any]:
        config = self._config
        self._pools_started += 1
        options = {name: value for name, value in vars(config.option).items() if _plain(value)}
        options |= {name: value for name, value in _PE_OPTIONS.items() if name in options}
        options["plugins"] = [*config.option.plugins, *_PE_PLUGINS]
        options["pythonwarnings"] = [*(config.option.pythonwarnings or []), *_PE_WARNINGS]
        options["pypgas_worker"] = n
        options["inifilename"] = str(config.inipath) if config.inipath else None
        options["rootdir"] = str(config.rootpath)
        if config.getoption("capture") == "no":
            options["capture"] = "no"
        factory = config._tmp_path_factory  # type: ignore[attr-defined]
        return {
            "options": options,
            "arguments": files,
            "cwd": str(config.invocation_params.dir),
            "path": [entry or str(config.invocation_params.dir) for entry in sys.path],
            "basetemp": str(factory.getbasetemp() / f"pool{self._pools_started}"),
        }

    def _check_heap(self, pool: Pool, item: pytest.Item, reports: list[pytest.TestReport]) -> None:
        leaks = pool.sweep(_SWEEP_PATIENCE)
        if leaks is None:
            headline, text = "the PEs did not meet in a barrier after the test", ""
            self._discard()
        else:
            kept: dict[str, list[int]] = {}
            for pe, found in leaks.items():
                for allocation in found:
                    kept.setdefault(allocation, []).append(pe)
            if not kept:
                return
            headline = "symmetric memory left allocated after the test"
            text = "\n".join(f"{name_pes(pes)}: {allocation}" for allocation, pes in kept.items())
        reports[:] = [report for report in reports if report.when != "teardown"]
        reports.append(failure_report(item, headline, text, when="teardown"))


def _plain(value: Any) -> bool:
    """Whether JSON carries an option's value unchanged."""
    with contextlib.suppress(TypeError, ValueError):
        return bool(json.loads(json.dumps(value)) == value)
    return False


def _forward_warnings(config: pytest.Config, outcome: Outcome) -> None:
    """Show the PEs' warnings in the controller's summary, equal ones once."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for result in outcome.results.values():
        for warning in result["warnings"]:
            seen.setdefault(tuple(warning.values()), warning)
    for warning in seen.values():
        category = getattr(builtins, warning["category"], UserWarning)
        text = warning["text"]
        if category.__name__ != warning["category"]:
            text = f"{warning['category']}: {text}"
        config.hook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": warnings.WarningMessage(
                    category(text), category, warning["file"], warning["line"]
                ),
                "when": "runtest",
                "nodeid": warning["nodeid"],
                "location": None,
            }
        )
