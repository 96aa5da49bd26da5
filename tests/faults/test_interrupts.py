# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, and a launcher that is killed: no process stays behind."""

import os
import signal
import sys
import time

import pytest

WAITING = """
with pg.init():
    me, n = begin()
    flag = pg.zeros(1, dtype="u8")
    pg.barrier_all()
    note("waiting")
    with noting_errors():
        {wait}
note("went on")
"""

WAITS = ["pg.signal_wait_until(flag, pg.GE, 1)", "pg.barrier_all() if me else time.sleep(100)"]


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("wait", WAITS, ids=["signal", "barrier"])
def test_interrupted_launcher(start, n, wait):
    job = start(n, WAITING.format(wait=wait))
    job.await_events("waiting", n)
    time.sleep(0.3)
    began = time.monotonic()
    job.process.send_signal(signal.SIGINT)
    assert job.wait(20) == 128 + signal.SIGINT, job.story()
    assert time.monotonic() - began < 8
    assert not job.events("went on"), job.story()
    job.assert_nothing_remains()


@pytest.mark.parametrize("n", [2, 3])
def test_killed_launcher(start, n):
    job = start(n, WAITING.format(wait=WAITS[0]))
    job.await_events("waiting", n)
    os.kill(job.process.pid, signal.SIGKILL)
    job.wait()
    assert_soon_gone(job)


def test_terminated_launcher(start):
    job = start(2, WAITING.format(wait=WAITS[0]))
    job.await_events("waiting", 2)
    job.process.terminate()
    assert job.wait(20) != 0, job.story()
    assert_soon_gone(job)


def assert_soon_gone(job):
    """No process, segment or socket remains (a killed launcher can't remove its folder)."""
    deadline = time.monotonic() + 8
    while time.monotonic() < deadline:
        left = [what for what in job.remains() if not what.startswith("folder ")]
        if not left:
            break
        time.sleep(0.1)
    assert not left, job.story()
    assert not job.events("went on"), job.story()


def test_interrupted_wait_of_one_process(start):
    job = start(1, WAITING.format(wait=WAITS[0]), command=[sys.executable])
    job.await_events("waiting", 1)
    time.sleep(0.3)
    began = time.monotonic()
    job.process.send_signal(signal.SIGINT)
    job.wait(20)
    assert time.monotonic() - began < 3
    (raised,) = job.events("raised")
    assert raised["type"] == "KeyboardInterrupt", job.story()
    assert "KeyboardInterrupt" in job.errors
    job.assert_nothing_remains()
