# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: tests marked ``pes`` run on every PE of real jobs.

An ordinary ``pytest`` process is the controller. For each number of PEs it starts one job
and runs all tests at that number in it, in lock-step; a failure, crash or hang of any PE
is that test's failure, and a new job runs the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pypgas.testing import marks, side
from pypgas.testing.controller import Controller, Settings

__all__: list[str] = []

_PARAMETER = "pypgas_pes"
_controller = pytest.StashKey[Controller]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pypgas", "pypgas: tests that run on every PE of a job")
    group.addoption(
        "--pes",
        dest="pypgas_pes",
        metavar="N,N,...",
        help="numbers of PEs at which marked tests run (default: pypgas_pes of the ini file, else 1,2,3,4)",
    )
    group.addoption(
        "--mpi-launch",
        dest="pypgas_launch",
        metavar="COMMAND",
        help="how to start a job, such as 'mpirun --oversubscribe -n {n}' (default: pypgas run)",
    )
    group.addoption(
        "--time-limit",
        dest="pypgas_time_limit",
        type=float,
        metavar="SECONDS",
        help="time limit of a test that runs on PEs (default: pypgas_time_limit of the ini file, else 60)",
    )
    parser.addini(
        "pypgas_paths", "folders whose tests all run on PEs, marked or not", type="paths", default=[]
    )
    parser.addini("pypgas_pes", "numbers of PEs at which marked tests run", default="1,2,3,4")
    parser.addini("pypgas_time_limit", "seconds after which a test that runs on PEs has failed", default="60")
    parser.addini(
        "pypgas_grace", "seconds the other PEs get to finish a test after one has failed", default="3"
    )
    parser.addini("pypgas_start_limit", "seconds within which a job must have started", default="120")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "pes(*counts, min=1): run the test on every PE of a job, at these numbers of PEs "
        "(without counts: at those of --pes that are at least min)",
    )
    config.addinivalue_line("markers", "time_limit(seconds): fail the test when it takes longer on any PE")
    if _worker_pes(config) is not None:
        return
    settings = Settings(
        template=config.getoption("pypgas_launch"),
        time_limit=_number(config, "pypgas_time_limit", config.getoption("pypgas_time_limit")),
        grace=_number(config, "pypgas_grace"),
        start_limit=_number(config, "pypgas_start_limit"),
    )
    _counts(config)  # complains before any test runs
    config.stash[_controller] = Controller(config, settings)


def pytest_unconfigure(config: pytest.Config) -> None:
    controller = config.stash.get(_controller, None)
    if controller is not None:
        controller.close()


def pytest_report_header(config: pytest.Config) -> str:
    asked, default = _counts(config)
    counts = ",".join(map(str, asked if asked is not None else default))
    launcher = config.getoption("pypgas_launch") or "pypgas run"
    return f"pypgas: tests on {counts} PEs by {launcher!r}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    definition: Any = metafunc.definition
    if not _is_parallel(definition, metafunc.config):
        return
    n = _worker_pes(metafunc.config)
    asked, default = _counts(metafunc.config)
    counts = marks.counts_for(definition, asked, default)
    if n is not None:
        counts = [n] if n in counts else []
    metafunc.fixturenames.append(_PARAMETER)
    metafunc.parametrize(_PARAMETER, counts, ids=[f"pes={count}" for count in counts], indirect=True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    result = yield
    excluded = [item for item in items if _has_no_count(item)]
    if excluded:
        config.hook.pytest_deselected(items=excluded)
        items[:] = [item for item in items if not _has_no_count(item)]
    # Ordinary tests first, then the jobs in order of size: each is started once.
    items.sort(key=lambda item: _pes_of(item) or 0)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    n = _pes_of(item)
    controller = item.config.stash.get(_controller, None)
    if controller is None or n is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in controller.run(item, n, _upcoming(item, n)):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    if nextitem is None or item.session.shouldfail or item.session.shouldstop:
        controller.close()
    return True


@pytest.fixture(scope="session")
def pypgas_pes(request: pytest.FixtureRequest) -> int:
    """The number of PEs of the job that runs this test."""
    return int(getattr(request, "param", 1))


@pytest.fixture
def shared_tmp_path(tmp_path: Path) -> Path:
    """A temporary folder that all PEs of the test share (``tmp_path`` is each PE's own)."""
    return side.shared_folder() or tmp_path


def _upcoming(item: pytest.Item, n: int) -> Sequence[pytest.Item]:
    items = item.session.items
    position: dict[str, int] | None = getattr(item.session, "_pypgas_positions", None)
    if position is None or len(position) != len(items):
        position = {other.nodeid: index for index, other in enumerate(items)}
        item.session._pypgas_positions = position  # type: ignore[attr-defined]
    upcoming = []
    for other in items[position[item.nodeid] + 1 :]:
        if _pes_of(other) != n:
            break
        upcoming.append(other)
    return upcoming


def _pes_of(item: pytest.Item) -> int | None:
    callspec = getattr(item, "callspec", None)
    n = None if callspec is None else callspec.params.get(_PARAMETER)
    return n if isinstance(n, int) else None


def _has_no_count(item: pytest.Item) -> bool:
    """Whether a parallel test runs at none of the numbers of PEs asked for."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and _PARAMETER in callspec.params and _pes_of(item) is None


def _is_parallel(definition: Any, config: pytest.Config) -> bool:
    if definition.get_closest_marker("pes") is not None:
        return True
    return any(folder in definition.path.parents for folder in config.getini("pypgas_paths"))


def _worker_pes(config: pytest.Config) -> int | None:
    """The size of the job this process is a PE of, in a worker."""
    n = getattr(config.option, "pypgas_worker", None)
    return None if n is None else int(n)


def _counts(config: pytest.Config) -> tuple[list[int] | None, list[int]]:
    asked = config.getoption("pypgas_pes")
    return (None if asked is None else marks.parse_counts(asked)), marks.parse_counts(
        config.getini("pypgas_pes")
    )


def _number(config: pytest.Config, name: str, given: float | None = None) -> float:
    text = config.getini(name) if given is None else given
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise pytest.UsageError(f"{name}: expected a positive number of seconds, got {text!r}")
    return value
