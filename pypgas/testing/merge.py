# SPDX-License-Identifier: Apache-2.0
"""N PEs' reports of a test merged into one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr

from pypgas.testing.pool import Outcome

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

__all__ = ["PEFailures", "failure_report", "merge", "name_pes"]

# What another PE's failure makes of a PE that waits for it.
_SECONDARY = ("PeerFailedError", "ExchangeRefusedError", "ExampleFailedElsewhereError")
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
_STRICT_XPASS = "[XPASS(strict)]"
_PHASES = ("setup", "call", "teardown")
_OWN_FRAMES = ("/_pytest/", "/pluggy/", "/pypgas/testing/", '"<frozen runpy>"', "/pypgas/launcher/")
_LOG_TAIL = 6000  # characters of the job's raw output shown with a crash


def name_pes(pes: Iterable[int]) -> str:
    """``PE 1`` or ``PEs 0, 2, 3``."""
    numbers = sorted(pes)
    return f"PE{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


class PEFailures(TerminalRepr):
    """What is printed for a failed test: a headline, then a section for each distinct failure."""

    def __init__(self, headline: str, location: tuple[str, int | None, str]) -> None:
        self.headline = headline
        self.sections: list[tuple[str, Any]] = []
        self._path, self._line = location[0], location[1] or 0

    @property
    def reprcrash(self) -> ReprFileLocation:
        """Where and why, for pytest's short summary."""
        return ReprFileLocation(self._path, self._line + 1, self.headline)

    def add(self, title: str, text: Any) -> None:
        """Add a section; ``text`` is a string or one of pytest's own representations."""
        self.sections.append((title, text))

    def toterminal(self, tw: TerminalWriter) -> None:
        tw.line(self.headline, red=True, bold=True)
        for title, text in self.sections:
            tw.sep("-", title, bold=True)
            if hasattr(text, "toterminal"):
                text.toterminal(tw)
            else:
                tw.line(str(text).rstrip("\n"))


def merge(item: pytest.Item, outcome: Outcome) -> list[pytest.TestReport]:
    """The reports (setup, call, teardown) of the whole job for one test."""
    by_phase: dict[str, dict[int, pytest.TestReport]] = {phase: {} for phase in _PHASES}
    load = item.config.hook.pytest_report_from_serializable
    for pe, result in sorted(outcome.results.items()):
        for data in result["reports"]:
            # JSON knows lists only; pytest insists on tuples here.
            for name in ("location", "longrepr"):
                if isinstance(data[name], list):
                    data[name] = tuple(data[name])
            report = load(config=item.config, data=data)
            by_phase[report.when][pe] = report
    if any(report.failed for report in by_phase["setup"].values()):
        by_phase["call"] = {}  # what ran it on some PEs only is no result
    merged = []
    failed = False
    for phase in _PHASES:
        reports = by_phase[phase]
        if reports:
            merged.append(_merge_phase(item, phase, reports))
            failed |= merged[-1].failed
    _mixed_skips(item, by_phase, merged)
    if outcome.broken:
        _add_breakdown(item, outcome, merged, failed)
    return merged


def failure_report(
    item: pytest.Item, headline: str, text: Any, *, title: str = "details", when: str = "call"
) -> pytest.TestReport:
    """A failure that no PE reported itself."""
    failures = PEFailures(headline, item.location)
    if text:
        failures.add(title, text)
    return _report(item, "failed", failures, when)


def _report(item: pytest.Item, outcome: Any, longrepr: Any, when: Any, **more: Any) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome=outcome,
        longrepr=longrepr,
        when=when,
        **more,
    )


def _merge_phase(item: pytest.Item, phase: str, reports: dict[int, pytest.TestReport]) -> pytest.TestReport:
    first = next(iter(reports.values()))
    outcomes = {report.outcome for report in reports.values()}
    expected = [report for report in reports.values() if report.skipped and hasattr(report, "wasxfail")]
    result: pytest.TestReport
    if expected and all(_met_expectation(report) for report in reports.values()):
        result = expected[0]  # it failed on some PE, as expected: so did the test as a whole
    elif "failed" in outcomes:
        result = _report(item, "failed", _failures(item, phase, reports), phase)
    else:
        passed = [report for report in reports.values() if report.passed]
        result = passed[0] if passed else first
    result.duration = max(report.duration for report in reports.values())
    result.user_properties = first.user_properties
    result.sections = _sections(reports)
    return result


def _met_expectation(report: pytest.TestReport) -> bool:
    return hasattr(report, "wasxfail") or (report.failed and str(report.longrepr).startswith(_STRICT_XPASS))


def _failures(item: pytest.Item, phase: str, reports: dict[int, pytest.TestReport]) -> PEFailures:
    groups: dict[str, list[int]] = {}
    for pe, report in reports.items():
        if report.failed:
            text = _ADDRESS.sub("0x…", str(report.longrepr))
            # Messages of pypgas begin with the PE that speaks; that alone makes no difference.
            groups.setdefault(re.sub(rf"\bPE {pe}\b", "PE #", text), []).append(pe)
    # What went wrong first is worth reading first: a PE's own error before its echo elsewhere.
    ordered = sorted(groups.values(), key=lambda pes: _secondary(reports[pes[0]]))
    failed = [pe for pes in ordered for pe in pes if not _secondary(reports[pe])]
    failed = failed or [pe for pes in ordered for pe in pes]
    where = "" if phase == "call" else f" in {phase}"
    whom = "all PEs" if len(failed) == len(reports) > 1 else name_pes(failed)
    failures = PEFailures(f"{whom} failed{where}: {_reason(reports[ordered[0][0]])}", item.location)
    for pes in ordered:
        failures.add(name_pes(pes), reports[pes[0]].longrepr)
    return failures


def _secondary(report: pytest.TestReport) -> bool:
    return any(name in _reason(report) for name in _SECONDARY)


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return text.strip().partition("\n")[0]


def _sections(reports: dict[int, pytest.TestReport]) -> list[tuple[str, str]]:
    whose: dict[tuple[str, str], list[int]] = {}
    for pe, report in reports.items():
        for section in report.sections:
            whose.setdefault((section[0], section[1]), []).append(pe)
    return [(f"{title} ({name_pes(pes)})", text) for (title, text), pes in whose.items()]


def shorten_stack(text: str) -> str:
    """A stack as faulthandler writes it, without pytest's own frames and ours."""
    lines = []
    skipping = False
    for line in text.splitlines():
        if not line.startswith("  File "):
            skipping = False
        elif any(part in line for part in _OWN_FRAMES):
            if not skipping:
                lines.append("  ... (pytest and the harness)")
            skipping = True
            continue
        if not (skipping and line.startswith("  File ")):
            lines.append(line)
    return "\n".join(lines)


def _mixed_skips(
    item: pytest.Item, by_phase: dict[str, dict[int, pytest.TestReport]], merged: list[pytest.TestReport]
) -> None:
    """Make a test that only some PEs skipped a failure: the others may have checked nothing."""
    skipped = {
        pe
        for phase in ("setup", "call")
        for pe, report in by_phase[phase].items()
        if report.skipped and not hasattr(report, "wasxfail")
    }
    everyone = set(by_phase["setup"])
    if not skipped or skipped == everyone or any(report.failed for report in merged):
        return
    text = "Skip on all PEs or on none: the PEs of a test must decide alike."
    headline = f"{name_pes(skipped)} skipped the test, {name_pes(everyone - skipped)} ran it"
    report = failure_report(item, headline, text, title="what to do")
    merged[:] = [other for other in merged if other.when != "call"]
    merged.insert(1, report)


def _add_breakdown(
    item: pytest.Item, outcome: Outcome, merged: list[pytest.TestReport], failed: bool
) -> None:
    """Add what made the pool unusable: deaths, hangs, PEs that left."""
    headlines = []
    if outcome.died:
        headlines += [f"PE {pe} died: {how}" for pe, how in outcome.died.items()]
    if outcome.left:
        headlines += [f"PE {pe} left the session" for pe in outcome.left]
    if outcome.timed_out:
        headlines.append(f"time limit: {name_pes(outcome.stuck)} did not finish")
    if failed:
        failure = next(report for report in merged if report.failed)
        failures = failure.longrepr
        assert isinstance(failures, PEFailures)
        if headlines:
            failures.headline = f"{'; '.join(headlines)}; {failures.headline}"
    else:
        failures = PEFailures("; ".join(headlines), item.location)
        merged[:] = [report for report in merged if report.when == "setup" and report.passed]
        merged.append(_report(item, "failed", failures, "call"))
    for pe, reason in outcome.left.items():
        failures.add(f"PE {pe} left the session", reason)
    for pe, stack in sorted(outcome.stacks.items()):
        if pe in outcome.stuck:
            state = "did not finish"
        elif pe in outcome.died:
            state = "died"
        else:
            state = "finished"
        if state != "finished":
            failures.add(f"PE {pe} {state}: its Python stack", shorten_stack(stack))
    idle = sorted(set(outcome.stacks) - set(outcome.stuck) - set(outcome.died))
    if idle:
        failures.add(f"{name_pes(idle)} finished the test", "and waited for the others")
    if outcome.died and outcome.log.strip():
        failures.add("output of the job", outcome.log[-_LOG_TAIL:])
