# SPDX-License-Identifier: Apache-2.0
"""A pool: one job of N PEs that runs test after test in lock-step for the controller."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypgas.testing.channel import Channel, Message
from pypgas.testing.launch import cause_of_death, cause_of_end, launch_command

__all__ = ["Member", "Outcome", "Pool", "PoolError"]

_log = logging.getLogger(__name__)

_TICK = 0.2  # s between looks at the launcher while nothing arrives
_STACKS_PATIENCE = 2.0  # s for the PEs to write their stacks
_LAUNCHER_PATIENCE = 5.0  # s for the launcher to say how a PE died
_STOP_PATIENCE = 15.0  # s for the job to end by itself


class PoolError(Exception):
    """The job did not start, or a PE could not load the tests; says why."""


@dataclass
class Member:
    """One PE of the pool as the controller sees it."""

    channel: Channel
    pid: int
    pidfd: int
    stacks: Path
    pe: int = -1
    alive: bool = True
    items: frozenset[str] = frozenset()
    errors: list[str] = field(default_factory=list)

    def kill(self, number: int) -> None:
        """Send a signal; harmless when the process is gone (a pidfd is never reused)."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, number)

    def stack_text(self) -> str:
        """What faulthandler has written for this PE so far."""
        with contextlib.suppress(OSError):
            return self.stacks.read_text(errors="replace")
        return ""


@dataclass
class Outcome:
    """What became of one test on all PEs."""

    results: dict[int, Message] = field(default_factory=dict)  # the PEs that finished it
    died: dict[int, str] = field(default_factory=dict)  # PE -> how
    left: dict[int, str] = field(default_factory=dict)  # PE -> why it left the session
    stacks: dict[int, str] = field(default_factory=dict)  # of the PEs looked at
    stuck: list[int] = field(default_factory=list)  # PEs that never finished it
    timed_out: bool = False
    log: str = ""  # the launcher's and the PEs' raw output during the test, if something died

    @property
    def broken(self) -> bool:
        """Whether the pool can't go on after this."""
        return bool(self.died or self.left or self.stuck)


class Pool:
    """N PEs started together. Make one, ``start`` it, ``run`` tests, ``stop`` or ``kill`` it."""

    def __init__(self, n: int, *, template: str | None, grace: float, show_output: bool) -> None:
        self.n = n
        self._template = template
        self._grace = grace
        self._show_output = show_output
        self._folder = Path(tempfile.mkdtemp(prefix="pypgas-test-"))
        self._selector = selectors.DefaultSelector()
        self._launcher: subprocess.Popen[bytes] | None = None
        self._members: list[Member] = []  # by PE once started
        self._exchange: dict[int, Message] = {}
        self._log_start = 0
        self._tests = 0

    # ------------------------------------------------------------ lifetime
    def start(self, setup: Message, timeout: float) -> None:
        """Start the job and have every PE load the tests ``setup`` names.

        Raises ``PoolError`` with the output of the job if that fails or takes longer than
        ``timeout`` seconds; the pool is gone then.
        """
        deadline = time.monotonic() + timeout
        address = self._folder / "controller"
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(os.fspath(address))
                listener.listen(self.n)
                self._spawn(address)
                self._accept(listener, deadline)
            self._await_ready(setup, deadline)
        except BaseException:
            self.kill()
            raise
        self._log_start = self._log_size()

    def stop(self) -> None:
        """End the job in order (``finalize`` on all PEs), by force if that does not work."""
        for member in self._members:
            with contextlib.suppress(OSError):
                member.channel.send({"kind": "stop"})
        if self._launcher is not None:
            try:
                self._launcher.wait(_STOP_PATIENCE)
            except subprocess.TimeoutExpired:
                _log.warning("the pool of %d PEs did not end by itself: killed", self.n)
        self.kill()

    def kill(self) -> None:
        """End the job now and release everything; harmless when it has ended."""
        for member in self._members:
            member.kill(signal.SIGKILL)
        if self._launcher is not None:
            # Without its PEs it ends by itself, and a launcher that does so tidies up.
            for nudge in (None, signal.SIGTERM):
                if nudge is not None and self._launcher.poll() is None:
                    self._launcher.send_signal(nudge)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._launcher.wait(4)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._launcher.pid, signal.SIGKILL)
            self._launcher.wait()
            self._launcher = None
        for member in self._members:
            member.channel.close()
            os.close(member.pidfd)
        self._members = []
        self._selector.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def members(self) -> list[Member]:
        """The PEs in order."""
        return self._members

    # ------------------------------------------------------------ tests
    def run(self, nodeid: str, following: str | None, limit: float) -> Outcome:
        """Run one test on all PEs; ``following`` is the pool's next test, for the fixtures."""
        outcome = Outcome()
        self._exchange = {}
        self._tests += 1
        shared = self._folder / f"shared-{self._tests}"
        shared.mkdir()
        message = {"kind": "run", "nodeid": nodeid, "next": following, "limit": limit, "shared": str(shared)}
        deadline = time.monotonic() + limit
        self._tell_all(message)
        pending = {member.pe for member in self._members}
        for member in self._members:
            if not member.alive:
                self._take(member, None, outcome, pending)
        hopeless_at: float | None = None  # when to stop waiting for partners of a failed example
        while pending and (now := time.monotonic()) < deadline:
            if outcome.broken or self._failed(outcome):
                # The others may wait for the PE that failed: they get a moment, no more.
                deadline = min(deadline, now + self._grace)
            if not any(waiting["failed"] for waiting in self._exchange.values()):
                hopeless_at = None
            elif hopeless_at is None:
                hopeless_at = now + self._grace
            elif now > hopeless_at:
                self._refuse_exchange("another PE did not finish the same step")
            for member, message_in in self._receive(min(deadline - now, _TICK)):
                self._take(member, message_in, outcome, pending)
        outcome.timed_out = bool(pending) and not (outcome.broken or self._failed(outcome))
        if pending:
            outcome.stuck = sorted(pending)
            outcome.stacks = self._dump_stacks()
        if outcome.died:
            self._explain_deaths(outcome)
        if not outcome.broken:
            shutil.rmtree(shared, ignore_errors=True)
        return outcome

    def sweep(self, timeout: float) -> dict[int, list[str]] | None:
        """Have all PEs collect garbage together; the allocations left over, by PE.

        ``None`` when a PE did not answer within ``timeout`` seconds.
        """
        self._tell_all({"kind": "sweep"})
        found: dict[int, list[str]] = {}
        deadline = time.monotonic() + timeout
        while len(found) < self.n:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for member, message in self._receive(min(left, _TICK)):
                if message is None or message["kind"] != "swept":
                    return None
                found[member.pe] = message["leaks"]
        return found

    # ------------------------------------------------------------ inside
    def _spawn(self, address: Path) -> None:
        command = launch_command(self._template, self.n, ["--connect", os.fspath(address)])
        environment = dict(os.environ)
        # The launcher of this environment comes first, and as root it needs permission.
        here = os.path.dirname(sys.executable)  # noqa: PTH120 -- not resolved: a venv's own folder
        environment["PATH"] = here + os.pathsep + environment.get("PATH", os.defpath)
        environment.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        environment.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        _log.debug("starting %s", command)
        with (self._folder / "log").open("wb") as log:
            output = None if self._show_output else log
            try:
                # A session of its own: Ctrl-C reaches the controller only, which then ends the job.
                self._launcher = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise PoolError(f"could not start {command[0]}: {error}") from error

    def _accept(self, listener: socket.socket, deadline: float) -> None:
        while len(self._members) < self.n:
            self._check_starting(deadline, f"{len(self._members)} of {self.n} processes appeared")
            listener.settimeout(_TICK)
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            channel = Channel(connection)
            try:
                hello = channel.receive(5)
                member = Member(channel, hello["pid"], os.pidfd_open(hello["pid"]), Path(hello["stacks"]))
            except (EOFError, TimeoutError, ProcessLookupError):
                channel.close()
                continue  # it died at once; the launcher will tell
            self._members.append(member)
            self._selector.register(channel, selectors.EVENT_READ, member)

    def _await_ready(self, setup: Message, deadline: float) -> None:
        for member in self._members:
            with contextlib.suppress(OSError):
                member.channel.send({"kind": "setup", **setup})
        waiting = self.n
        while waiting:
            self._check_starting(deadline, f"{waiting} of {self.n} PEs did not get ready")
            for member, message in self._receive(_TICK):
                if message is None:
                    text = f"a process died while it started\n{member.stack_text()}"
                    raise PoolError(self._with_log(text.rstrip()))
                if message["kind"] == "failed":
                    raise PoolError(self._with_log(message["reason"]))
                if message["kind"] == "ready":
                    member.pe = message["pe"]
                    member.items = frozenset(message["items"])
                    member.errors = message["errors"]
                    waiting -= 1
                    if message["n"] != self.n:
                        raise PoolError(
                            self._with_log(
                                f"a process says it is PE {message['pe']} of {message['n']}, expected a job "
                                f"of {self.n}: does the launcher belong to the MPI library of mpi4py?"
                            )
                        )
        self._members.sort(key=lambda member: member.pe)

    def _check_starting(self, deadline: float, state: str) -> None:
        if time.monotonic() > deadline:
            stacks = "\n".join(self._dump_stacks().values())
            raise PoolError(self._with_log(f"the job did not start in time: {state}\n{stacks}"))
        code = self._exit_code()
        if code is not None:
            raise PoolError(self._with_log(f"the launcher ended with exit code {code}: {state}"))

    def _take(self, member: Member, message: Message | None, outcome: Outcome, pending: set[int]) -> None:
        pe = member.pe
        if message is None:
            pending.discard(pe)
            if pe not in outcome.left:
                outcome.died[pe] = ""
            self._refuse_exchange(f"PE {pe} died")
        elif message["kind"] == "done":
            pending.discard(pe)
            outcome.results[pe] = message
            self._refuse_exchange(f"PE {pe} finished the test without taking part")
        elif message["kind"] == "left":
            pending.discard(pe)
            outcome.left[pe] = message["reason"]
            self._refuse_exchange(f"PE {pe} left the test")
        elif message["kind"] == "exchange":
            self._exchange[pe] = message
            gone = set(range(self.n)) - pending
            if gone:
                self._refuse_exchange(f"PE {min(gone)} finished the test without taking part")
            elif len(self._exchange) == self.n:
                values = [self._exchange[other]["value"] for other in range(self.n)]
                self._exchange = {}
                self._tell_all({"kind": "exchanged", "values": values})

    def _refuse_exchange(self, why: str) -> None:
        for pe in self._exchange:
            with contextlib.suppress(OSError):
                self._members[pe].channel.send({"kind": "refused", "why": why})
        self._exchange = {}

    @staticmethod
    def _failed(outcome: Outcome) -> bool:
        return any(
            report["outcome"] == "failed"
            for result in outcome.results.values()
            for report in result["reports"]
        )

    def _tell_all(self, message: Message) -> None:
        for member in self._members:
            with contextlib.suppress(OSError):  # its death shows when we listen
                member.channel.send(message)

    def _receive(self, timeout: float) -> list[tuple[Member, Message | None]]:
        """What arrives within ``timeout`` seconds; ``None`` stands for the end of that PE."""
        arrived: list[tuple[Member, Message | None]] = []
        for key, _ in self._selector.select(timeout):
            member: Member = key.data
            messages, ended = member.channel.drain()
            arrived += [(member, message) for message in messages]
            if ended:
                member.alive = False
                self._selector.unregister(member.channel)
                arrived.append((member, None))
        return arrived

    def _dump_stacks(self) -> dict[int, str]:
        """Every living PE's Python stack, by PE (or by position while they start)."""
        before = {member.pid: len(member.stack_text()) for member in self._members}
        living = [member for member in self._members if member.alive]
        for member in living:
            member.kill(signal.SIGUSR2)
        deadline = time.monotonic() + _STACKS_PATIENCE
        texts: dict[int, str] = {}
        while time.monotonic() < deadline:
            time.sleep(0.1)
            now = {member.pid: member.stack_text()[before[member.pid] :] for member in living}
            if all(now.values()) and now == texts:
                break
            texts = now
        silent = "(it wrote no stack: its process does not take signals)"
        return {
            member.pe if member.pe >= 0 else position: texts.get(member.pid) or silent
            for position, member in enumerate(living)
        }

    def _explain_deaths(self, outcome: Outcome) -> None:
        # The launcher notices later than we do, and says so later still.
        deadline = time.monotonic() + _LAUNCHER_PATIENCE
        while True:
            log, code = self._log_text(self._log_start), self._exit_code()
            causes = {pe: cause_of_death(pe, self._members[pe].stack_text(), log) for pe in outcome.died}
            if any(causes.values()):
                break
            if code is not None or time.monotonic() > deadline:
                causes[next(iter(causes))] = cause_of_end(code)
                break
            time.sleep(0.05)
        for pe, cause in causes.items():
            outcome.died[pe] = cause or "ended by the launcher"
            text = self._members[pe].stack_text()
            if "Fatal Python error" in text:
                outcome.stacks[pe] = text[text.index("Fatal Python error") :]
        outcome.log = log

    def _exit_code(self) -> int | None:
        code = None if self._launcher is None else self._launcher.poll()
        return 128 - code if code is not None and code < 0 else code

    def _log_size(self) -> int:
        with contextlib.suppress(OSError):
            return (self._folder / "log").stat().st_size
        return 0

    def _log_text(self, start: int = 0) -> str:
        with contextlib.suppress(OSError):
            return (self._folder / "log").read_bytes()[start:].decode(errors="replace")
        return ""

    def _with_log(self, text: str) -> str:
        log = self._log_text()
        return f"{text}\n--- output of the job ---\n{log[-20000:]}" if log.strip() else text

    def __repr__(self) -> str:
        state: Any = "ended" if self._launcher is None else self._launcher.pid
        return f"<Pool of {self.n} PEs, launcher {state}>"
