# SPDX-License-Identifier: Apache-2.0
"""`pypgas bench` measures, prints and stores; what the times are is not tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pypgas.bench import machine, report, timing
from pypgas.bench.cli import main
from pypgas.bench.operations import OPERATIONS

_PATIENCE = 110  # s; far more than it takes


def _bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pypgas", "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)


def _check(results: dict[str, Any], n: int) -> None:
    assert results["n_pes"] == n
    assert {"date", "command", "commit", "machine", "versions", "method", "absent"} <= set(results)
    assert {"processor", "cores", "system", "load_average"} <= set(results["machine"])
    for result in results["results"]:
        ours = result["sides"]["pypgas"]
        assert len(ours["seconds"]) == results["method"]["trials"]
        assert ours["rounds"] >= 1
        assert min(ours["seconds"]) > 0
        assert ours["best"] <= ours["median"]
        assert set(result["ratios"]) == set(result["sides"]) - {"pypgas"}


@pytest.mark.parametrize("n", [1, 2])
def test_every_operation_is_measured(n: int, tmp_path: Path) -> None:
    file, picture = tmp_path / "results.json", tmp_path / "picture.png"
    done = _bench(
        *("-n", str(n), "--sizes", "16,3", "--trials", "2", "--trial-time", "0.0002"),
        *("--json", str(file), "--plot", str(picture)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(file.read_text())
    _check(results, n)
    measured = [(result["operation"], result["nbytes"]) for result in results["results"]]
    assert measured == [(o.name, size) for o in OPERATIONS for size in ((16, 3) if o.sized else (0,))]
    for name, _ in measured:
        assert name in done.stdout
    if "mpi4py" not in results["absent"]:
        assert all("mpi4py" in result["sides"] for result in results["results"])
        assert "mpi" in results["versions"]
    assert picture.exists() != ("no plot: matplotlib is not installed" in done.stdout)


def test_without_peers(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    done = _bench(
        *("-n", "1", "--operations", "put,barrier_all", "--sizes", "8", "--peers", ""),
        *("--trials", "1", "--trial-time", "0.0002", "--json", str(file)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(file.read_text())
    _check(results, 1)
    assert [list(result["sides"]) for result in results["results"]] == [["pypgas"], ["pypgas"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--operations", "putt"], "no such operation; there are put, get"),
        (["--operations", ""], "no such operation"),
        (["--sizes", "8,many"], "'many' is not a size"),
        (["--sizes", "0"], "at least 1 byte"),
        (["--trials", "0"], "at least one trial"),
        (["-n", "0"], "at least one PE"),
        (["--peers", "gasnet"], "'gasnet' is not one of mpi4py, shmem4py"),
        (["--json", "/nowhere/at/all.json"], "no folder"),
    ],
)
def test_bad_arguments_say_what_is_possible(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_ratio_pairs_the_trials_that_ran_together() -> None:
    # The second half of the run was ten times slower for both.
    assert timing.ratio([1, 1, 10, 10, 10], [2, 2, 20, 20, 20]) == 0.5
    order: list[str] = []

    def side(name: str) -> Any:
        return lambda: (order.append(name), float(len(order)))[1]

    results = timing.interleave({"a": side("a"), "b": side("b")}, 3)
    assert order == ["a", "b"] * 3
    assert results == {"a": [1.0, 3.0, 5.0], "b": [2.0, 4.0, 6.0]}


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.5, "1.50 s"), (2.25e-3, "2.25 ms"), (12.34e-6, "12.3 µs"), (123.4e-9, "123 ns")]
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert report.format_time(seconds) == text


def test_commit_is_that_of_the_own_checkout_only(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert machine.commit(tmp_path) is None
    git("init")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "file").write_text("1")
    git("add", "ours")
    git("commit", "-m", "one file")
    found = machine.commit(tmp_path / "ours")
    assert found is not None
    assert len(found) == 40
    (tmp_path / "ours" / "file").write_text("2")
    assert machine.commit(tmp_path / "ours") == found + "-modified"
    # Installed into an environment that lies inside somebody's checkout.
    (tmp_path / "installed").mkdir()
    assert machine.commit(tmp_path / "installed") is None
