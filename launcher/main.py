# SPDX-License-Identifier: Apache-2.0
"""The command line of ``pypgas``: ``run``, ``bench``, ``cache`` and ``info``."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from .launchers import LauncherError
from .run import JobSpec, run
from .sanitizers import SANITIZERS

__all__ = ["main"]

_USAGE_ERROR = 2  # as argparse has it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # `bench` has a command line of its own.
    if arguments[:1] == ["bench"]:
        from pypgas.bench import main as bench

        return int(bench(arguments[1:]) or 0)
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "info":
        return _info()
    if options.command == "cache":
        from .cache_command import cache

        return cache(options.clear)
    return _run(options, parser)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pypgas", description="One-sided communication for Python.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    job = commands.add_parser(
        "run",
        help="run a program on several PEs",
        description="Run a Python program as N processes (PEs), and end all of them if one fails.",
        usage="pypgas run [-n N] [options] (PROGRAM | -m MODULE | -c CODE) [ARGUMENTS ...]",
        epilog="The exit code is that of the PE that failed first, 128 + n if signal n ended it, 124 "
        "after the time limit. Ctrl-\\ prints where each PE is.",
    )
    job.add_argument("-n", "--np", type=int, dest="n", metavar="N", help="number of PEs (default: cores)")
    job.add_argument("--timeout", type=float, metavar="SECONDS", help="end the job after so long")
    job.add_argument(
        "--prefix", "--tag", action="store_true", help="start each line of output with its PE's number"
    )
    job.add_argument("--launcher", metavar="PATH", help="mpirun, mpiexec or srun to use (default: found)")
    job.add_argument(
        "--launcher-options", default="", metavar="OPTIONS", help="further options for it, as one word"
    )
    job.add_argument("--sanitize", choices=SANITIZERS, help="compile kernels with this sanitizer")
    job.add_argument("--verbose", action="store_true", help="show the launcher's command and output")
    job.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module")
    job.add_argument("-c", dest="code", nargs=argparse.REMAINDER, help="run code given as text")
    job.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")
    commands.add_parser("bench", help="measure this machine (see `pypgas bench --help`)", add_help=False)
    kept = commands.add_parser("cache", help="show what is kept of compiled kernels, or remove it")
    kept.add_argument("--clear", action="store_true", help="remove all of it")
    commands.add_parser("info", help="say what pypgas finds on this machine")
    return parser


def _run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    kind, words = "file", options.program
    if options.module is not None:
        kind, words = "module", options.module
    elif options.code is not None:
        kind, words = "code", options.code
    n = len(os.sched_getaffinity(0)) if options.n is None else options.n
    problem = None
    if not words:
        problem = "no program given"
    elif n < 1:
        problem = f"a job has at least one PE, not {n}"
    elif options.timeout is not None and not options.timeout > 0:
        problem = f"the time limit must be above 0 s, not {options.timeout:g}"
    elif kind == "file" and not Path(words[0]).exists():
        problem = f"there is no program {words[0]!r}"
    elif kind == "file" and not os.access(words[0], os.R_OK):
        problem = f"the program {words[0]!r} can't be read"
    if problem is not None:
        print(f"pypgas run: {problem}", file=sys.stderr)
        return _USAGE_ERROR
    spec = JobSpec(
        n=n,
        kind=kind,
        program=words[0],
        arguments=words[1:],
        timeout=options.timeout,
        prefix=options.prefix,
        launcher=options.launcher,
        launcher_options=shlex.split(options.launcher_options),
        verbose=options.verbose,
        sanitize=options.sanitize,
    )
    try:
        return run(spec)
    except LauncherError as error:
        print(f"pypgas run: {error}", file=sys.stderr)
        return _USAGE_ERROR


def _info() -> int:
    import pypgas

    for name, value in pypgas.info().items():
        print(f"{name}: {value}")
    return 0
