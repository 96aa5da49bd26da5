# SPDX-License-Identifier: Apache-2.0
"""The figures that pypgas must reach on a machine without a GPU, each with its target.

    python benchmarks/must_reach.py [--only PART] [--repeat N] [--no-save]

Every figure is a ratio or a difference within one run. Figures that move with the load of the machine are measured
again, up to ``--repeat`` times, while the machine is busy (more runnable processes than cores when a part begins);
the median of the repetitions counts and all of them are kept. The results go to ``benchmarks/results/`` as text and
JSON with date, commit, command and hardware.

The exit code is 0 if every target that could be measured is met.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import operator
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pypgas.bench import machine

HERE = Path(__file__).resolve().parent
PATIENCE = 300  # s for one job
MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Target:
    """A figure and what it must be.

    Attributes:
        name: What is measured.
        find: Takes the figure from a part's results; KeyError: it could not be measured there.
        limit: What it must reach.
        at_least: Whether larger is better.
        unit: Shown after the figure.
    """

    name: str
    find: Callable[[dict[str, Any]], float]
    limit: float
    at_least: bool = False
    unit: str = ""

    def met(self, value: float) -> bool:
        """Whether the figure is good enough."""
        return value >= self.limit if self.at_least else value <= self.limit


@dataclasses.dataclass(frozen=True)
class Part:
    """Figures that one job gives.

    Attributes:
        name: For ``--only``.
        pes: Size of the job.
        arguments: After ``pypgas``; ``{out}`` stands for the file of the results.
        targets: The figures.
    """

    name: str
    pes: int
    arguments: Sequence[str]
    targets: Sequence[Target]


def _ratio(operation: str, peer: str) -> Callable[[dict[str, Any]], float]:
    def find(results: dict[str, Any]) -> float:
        row = next(row for row in results["results"] if row["operation"] == operation)
        return float(row["ratios"][peer])

    return find


def _figure(*path: str, scale: float = 1.0) -> Callable[[dict[str, Any]], float]:
    def find(results: dict[str, Any]) -> float:
        value: Any = results
        for key in path:
            value = value[key]
        return float(value) / scale

    return find


def _bench(pes: int, operations: str, *more: str) -> list[str]:
    wanted = ["--operations", operations, "--sizes", "8", "--json", "{out}"]
    return ["bench", "-n", str(pes), *wanted, *more]


def _job(pes: int, name: str) -> list[str]:
    return ["run", "-n", str(pes), "--timeout", "200", str(HERE / "jobs" / f"{name}.py"), "{out}"]


PARTS = (
    Part(
        "latency",
        2,
        _bench(2, "put,get,atomic_fetch_add,barrier_all"),
        (
            Target("put of 8 B and quiet, time over mpi4py's Put and Flush", _ratio("put", "mpi4py"), 0.5),
            Target("get of 8 B, time over mpi4py's Get and Flush", _ratio("get", "mpi4py"), 0.5),
            Target(
                "atomic_fetch_add, time over mpi4py's Fetch_and_op and Flush",
                _ratio("atomic_fetch_add", "mpi4py"),
                0.6,
            ),
            Target("put of 8 B and quiet, time over shmem4py's", _ratio("put", "shmem4py"), 0.15),
            Target("get of 8 B, time over shmem4py's", _ratio("get", "shmem4py"), 0.15),
            Target("barrier_all at 2 PEs, time over mpi4py's", _ratio("barrier_all", "mpi4py"), 1.0),
        ),
    ),
    Part(
        "barrier",
        8,
        _bench(8, "barrier_all", "--peers", "mpi4py"),
        (Target("barrier_all at 8 PEs, time over mpi4py's", _ratio("barrier_all", "mpi4py"), 1.0),),
    ),
    Part(
        "copies",
        2,
        _job(2, "large_copies"),
        (
            Target("put of 64 MiB, bandwidth over numpy.copyto's", _figure("put"), 0.95, at_least=True),
            Target("get of 64 MiB, bandwidth over numpy.copyto's", _figure("get"), 0.95, at_least=True),
        ),
    ),
    Part(
        "atomics",
        2,
        _job(2, "bulk_atomics"),
        (Target("bulk atomic_add, rate over the loop's in C", _figure("bulk"), 0.5, at_least=True),),
    ),
    Part(
        "startup",
        4,
        _job(4, "startup"),
        (
            Target(
                "import of pypgas and init at 4 PEs, beyond MPI and NumPy",
                _figure("import and init"),
                0.3,
                unit=" s",
            ),
            Target("resident memory beyond mpi4py's", _figure("added bytes", scale=1e6), 40, unit=" MB"),
        ),
    ),
    Part(
        "footprint",
        2,
        _job(2, "footprint"),
        (
            Target(
                "pages touched by zeros of 1 GiB",
                _figure("touched by zeros of 1 GiB", scale=MIB),
                1,
                unit=" MiB",
            ),
            Target("bookkeeping per live array", _figure("bytes per live array"), 1024, unit=" B"),
            Target("descriptors, sockets and threads constant", _figure("constant"), 1, at_least=True),
        ),
    ),
    Part(
        "allocation",
        2,
        _job(2, "allocation"),
        (
            # log(10,000) / log(10) is allowed.
            Target("allocate and free with 10,000 arrays over with 10", _figure("growth"), 4.0),
        ),
    ),
)


def _run(part: Part) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results.json")
        arguments = [argument.replace("{out}", str(out)) for argument in part.arguments]
        # An installed package has its bytecode; a checkout gets it in the first run.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        command = [sys.executable, "-m", "pypgas", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
        results: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        # Some builds of Open MPI crash in shmem4py's finalization, after everything has been measured.
        if done.returncode != 0 and "openshmem" not in results.get("versions", {}):
            raise RuntimeError(f"{part.name} failed with code {done.returncode}:\n{done.stdout}{done.stderr}")
        results["command"] = ["pypgas", *part.arguments]  # without the temporary file's name
        return results


def _busy() -> bool:
    """Whether other processes want the cores now: the load average looks back too far."""
    cores = len(os.sched_getaffinity(0))
    running = []
    for _ in range(5):
        running.append(int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1)
        time.sleep(0.05)
    return statistics.median(running) >= cores


def _measure(part: Part, repeat: int) -> list[dict[str, Any]]:
    runs = []
    for _ in range(repeat):
        busy = _busy()
        results = _run(part)
        results["busy"] = busy
        runs.append(results)
        if not busy:
            return runs[-1:]  # an undisturbed run needs no other beside it
    return runs


def _judge(target: Target, runs: list[dict[str, Any]]) -> dict[str, Any]:
    try:
        values = [target.find(run) for run in runs]
    except KeyError:
        return {"name": target.name, "values": [], "met": None}
    value = statistics.median(values)
    sign = operator.itemgetter(target.at_least)(("at most", "at least"))
    return {
        "name": target.name,
        "value": value,
        "values": values,
        "unit": target.unit.strip(),
        "target": f"{sign} {target.limit:g}{target.unit}",
        "met": target.met(value),
        "busy": all(run["busy"] for run in runs),
    }


def _line(figure: dict[str, Any]) -> str:
    if figure["met"] is None:
        return f"{figure['name']:<62} not measured"
    value = f"{figure['value']:.3g} {figure['unit']}".strip()
    verdict = "ok" if figure["met"] else "MISSED (busy machine)" if figure["busy"] else "MISSED"
    return f"{figure['name']:<62}{value:>10}   {figure['target']:<16}{verdict}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = [part.name for part in PARTS]
    parser.add_argument("--only", choices=names, action="append", help="measure this part (may be repeated)")
    parser.add_argument("--repeat", type=int, default=3, help="most runs of a part on a busy machine")
    parser.add_argument("--no-save", action="store_true", help="write nothing to benchmarks/results")
    options = parser.parse_args()
    report = machine.facts(["benchmarks/must_reach.py", *sys.argv[1:]])
    shown = [
        f"{report['date']}  pypgas {report['versions']['pypgas']}, commit {report['commit']}",
        f"{report['machine']['cores']} cores, {report['machine']['processor']}, {report['machine']['system']}",
        "",
    ]
    print("\n".join(shown), flush=True)
    report["parts"], report["figures"] = {}, []
    for part in PARTS:
        if options.only and part.name not in options.only:
            continue
        runs = _measure(part, max(1, options.repeat))
        report["parts"][part.name] = {"pes": part.pes, "runs": runs}
        for target in part.targets:
            figure = _judge(target, runs)
            report["figures"].append(figure)
            shown.append(_line(figure))
            print(shown[-1], flush=True)
    report["machine"]["load_average_after"] = list(os.getloadavg())
    report["seconds"] = (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(report["date"])).total_seconds()
    if not options.no_save:
        folder = HERE / "results"
        folder.mkdir(exist_ok=True)
        name = f"{report['date'][:19].replace(':', '')}-must-reach"
        (folder / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
        (folder / f"{name}.txt").write_text("\n".join(shown) + "\n")
    return 1 if any(figure["met"] is False for figure in report["figures"]) else 0


if __name__ == "__main__":
    sys.exit(main())
