# SPDX-License-Identifier: Apache-2.0
"""Starting the processes of a pool, and reading from a launcher's output how one of them died."""

from __future__ import annotations

import re
import shlex
import signal
import sys

__all__ = ["cause_of_death", "cause_of_end", "launch_command", "signal_name"]

_MODULE = "pypgas.testing.worker"


def launch_command(template: str | None, n: int, arguments: list[str]) -> list[str]:
    """The command that starts ``n`` workers with these arguments.

    Without a template this is ``pypgas run``. A template is a launcher's command line in
    which ``{n}`` stands for the number of PEs, such as ``mpirun --oversubscribe -n {n}``.
    """
    if not template:
        return [sys.executable, "-m", "pypgas", "run", "-n", str(n), "-m", _MODULE, *arguments]
    return [*shlex.split(template.replace("{n}", str(n))), sys.executable, "-m", _MODULE, *arguments]


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11, and so on; ``signal 77`` for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# What faulthandler writes first when the process receives one of the signals it handles.
_FATAL = {
    "Segmentation fault": "SIGSEGV",
    "Floating point exception": "SIGFPE",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
}

# A PE's number and the signal or exit code that ended it, as launchers put it.
_LAUNCHERS = (
    re.compile(r"\bPE (?P<pe>\d+)\b[^\n]*?\b(?P<name>SIG[A-Z]+)\b"),
    re.compile(r"\bPE (?P<pe>\d+)\b[^\n]*?\bexit code (?P<code>\d+)\b"),
    re.compile(r"Process name: \[\S+,(?P<pe>\d+)\]\s+Exit code:\s+(?P<code>\d+)"),
    re.compile(r"process rank (?P<pe>\d+) [^.]*?exited\s+on\s+signal\s+(?P<number>\d+)", re.DOTALL),
    re.compile(r"Rank:?\s*(?P<pe>\d+)[^.]*?signal:?\s+(?P<number>\d+)", re.DOTALL),
)


def cause_of_death(pe: int, crash_text: str, log: str) -> str | None:
    """How a PE died, in words, if there is a trace of it.

    ``crash_text`` is what faulthandler wrote for it, ``log`` the launcher's output.
    """
    for line in crash_text.splitlines():
        if line.startswith("Fatal Python error: "):
            what = line.removeprefix("Fatal Python error: ")
            return f"{_FATAL.get(what, 'a fatal error')} ({what})"
    for pattern in _LAUNCHERS:
        for match in pattern.finditer(log):
            if int(match["pe"]) == pe:
                found = match.groupdict()
                if found.get("code"):
                    return f"exit code {found['code']}"
                return found.get("name") or signal_name(int(found["number"]))
    return None


def cause_of_end(exit_code: int | None) -> str:
    """What a launcher's exit code (``None``: it still runs) says about a job's first death."""
    if exit_code is not None and exit_code > 128:
        return signal_name(exit_code - 128)
    return f"exit code {exit_code}" if exit_code else "it left without a word (os._exit?)"
