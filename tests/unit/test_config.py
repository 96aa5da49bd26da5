# SPDX-License-Identifier: Apache-2.0
"""Settings: where they come from, how they are spelled, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pypgas.config import NO_TIME_LIMIT, Settings, format_size, parse_size
from pypgas.errors import ConfigError, PgasError

ALL_VARIABLES = ["PYPGAS_" + field.name.upper() for field in dataclasses.fields(Settings)]


def test_defaults() -> None:
    settings = Settings.from_environment({})
    assert settings == Settings()
    assert settings.heap_size is None
    assert settings.wait_timeout == 300.0
    assert settings.wait_report == 10.0
    assert settings.max_teams == 64
    assert settings.staging_size == 256 * 1024
    assert settings.log_level == "WARNING"
    assert settings.job_dir is None


def test_every_setting_has_a_variable(tmp_path: Path) -> None:
    environ = {
        "PYPGAS_HEAP_SIZE": "1.5G",
        "PYPGAS_WAIT_TIMEOUT": "2.5",
        "PYPGAS_WAIT_REPORT": "1",
        "PYPGAS_MAX_TEAMS": "8",
        "PYPGAS_STAGING_SIZE": "1MiB",
        "PYPGAS_LOG_LEVEL": "debug",
        "PYPGAS_CACHE_DIR": str(tmp_path / "cache"),
        "PYPGAS_CACHE_SIZE": "64M",
        "PYPGAS_SANITIZE": "address",
        "PYPGAS_JOB_DIR": str(tmp_path),
        "UNRELATED": "x",
    }
    assert sorted(set(environ) - {"UNRELATED"}) == sorted(ALL_VARIABLES)
    assert dataclasses.asdict(Settings.from_environment(environ)) == {
        "heap_size": 3 << 29,
        "wait_timeout": 2.5,
        "wait_report": 1.0,
        "max_teams": 8,
        "staging_size": 1 << 20,
        "log_level": "DEBUG",
        "cache_dir": str(tmp_path / "cache"),
        "cache_size": 64 << 20,
        "sanitize": "address",
        "job_dir": str(tmp_path),
    }


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPGAS_MAX_TEAMS", "9")
    assert Settings.from_environment().max_teams == 9


def test_keywords_win_and_none_means_not_given() -> None:
    environ = {"PYPGAS_HEAP_SIZE": "64M", "PYPGAS_MAX_TEAMS": "8"}
    settings = Settings.from_environment(environ, heap_size="128M", max_teams=None)
    assert settings.heap_size == 128 << 20
    assert settings.max_teams == 8


def test_an_empty_variable_counts_as_unset() -> None:
    assert Settings.from_environment({"PYPGAS_HEAP_SIZE": " "}).heap_size is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HEAP_SIZE", "lots"),
        ("HEAP_SIZE", "-1G"),
        ("HEAP_SIZE", "1X"),
        ("HEAP_SIZE", "1"),
        ("HEAP_SIZE", "0"),
        ("WAIT_TIMEOUT", "soon"),
        ("WAIT_TIMEOUT", "0"),
        ("WAIT_TIMEOUT", "-3"),
        ("WAIT_TIMEOUT", "nan"),
        ("MAX_TEAMS", "many"),
        ("MAX_TEAMS", "2.5"),
        ("MAX_TEAMS", "1"),
        ("MAX_TEAMS", "1000000"),
        ("STAGING_SIZE", "12"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_malformed_variable_lists_the_valid_ones(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"PYPGAS_{name}") as caught:
        Settings.from_environment({f"PYPGAS_{name}": value})
    for variable in ALL_VARIABLES:
        assert variable in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, PgasError)


@pytest.mark.parametrize("variable", ["PYPGAS_HEAPSIZE", "PYPGAS_heap_size", "PYPGAS_"])
def test_an_unknown_variable_lists_the_valid_ones(variable: str) -> None:
    with pytest.raises(ConfigError, match=f"{variable}: no such setting") as caught:
        Settings.from_environment({variable: "1"})
    for known in ALL_VARIABLES:
        assert known in str(caught.value)


def test_a_misspelled_name_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean PYPGAS_HEAP_SIZE\?"):
        Settings.from_environment({"PYPGAS_HEAP_SZIE": "1G"})
    with pytest.raises(ConfigError, match=r"Did you mean wait_timeout\?"):
        Settings.from_environment({}, wait_time=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("heap_size", 1.5),
        ("heap_size", True),
        ("heap_size", b"1G"),
        ("max_teams", "x"),
        ("max_teams", None.__class__),
        ("wait_timeout", True),
        ("wait_timeout", [1]),
        ("log_level", 3),
        ("job_dir", 3),
    ],
)
def test_a_malformed_keyword(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"setting {name}"):
        Settings.from_environment({}, **{name: value})


def test_numpy_numbers_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    settings = Settings(heap_size=numpy.int64(1 << 20), wait_timeout=numpy.float32(2.0))
    assert type(settings.heap_size) is int
    assert type(settings.wait_timeout) is float


def test_no_limit_stays_a_finite_number() -> None:
    settings = Settings.from_environment({"PYPGAS_WAIT_TIMEOUT": "inf"})
    assert settings.wait_timeout == NO_TIME_LIMIT
    assert int(settings.wait_timeout * 1e9) < 2**63


def test_staging_holds_whole_elements() -> None:
    assert Settings(staging_size=5000).staging_size == 5056
    assert Settings.from_environment({}, staging_size="8K").staging_size == 8192


def test_settings_are_frozen_and_checked_when_made_directly() -> None:
    settings = Settings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.max_teams = 3  # type: ignore[misc]
    with pytest.raises(ConfigError):
        Settings(max_teams=0)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("4096", 4096),
        ("2k", 2048),
        (" 3 M ", 3 << 20),
        ("1.5GiB", 3 << 29),
        ("2GB", 2 << 30),
        ("9007199254740993", 9007199254740993),
        ("1T", 1 << 40),
    ],
)
def test_sizes(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes
    assert parse_size(format_size(nbytes)) == nbytes


@pytest.mark.parametrize("text", ["", "M", "1.G", "1e6", "1 2", "-4", "0x10", "1Kib b"])
def test_not_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


def test_description_has_a_line_for_each_variable() -> None:
    lines = Settings.describe().splitlines()
    assert [line.split()[0].rstrip(":") for line in lines] == ALL_VARIABLES
    assert "[256K]" in Settings.describe()
