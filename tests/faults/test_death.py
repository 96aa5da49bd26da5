# SPDX-License-Identifier: Apache-2.0
"""A PE is killed while the others wait for it: each of them learns it at once."""

import subprocess
import sys

import pytest

# How the others wait, as the body of a function of (x, flags, team).
WAITS = {
    "barrier": "pg.barrier_all()",
    "sync": "pg.sync_all()",
    "team barrier": "pg.barrier(team)",
    "signal wait": "pg.signal_wait_until(flags[0], pg.GE, 1)",
    "wait": "pg.wait_until(x[0], pg.NE, 0)",
    "wait for any": "pg.wait_until_any(x, pg.NE, 0)",
    "reduce": "pg.reduce(np.ones(1000), op='sum')",
    "broadcast": "pg.broadcast(x, root=VICTIM)",
    "collect": "pg.collect(np.ones(me + 1))",
    "alltoall": "pg.alltoall(np.ones(4 * n))",
    "allocation": "pg.zeros(100)",
    "free": "x.free()",
    "lock": "lock.acquire()",
    "finalize": "pg.finalize()",
}

PROGRAM = """
import numpy as np
VICTIM = {victim}
runtime = pg.init()
me, n = begin()
x = pg.zeros(64, dtype="i8")
flags = pg.zeros(1, dtype="u8")
lock = pg.Lock()
team = pg.TEAM_WORLD.split_strided(0, 1, n)
if me == VICTIM:
    lock.acquire()
pg.barrier_all()
note("ready")
if me == VICTIM:
    die()
with noting_errors():
    {wait}
note("went on")
"""


def check_survivors(job, victim, limit=2.0):
    """Each survivor raised PeerFailedError naming the victim, soon enough."""
    (death,) = job.events("dying")
    raised = {event["pe"]: event for event in job.events("raised")}
    assert sorted(raised) == [pe for pe in range(job.n) if pe != victim], job.story()
    for event in raised.values():
        assert event["type"] == "PeerFailedError", job.story()
        assert event["pes"] == [victim], job.story()
        assert f"PE {victim}" in event["text"], job.story()
        assert event["time"] - death["time"] < limit, job.story()
    assert not job.events("went on")


@pytest.mark.parametrize("wait", WAITS)
def test_killed_while_the_other_waits(start, wait):
    job = start(2, PROGRAM.format(victim=1, wait=WAITS[wait]))
    assert job.wait() == 137, job.story()
    check_survivors(job, victim=1)
    assert "PE 1 of 2 was killed by SIGKILL" in job.errors
    job.assert_nothing_remains()


@pytest.mark.parametrize("wait", ["barrier", "signal wait", "reduce"])
@pytest.mark.parametrize(("n", "victim"), [(3, 0), (4, 3), (4, 1)])
def test_killed_while_several_wait(start, n, victim, wait):
    job = start(n, PROGRAM.format(victim=victim, wait=WAITS[wait]))
    assert job.wait() == 137, job.story()
    check_survivors(job, victim)
    job.assert_nothing_remains()


def test_killed_before_the_others_wait(start):
    job = start(
        3,
        """
        runtime = pg.init()
        me, n = begin()
        pg.barrier_all()
        if me == 2:
            note("dying")
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1)
        with noting_errors():
            pg.barrier_all()
        """,
    )
    assert job.wait() == 137, job.story()
    check_survivors(job, victim=2, limit=3.0)


def test_a_child_of_the_victim_hides_nothing(start):
    # The child keeps all of its parent's descriptors open.
    job = start(
        2,
        """
        runtime = pg.init()
        me, n = begin()
        pg.barrier_all()
        if me == 1:
            if os.fork() == 0:
                time.sleep(20)
                os._exit(0)
            die()
        with noting_errors():
            pg.barrier_all()
        """,
    )
    assert job.wait() == 137, job.story()
    check_survivors(job, victim=1)
    job.assert_nothing_remains()


def test_killed_under_plain_mpirun(start):
    command = [sys.executable, "-c", "import shutil; print(shutil.which('mpirun') or '')"]
    folder = str(sys.prefix) + "/bin"
    found = subprocess.run(
        command, env={"PATH": folder}, capture_output=True, text=True, check=True
    ).stdout.strip()
    if not found:
        pytest.skip("no mpirun in this environment")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    options = ["--oversubscribe"] if "Open MPI" in version else []
    job = start(
        2,
        PROGRAM.format(victim=1, wait=WAITS["barrier"]),
        command=[found, *options, "-n", "2", sys.executable],
    )
    assert job.wait() != 0, job.story()
    assert not job.events("went on")
    for event in job.events("raised"):  # mpirun may end the job before anybody raises
        assert event["type"] == "PeerFailedError", job.story()
    job.assert_nothing_remains()
