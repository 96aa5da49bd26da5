# SPDX-License-Identifier: Apache-2.0
"""The parts of the test harness that need no job."""

import socket
import threading

import pytest

from pypgas.testing import marks
from pypgas.testing.channel import Channel
from pypgas.testing.launch import cause_of_death, cause_of_end, launch_command
from pypgas.testing.merge import name_pes, shorten_stack


@pytest.fixture
def pair():
    ends = [Channel(end) for end in socket.socketpair()]
    yield ends
    for end in ends:
        end.close()


def test_messages_arrive_in_order(pair):
    a, b = pair
    a.send({"kind": "one", "odd": {1, 2}.__class__})
    a.send({"kind": "two", "text": "ü\n" * 10})
    assert b.receive(1) == {"kind": "one", "odd": "<class 'set'>"}
    assert b.drain() == ([{"kind": "two", "text": "ü\n" * 10}], False)
    assert b.drain() == ([], False)


def test_large_messages(pair):
    a, b = pair
    text = "x" * 5_000_000
    sender = threading.Thread(target=a.send, args=({"text": text},))
    sender.start()
    assert b.receive(20) == {"text": text}
    sender.join()


def test_end_and_patience(pair):
    a, b = pair
    with pytest.raises(TimeoutError):
        b.receive(0.01)
    a.send({"last": True})
    a.close()
    assert b.drain() == ([{"last": True}], True)
    with pytest.raises(EOFError):
        b.receive(1)
    with pytest.raises(OSError, match=r"."):
        b.send({})


def test_launch_command():
    command = launch_command("mpirun -x 'A B' -n {n}", 3, ["--connect", "there"])
    assert command[:5] == ["mpirun", "-x", "A B", "-n", "3"]
    assert command[-2:] == ["--connect", "there"]
    assert launch_command(None, 2, [])[1:6] == ["-m", "pypgas", "run", "-n", "2"]


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            "prterun noticed that process rank 1 with PID 12 on node n exited on\nsignal 9 (Killed).",
            "SIGKILL",
        ),
        ("pypgas run: PE 1 of 3 was killed by SIGTERM", "SIGTERM"),
        ("pypgas run: PE 1 of 3 ended with exit code 7", "exit code 7"),
        ("pypgas run: PE 0 of 3 was killed by SIGTERM", None),
        ("  Process name: [prterun-n-1@1,1]\n  Exit code:    3\n", "exit code 3"),
        ("", None),
    ],
)
def test_cause_of_death_by_the_log(log, cause):
    assert cause_of_death(1, "", log) == cause


def test_cause_of_death_by_the_stack():
    assert cause_of_death(0, "Fatal Python error: Aborted\n\nThread", "") == "SIGABRT (Aborted)"
    assert cause_of_end(139) == "SIGSEGV"
    assert cause_of_end(5) == "exit code 5"
    assert "os._exit" in cause_of_end(None)


def test_shorten_stack():
    stack = (
        "Current thread 0x1 (most recent call first):\n"
        '  File "/home/me/test_x.py", line 3 in test_x\n'
        '  File "/lib/_pytest/python.py", line 1 in runtest\n'
        '  File "/lib/pluggy/_hooks.py", line 1 in call\n'
        "\nThread 0x2:\n"
        '  File "/lib/threading.py", line 9 in wait\n'
    )
    assert shorten_stack(stack) == (
        "Current thread 0x1 (most recent call first):\n"
        '  File "/home/me/test_x.py", line 3 in test_x\n'
        "  ... (pytest and the harness)\n"
        "\nThread 0x2:\n"
        '  File "/lib/threading.py", line 9 in wait'
    )


def test_names():
    assert name_pes([3]) == "PE 3"
    assert name_pes({2, 0}) == "PEs 0, 2"


def test_marks():
    assert marks.pes(2, 4).args == (2, 4)
    assert marks.parse_counts("1, 2,2") == [1, 2]
    for bad in [lambda: marks.pes(0), lambda: marks.pes(2, min=2), lambda: marks.time_limit(0)]:
        with pytest.raises(ValueError, match=r"pes|time_limit"):
            bad()
