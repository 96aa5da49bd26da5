# SPDX-License-Identifier: Apache-2.0
"""The test harness, tested by a suite with everything in it that can go wrong."""

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

SUITE = """
import os, signal, sys, time, warnings
import pytest
from hypothesis import strategies as st
import pypgas as pg
from pypgas.testing import agree, exchange, given, lockstep_settings, pes, shared_random, time_limit

pytestmark = pes(2)
me = pg.my_pe
kept = []


def test_first():
    assert pg.n_pes() == 2

@pytest.mark.parametrize("x", [1, 2])
@pytest.mark.parametrize("y", ["a", "b"])
def test_parameters(x, y, pypgas_pes):
    assert pypgas_pes == 2

class TestClass:
    @pytest.fixture(scope="class")
    def resource(self):
        made = [0]
        yield made
        assert made == [2]

    def test_one(self, resource):
        resource[0] += 1

    def test_two(self, resource):
        resource[0] += 1
        assert resource == [2]

def test_folders(tmp_path, shared_tmp_path):
    (tmp_path / "x").write_text("mine")
    (shared_tmp_path / str(me())).write_text("ours")
    assert len(set(exchange(str(tmp_path)))) == 2
    assert sorted(p.name for p in shared_tmp_path.iterdir()) == ["0", "1"]

def test_same_random_numbers():
    assert len(set(exchange(shared_random(3).integers(1 << 60)))) == 1

def test_warns():
    warnings.warn("mind the gap")

def test_assert_on_one_pe():
    print("printed by", me())
    assert me() == 0, "only zero will do"

def test_after_assert(): pass

def test_assert_on_all_pes():
    assert 1 == 2

def test_one_fails_while_the_other_waits():
    if me() == 1:
        raise ValueError("wrong value on one")
    time.sleep(100)

def test_after_one_fails(): pass

def test_crash():
    if me() == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(100)

def test_after_crash(): pass

def test_killed():
    if me() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(100)

def test_after_killed(): pass

def test_exit():
    if me() == 1:
        os._exit(7)

def test_sys_exit():
    if me() == 1:
        sys.exit(3)

def test_interrupt():
    if me() == 1:
        raise KeyboardInterrupt

def waits_forever_here():
    time.sleep(100)

@time_limit(2)
def test_hang():
    if me() == 1:
        waits_forever_here()

@time_limit(2)
def test_hang_on_all():
    waits_forever_here()

def test_after_hang(): pass

@time_limit(3)
def test_barrier_of_one():
    if me() == 1:
        pg.barrier_all()

@pytest.fixture(scope="module")
def lasting():
    return pg.zeros(5)

def test_lasting_array(lasting): pass
def test_after_lasting(lasting): pass

def test_dropped_array():
    x = pg.zeros(10)
    cycle = [x]
    cycle.append(cycle)

def test_leak():
    kept.append(pg.zeros(10))

def test_after_leak(lasting): pass

def test_finalizes():
    pg.finalize()

def test_after_finalize():
    pg.barrier_all()

@pytest.mark.skip(reason="not today")
def test_skip(): pass

def test_skips_itself():
    pytest.skip("not now")

def test_skip_on_one_pe():
    if me() == 1:
        pytest.skip("not here")

@pytest.fixture
def breaks_on_one():
    if me() == 1:
        raise RuntimeError("no setup")

@pytest.fixture
def breaks_late():
    yield
    if me() == 0:
        raise RuntimeError("no teardown")

def test_fixture_breaks(breaks_on_one): pass
def test_after_fixture_breaks(): pass
def test_fixture_breaks_late(breaks_late): pass

@pytest.mark.xfail(reason="known")
def test_xfail():
    assert me() == 0

@pytest.mark.xfail(strict=True)
def test_xfail_strict_passes(): pass

def test_agree():
    agree(me() == 0, "not me")

def test_exchange_with_one_missing():
    if me() == 0:
        exchange("anybody?")

@given(st.integers(), st.lists(st.integers(0, 9)))
def test_examples_are_the_same(number, several):
    assert exchange((number, several)) == [(number, several)] * 2

@given(number=st.integers(0, 10_000), settings=lockstep_settings(max_examples=200))
def test_example_fails_on_one_pe(number):
    assert me() == 0 or number < 100

@given(st.integers(0, 10_000))
def test_example_loses_the_others(number):
    if number >= 100:
        assert me() == 0
        time.sleep(100)

@pytest.mark.parametrize("x", [0] if os.environ.get("SUITE_CONTROLLER") == str(os.getpid()) else [1])
def test_collected_differently(x): pass

def test_last(): pass
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "test_ordinary.py").write_text(
        "def test_ordinary(): pass\n"
        "from pypgas.testing import pes\n"
        "@pes(3)\n"
        "def test_other_count(): pass\n"
        "@pes(min=2)\n"
        "def test_minimum(): pass\n"
    )
    return run_suite(folder, "--pes", "1,2")


def run_suite(folder, *options, timeout=400):
    command = [sys.executable, "-c"]
    command += ["import os, sys, pytest; os.environ['SUITE_CONTROLLER'] = str(os.getpid()); "]
    command[-1] += "sys.exit(pytest.main(sys.argv[1:]))"
    command += ["-p", "pypgas.testing.plugin", "-p", "no:cacheprovider", "--junitxml=results.xml", "-ra"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_CURRENT")}
    done = subprocess.run(
        [*command, *options], cwd=folder, env=environment, timeout=timeout, capture_output=True, text=True
    )
    return Outcomes(done, folder / "results.xml")


class Outcomes:
    def __init__(self, done, results):
        self.output = done.stdout + done.stderr
        self.code = done.returncode
        self.tests = {}
        for case in ET.parse(results).iter("testcase"):  # a setup and teardown error give two
            name = case.get("name").replace("[pes=2]", "").replace("[pes=2-", "[")
            kinds = self.tests.setdefault(name, {})
            kinds.setdefault("passed", "")
            for child in case:
                if child.tag in ("failure", "error", "skipped"):
                    kinds.pop("passed", None)
                    kinds[child.tag] = f"{child.get('message')}\n{child.text or ''}"

    def passed(self, *names):
        assert {name: self.tests[name] for name in names} == {name: {"passed": ""} for name in names}

    def text(self, name, kind="failure"):
        assert list(self.tests[name]) == [kind], (name, self.tests[name])
        return self.tests[name][kind]


def test_passing(outcomes):
    outcomes.passed("test_first", "test_folders", "test_same_random_numbers", "test_last", "test_warns")
    outcomes.passed(*(f"test_parameters[{y}-{x}]" for x in "12" for y in "ab"))
    outcomes.passed("test_one", "test_two", "test_examples_are_the_same", "test_ordinary", "test_minimum")
    assert "test_other_count" not in str(outcomes.tests)
    assert outcomes.code == pytest.ExitCode.TESTS_FAILED
    assert outcomes.output.count("mind the gap") >= 1


def test_the_rest_still_runs(outcomes):
    outcomes.passed(*(f"test_after_{what}" for what in ("assert", "one_fails", "crash", "killed", "hang")))


def test_failures(outcomes):
    text = outcomes.text("test_assert_on_one_pe")
    assert text.startswith("PE 1 failed: AssertionError: only zero will do")
    assert "assert 1 == 0" in text
    text = outcomes.text("test_assert_on_all_pes")
    assert text.startswith("all PEs failed: assert 1 == 2")
    assert text.count("def test_assert_on_all_pes") == 1
    text = outcomes.text("test_one_fails_while_the_other_waits")
    assert text.startswith("PE 1 failed: ValueError: wrong value on one")
    assert "PE 0 did not finish" in text
    assert "in test_one_fails_while_the_other_waits" in text
    assert "SystemExit: 3" in outcomes.text("test_sys_exit")


def test_output_is_kept(outcomes):
    assert "Captured stdout call (PE 0)" in outcomes.output
    assert "printed by 1" in outcomes.output


def test_deaths(outcomes):
    text = outcomes.text("test_crash")
    assert text.startswith("PE 1 died: SIGSEGV")
    assert "in test_crash" in text
    assert outcomes.text("test_killed").startswith("PE 0 died: SIGKILL")
    assert outcomes.text("test_exit").startswith("PE 1 died: exit code 7")
    text = outcomes.text("test_interrupt")
    assert text.startswith("PE 1 left the session")
    assert "KeyboardInterrupt" in text


def test_hangs(outcomes):
    text = outcomes.text("test_hang")
    assert text.startswith("time limit: PE 1 did not finish")
    assert "in waits_forever_here" in text
    text = outcomes.text("test_hang_on_all")
    assert text.startswith("time limit: PEs 0, 1 did not finish")
    assert text.count("in waits_forever_here") == 2


def test_memory(outcomes):
    outcomes.passed("test_lasting_array", "test_after_lasting", "test_dropped_array", "test_after_leak")
    text = outcomes.text("test_leak", "error")
    assert "symmetric memory left allocated after the test" in text
    assert "PEs 0, 1: 80 bytes allocated at " in text
    assert "test_suite.py:" in text


def test_a_wait_for_somebody_who_has_left(outcomes):
    text = outcomes.text("test_barrier_of_one")
    assert text.startswith("time limit: PE 1 did not finish")
    assert "in test_barrier_of_one" in text


def test_a_test_that_finalizes(outcomes):
    assert "the test finalized the runtime" in outcomes.text("test_finalizes", "error")
    outcomes.passed("test_after_finalize")


def test_skips(outcomes):
    assert "not today" in outcomes.text("test_skip", "skipped")
    assert "not now" in outcomes.text("test_skips_itself", "skipped")
    assert outcomes.text("test_skip_on_one_pe").startswith("PE 1 skipped the test, PE 0 ran it")


def test_fixtures(outcomes):
    assert outcomes.text("test_fixture_breaks", "error").startswith("failed on setup with ")
    assert "PE 1 failed in setup: RuntimeError: no setup" in outcomes.text("test_fixture_breaks", "error")
    outcomes.passed("test_after_fixture_breaks")
    assert "PE 0 failed in teardown: RuntimeError: no teardown" in outcomes.text(
        "test_fixture_breaks_late", "error"
    )


def test_expected_failures(outcomes):
    assert "known" in outcomes.text("test_xfail", "skipped")
    assert "XPASS(strict)" in outcomes.text("test_xfail_strict_passes")


def test_agreement(outcomes):
    assert outcomes.text("test_agree").startswith("all PEs failed: AssertionError: PE 1: not me")
    text = outcomes.text("test_exchange_with_one_missing")
    assert "PE 1 finished the test without taking part" in text


def test_hypothesis(outcomes):
    text = outcomes.text("test_example_fails_on_one_pe")
    assert text.startswith("PE 1 failed: ")
    assert "number=100," in text  # shrunk to the smallest example
    text = outcomes.text("test_example_loses_the_others")
    assert "The example was: {'number': " in text
    assert "PE 0 did not finish" in text


def test_different_collection(outcomes):
    assert "did not collect the test" in outcomes.text("test_collected_differently[0]", "error")


def test_a_file_that_breaks_its_job(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\npypgas_start_limit = 60\n")
    (tmp_path / "test_breaks.py").write_text(
        "import os\n"
        "from pypgas.testing import pes\n"
        "if os.environ['SUITE_CONTROLLER'] != str(os.getpid()): os._exit(5)\n"
        "@pes(2)\n"
        "def test_broken(): pass\n"
    )
    (tmp_path / "test_fine.py").write_text("from pypgas.testing import pes\n@pes(2)\ndef test_fine(): pass\n")
    outcomes = run_suite(tmp_path)
    assert "the job of 2 PEs did not start" in outcomes.text("test_broken", "error")
    outcomes.passed("test_fine")


def test_stops_at_the_first_failure(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_two.py").write_text(
        "from pypgas.testing import pes\n"
        "@pes(1)\ndef test_fails(): assert False\n"
        "@pes(1)\ndef test_never_runs(): pass\n"
    )
    outcomes = run_suite(tmp_path, "-x")
    assert set(outcomes.tests) == {"test_fails[pes=1]"}


def test_killed_controller(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_waits.py").write_text(
        "import os, time\nfrom pypgas.testing import pes\n"
        "@pes(2)\ndef test_waits():\n"
        "    open(f'started-{os.getpid()}', 'w').close()\n"
        "    time.sleep(4)\n"
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "pytest", "-p", "pypgas.testing.plugin", "-p", "no:cacheprovider"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    controller = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 100
    while len(started := list(tmp_path.glob("started-*"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    controller.kill()
    controller.wait()
    pids = [int(path.name.removeprefix("started-")) for path in started]
    while left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    assert not list(temporary.glob("pypgas-test-*"))


@pytest.mark.parametrize(
    "options", [["--pes", "two"], ["--pes", "0"], ["--time-limit", "-1"]], ids=lambda options: options[1]
)
def test_bad_options(tmp_path, options):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "pypgas.testing.plugin", *options]
    done = subprocess.run(command, cwd=tmp_path, timeout=60, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "expected" in done.stderr
