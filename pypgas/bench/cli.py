# SPDX-License-Identifier: Apache-2.0
"""The command line of ``pypgas bench``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pypgas as pg

from ..bootstrap.select import detect_launch
from ..config import parse_size
from ..errors import BootstrapError
from . import machine, report
from .mpi import Mpi4py
from .operations import OPERATIONS, Operation, Side, select
from .ours import Ours
from .plot import plot
from .shmem4py import Shmem4py
from .timing import Measurement, measure

__all__ = ["main"]

_SIZES = "8,512,8K,128K,1M,16M"
_PEERS = ("mpi4py", "shmem4py")


def _parser() -> argparse.ArgumentParser:
    lines = [f"  {o.name:<20} {o.summary}" for o in OPERATIONS]
    parser = argparse.ArgumentParser(
        prog="pypgas bench",
        description="Measure operations beside mpi4py's (and shmem4py's, where it is installed) in the same run. "
        "Times are of one round, medians; a ratio is the median of pypgas's time over the peer's, so that "
        "below 1 pypgas is faster.",
        epilog="operations:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-n", "--np", type=int, dest="n", metavar="N", help="number of PEs (default: 2)")
    parser.add_argument("--operations", metavar="A,B,...", help="what to measure (default: everything)")
    parser.add_argument("--sizes", default=_SIZES, metavar="A,B,...", help=f"bytes (default: {_SIZES})")
    parser.add_argument("--trials", type=int, default=7, help="interleaved trials (default: 7)")
    parser.add_argument(
        "--trial-time", type=float, default=0.01, metavar="SECONDS", help="length of a trial (default: 0.01)"
    )
    parser.add_argument(
        "--peers", default=",".join(_PEERS), metavar="A,B", help=f"beside what (default: {','.join(_PEERS)})"
    )
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    parser.add_argument("--plot", metavar="FILE", help="draw them there (needs matplotlib)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Outside a job this starts one of the wanted size; inside a job every PE calls it.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        operations = select(options.operations)
        sizes = [parse_size(size) for size in options.sizes.split(",")]
        if min(sizes) < 1:
            raise ValueError("sizes are at least 1 byte")
        if options.trials < 1 or not options.trial_time > 0:
            raise ValueError("there is at least one trial, and it takes time")
        if options.n is not None and options.n < 1:
            raise ValueError(f"a job has at least one PE, not {options.n}")
        peers = [peer.strip() for peer in options.peers.split(",") if peer.strip()]
        unknown = [peer for peer in peers if peer not in _PEERS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(_PEERS)}")
        # Found out now and not when everything has been measured.
        for file in (options.json, options.plot):
            if file is not None and not Path(file).absolute().parent.is_dir():
                raise ValueError(f"there is no folder for {file}")
    except ValueError as error:
        parser.error(str(error))
    n = 2 if options.n is None else options.n
    if detect_launch(os.environ) is None and n > 1:
        command = [sys.executable, "-m", "pypgas", "run", "-n", str(n), "-m", "pypgas.bench", *argv]
        return subprocess.run(command).returncode
    with pg.init():
        if options.n is not None and options.n != pg.n_pes():
            parser.error(f"-n {options.n} inside a job of {pg.n_pes()} PEs; leave it out")
        return _bench(options, argv, operations, sizes, peers)


def _bench(
    options: argparse.Namespace,
    argv: Sequence[str],
    operations: Sequence[Operation],
    sizes: Sequence[int],
    peers: Sequence[str],
) -> int:
    first = pg.my_pe() == 0
    facts: dict[str, Any] = machine.facts(["pypgas", "bench", *argv]) if first else {}
    sides, absent = _sides(peers, max(sizes))
    names = [side.name for side in sides]
    results: list[Measurement] = []
    if first:
        for name, reason in absent.items():
            print(f"{name} is left out: {reason}")
        print(f"{pg.n_pes()} PEs on {facts['machine']['cores']} cores, {facts['machine']['processor']}")
        print(report.header(names), flush=True)
    for operation in operations:
        for nbytes in sizes if operation.sized else [0]:
            results.append(measure(operation, nbytes, sides, options.trials, options.trial_time))
            if first:
                print(report.row(results[-1], names), flush=True)
    for side in reversed(sides):
        side.close()
    if not first:
        return 0
    for side in sides:
        facts["versions"].update(side.versions())
    facts.update(
        n_pes=pg.n_pes(), absent=absent, method={"trials": options.trials, "trial_time": options.trial_time}
    )
    return _save(options, facts, results)


def _sides(peers: Sequence[str], largest: int) -> tuple[list[Side], dict[str, str]]:
    """The libraries that every PE can use, and why others can't be used."""
    sides: list[Side] = [Ours()]
    absent: dict[str, str] = {}
    for name in peers:
        side: Side | None = None
        reason = ""
        try:
            side = Mpi4py(pg.n_pes(), largest) if name == "mpi4py" else Shmem4py(pg.n_pes())
        except (ImportError, BootstrapError, ValueError, OSError, RuntimeError) as error:
            reason = str(error) or type(error).__name__
        # A library that only some PEs have would make them wait for the others.
        if int(pg.reduce(int(side is not None), "min")) and side is not None:
            sides.append(side)
        else:
            absent[name] = reason or "another PE can't use it"
    return sides, absent


def _save(options: argparse.Namespace, facts: dict[str, Any], results: Sequence[Measurement]) -> int:
    code = 0
    if options.json is not None:
        text = json.dumps({**facts, "results": [report.as_json(m) for m in results]}, indent=1)
        try:
            Path(options.json).write_text(text + "\n")
        except OSError as error:
            print(f"pypgas bench: {options.json}: {error}", file=sys.stderr)
            code = 1
    if options.plot is not None:
        title = f"{facts['n_pes']} PEs, {facts['machine']['processor']}, {facts['date']}"
        try:
            plot(results, title, options.plot)
        except ImportError:
            print("no plot: matplotlib is not installed (pip install matplotlib)")
        except (OSError, ValueError) as error:
            print(f"pypgas bench: {options.plot}: {error}", file=sys.stderr)
            code = 1
    return code
