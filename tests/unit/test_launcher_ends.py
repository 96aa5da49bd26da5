# SPDX-License-Identifier: Apache-2.0
"""However a job is ended, no process, socket or file of it stays."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from pathlib import Path

import pytest
from launcher_jobs import Job, code, job, run

# Each PE starts a child of its own, which has to go too, and says when it is up.
UP = """
import subprocess
child = subprocess.Popen(["sleep", "100"])
open(os.path.join(sys.argv[1], str(pe)), "w").close()
"""


def up(running: Job, folder: Path, n: int = 3) -> None:
    running.wait_for_files(folder, [str(pe) for pe in range(n)])


def temporary(folder: Path) -> dict[str, str]:
    folder.mkdir()
    return {"TMPDIR": str(folder)}


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
)
@pytest.mark.parametrize("stubborn", [False, True], ids=["yielding", "stubborn"])
def test_the_command_is_signalled(tmp_path: Path, number: int, status: int, stubborn: bool) -> None:
    text = UP + "time.sleep(100)"
    if stubborn:
        text = "for s in (2, 15, 1): signal.signal(s, signal.SIG_IGN)\n" + text
    environ = temporary(tmp_path / "tmp")
    with job("-n", "3", *code(text), str(tmp_path), environ=environ) as running:
        up(running, tmp_path)
        assert len(running.processes()) > 3
        running.process.send_signal(number)
        found, _, err = running.finish(30)
        assert running.gone(), running.processes()
    assert found == status
    if number == signal.SIGINT:
        assert "pypgas run: interrupted\n" in err
        assert "Traceback" not in err
        assert stubborn or "PEs 0 to 2 each was at <string>" in err
    assert not list((tmp_path / "tmp").glob("pypgas-*"))


def test_two_interrupts_end_a_stubborn_job_at_once(tmp_path: Path) -> None:
    text = "signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + UP + "time.sleep(100)"
    times = []
    for attempt in range(3):  # on a busy machine one may take long
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with job("-n", "3", *code(text), str(folder)) as running:
            up(running, folder)
            running.process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            start = time.monotonic()
            running.process.send_signal(signal.SIGINT)
            assert running.finish(30)[0] == 130
            times.append(time.monotonic() - start)
            assert running.gone()
        if times[-1] < 1.5:
            return
    pytest.fail(f"after the second interrupt the job took {times} s to end")


def test_an_interrupt_while_the_job_starts() -> None:
    for delay in (0.0, 0.1):
        with job("-n", "3", *code("time.sleep(100)")) as running:
            # The command answers to signals once it has loaded.
            while len(running.processes()) < 2:
                assert running.process.poll() is None
                time.sleep(0.005)
            time.sleep(delay)
            running.process.send_signal(signal.SIGINT)
            assert running.finish(30)[0] in (130, -2)
            assert running.gone()


def test_the_launcher_is_killed(tmp_path: Path) -> None:
    with job("-n", "2", *code(UP + "time.sleep(100)"), str(tmp_path)) as running:
        up(running, tmp_path, 2)
        for pid in running.processes():
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == str(
                running.process.pid
            ):
                os.kill(pid, signal.SIGKILL)
        status, _, err = running.finish(30)
        assert running.gone()
    assert status != 0
    assert "SIGKILL" in err


def test_a_keeper_is_killed(tmp_path: Path) -> None:
    text = (
        UP + "open(os.path.join(sys.argv[1], f'keeper{pe}'), 'w').write(str(os.getppid()))\ntime.sleep(100)"
    )
    with job("-n", "2", *code(text), str(tmp_path)) as running:
        running.wait_for_files(tmp_path, ["keeper0", "keeper1"])
        time.sleep(0.1)
        os.kill(int((tmp_path / "keeper1").read_text()), signal.SIGKILL)
        status, _, _ = running.finish(30)
        assert running.gone()
    assert status != 0


def test_the_time_limit_shows_where_each_pe_is() -> None:
    text = "def waits_here(): time.sleep(100)\nwaits_here()"
    start = time.monotonic()
    status, _, err = run("--timeout", "1", "-n", "2", *code(text))
    assert 1 < time.monotonic() - start < 30
    assert status == 124
    assert "the time limit of 1 s is over" in err
    assert err.count("in waits_here") == 2
    assert err.index("PE 0:") < err.index("in waits_here") < err.index("PE 1:") < err.rindex("in waits_here")


def test_the_time_limit_does_not_touch_a_job_that_ends_in_time() -> None:
    assert run("--timeout", "30", "-n", "2", *code("pass")) == (0, "", "")


def test_a_failure_decides_even_if_the_time_limit_passes_later() -> None:
    text = "if pe == 0: sys.exit(4)\ntime.sleep(100)"
    assert run("--timeout", "1.5", "-n", "2", *code(text))[0] == 4


def test_a_quit_signal_prints_stacks_and_the_job_goes_on(tmp_path: Path) -> None:
    text = (
        UP + "until = time.monotonic() + 1.5\nwhile time.monotonic() < until: time.sleep(0.1)\nchild.kill()"
    )
    with job("-n", "2", *code(text), str(tmp_path)) as running:
        up(running, tmp_path, 2)
        running.process.send_signal(signal.SIGQUIT)
        status, _, err = running.finish()
    assert status == 0
    assert err.count("(most recent call first)") == 2


def test_children_of_a_pe_end_with_the_job() -> None:
    text = "import subprocess; subprocess.Popen(['sleep', '100'])"
    assert run("-n", "2", *code(text)) == (0, "", "")


def test_a_job_on_a_terminal() -> None:
    """The first PE reads what is typed; an unfinished line shows at once; Ctrl-C ends the job."""
    master, slave = pty.openpty()
    text = """
if pe == 0:
    print("it was", input("name? "))
    sys.stdout.write("\\r10 %")
    sys.stdout.flush()
time.sleep(100)
"""
    shown = b""

    def wait_for(words: bytes) -> None:
        nonlocal shown
        deadline = time.monotonic() + 20
        while words not in shown:
            assert select.select([master], [], [], deadline - time.monotonic())[0], shown
            shown += os.read(master, 1000)

    with job(
        "-n", "2", *code(text), stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True, preexec_fn=lambda: _take_terminal(slave),
    ) as running:  # fmt: skip
        os.close(slave)
        wait_for(b"name? ")
        os.write(master, b"tsunami\n")
        wait_for(b"it was tsunami")
        wait_for(b"\r10 %")
        os.write(master, b"\x03")
        wait_for(b"interrupted")
        assert running.process.wait(30) == 130
        assert running.gone()
    os.close(master)


def _take_terminal(terminal: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
