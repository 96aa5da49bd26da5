# SPDX-License-Identifier: Apache-2.0
"""Explaining waits: who is missing, what they are doing, and where the calls came from."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from .. import _native
from ..dtypes import name_of_code
from ..errors import CollectiveMismatchError, KernelError, PeerFailedError, PgasError, WaitTimeoutError

__all__ = ["SECONDARY", "call_site", "describe_pe", "explain", "report"]

_log = logging.getLogger("pypgas")

SECONDARY = "it left because of the failed PEs"
"""How the reason of a PE starts that failed only because others had failed before."""

_PHASES = ("not started", "running", "finalized", "failed")
_RUNNING, _FINALIZED, _FAILED = 1, 2, 3
_SITE_PATIENCE = 2.0  # seconds to wait for the call sites of the other PEs of a mismatched call
_REDUCTIONS = ("sum", "prod", "min", "max", "and", "or", "xor")
_MOST_LISTED = 16


def call_site() -> str:
    """Return ``"file:line"`` of the innermost caller outside pypgas."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "pypgas":
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def describe_pe(pe: int) -> str:
    """Return what a PE of this node is doing, as a phrase."""
    status = _native.status(pe)
    if status["phase"] == _FAILED:
        return f"PE {pe} has failed: {status['reason'] or 'no reason known'}"
    if status["phase"] != _RUNNING:
        return f"PE {pe} is {_PHASES[status['phase']]}"
    if status["waiting"]:
        return f"PE {pe} has been in {status['site']} for {status['since']:.1f} s"
    return f"PE {pe} is running, not waiting in pypgas"


def _describe(pes: list[int]) -> str:
    listed = [describe_pe(pe) for pe in pes[:_MOST_LISTED]]
    if len(pes) > _MOST_LISTED:
        listed.append(f"and {len(pes) - _MOST_LISTED} more")
    return "; ".join(listed)


def _others() -> list[int]:
    return [pe for pe in range(_native.n_pes()) if pe != _native.my_pe()]


def _what(facts: dict[str, Any]) -> str:
    """What is waited for, as a phrase after the operation's name."""
    if "seen" in facts:
        compare = f" {facts['compare'].value}" if "compare" in facts else ""
        return f"for the variable at heap offset {facts['offset']} to be{compare} {facts['expected']}; it is {facts['seen']}"
    if "team" in facts:
        return f"on {_team_name(facts['team'])}"
    return "for the lock"


def _team_name(team: Any) -> str:
    return str(getattr(team, "name", "a team"))


def report(_: str, facts: dict[str, Any]) -> None:
    """Log a wait that has lasted long (called from the native wait)."""
    pes = facts["pes"] or _others()
    missing = f"missing PEs {facts['pes']}: " if facts["pes"] else ""
    _log.warning(
        "PE %d: %s: has waited %.0f s %s. %s%s",
        _native.my_pe(),
        facts["operation"],
        facts["elapsed"],
        _what(facts),
        missing,
        _describe(pes),
    )


def explain(outcome: str, facts: dict[str, Any]) -> PgasError:
    """Return the exception for a wait or collective that can't be completed (called from native code)."""
    here = f"PE {_native.my_pe()}: {facts['operation']}"
    if outcome == "kernel":
        return _kernel(here, facts)
    if outcome == "mismatch":
        return _mismatch(here, facts)
    if outcome == "failed":
        pes = [pe for pe in facts["pes"] if not _native.status(pe)["reason"].startswith(SECONDARY)] or facts[
            "pes"
        ]
        return PeerFailedError(
            f"{here}: waiting {_what(facts)}, but {_describe(pes)}. The job can't go on with this PE; "
            "look at its own message first",
            pes,
        )
    missing = facts["pes"]
    who = (
        f"PEs {missing} are missing: {_describe(missing)}"
        if missing
        else f"The other PEs: {_describe(_others())}"
    )
    return WaitTimeoutError(
        f"{here}: gave up after {facts['elapsed']:.3g} s {_what(facts)}. {who}. "
        "(The limit is timeout=, or the setting wait_timeout, PYPGAS_WAIT_TIMEOUT)",
        missing,
    )


def _kernel(here: str, facts: dict[str, Any]) -> PgasError:
    """The exception for a kernel or an operation on a stream that failed."""
    kernel, block, thread, kind, text = (facts[key] for key in ("kernel", "block", "thread", "kind", "text"))
    where = f"kernel {kernel}" if kernel else "an operation on the stream"
    if block is not None:
        where += f", block {block}"
    if thread is not None:
        where += f", thread {thread}"
    if kind == "peer":
        dead = "; ".join(describe_pe(pe) for pe in facts["pes"])
        return PeerFailedError(f"{here}: {where} waited ({text}), but {dead}", facts["pes"])
    if kind == "timeout":
        others = _describe(_others())
        return WaitTimeoutError(
            f"{here}: {where} gave up waiting after the limit (wait_timeout): {text}. The other PEs: {others}"
        )
    if kind == "endless":
        return KernelError(f"{here}: {where} {text}", kernel, block, thread)
    return KernelError(f"{here}: {where} failed: {kind}: {text}", kernel, block, thread)


def _mismatch(here: str, facts: dict[str, Any]) -> CollectiveMismatchError:
    team, epoch = facts["team"], facts["epoch"]
    tag = (team._id << 48) | (epoch & ((1 << 48) - 1))
    _native.publish_site(call_site()[-230:], tag)
    calls = {pe: tuple(rest) for pe, *rest in facts["calls"]}
    sites = _sites(list(calls), tag)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for pe, call in calls.items():
        groups.setdefault(call, []).append(pe)
    # What most PEs called counts as right; the others differ. A tie blames the higher PEs.
    usual = max(groups.values(), key=len)
    differ = sorted(pe for pes in groups.values() if pes is not usual for pe in pes)
    text = "; ".join(
        f"PE{'s' if len(pes) > 1 else ''} {', '.join(map(str, pes))} called {_call_text(*call)} at {sites[pes[0]]}"
        for call, pes in groups.items()
    )
    return CollectiveMismatchError(
        f"{here}: the PEs of {_team_name(team)} made different collective calls (call number {epoch}): {text}. "
        f"PEs {differ} differ. Collective calls must come in the same order with the same sizes on every PE",
        differ,
    )


def _call_text(operation: str, nbytes: int, dtype: int, detail: int) -> str:
    if operation in ("barrier", "sync", "finalize"):
        return f"{operation}()"
    if operation == "allocate":
        return f"allocate({nbytes} bytes, align={detail})"
    if operation == "free":
        return f"free(array number {nbytes})"
    if operation == "split":
        return "a split of the team"
    if detail in (-2, -3):  # the later steps of a long collective
        return f"a later step of {operation}() at byte {nbytes}"
    name = name_of_code(dtype)
    how = (
        f"op={_REDUCTIONS[detail]!r}"
        if operation.endswith("scan") or operation.startswith("reduce")
        else f"root={detail}"
    )
    return f"{operation}({nbytes} bytes of {name}, {how})"


def _sites(pes: list[int], tag: int) -> dict[int, str]:
    deadline = time.monotonic() + _SITE_PATIENCE
    sites: dict[int, str] = {}
    while len(sites) < len(pes):
        for pe in pes:
            status = _native.status(pe)
            if status["mismatch"] == tag:
                sites[pe] = status["site"]
            elif status["phase"] != _RUNNING or time.monotonic() > deadline:
                sites.setdefault(pe, "an unknown place")
        time.sleep(0.0005)
    return sites
