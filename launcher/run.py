# SPDX-License-Identifier: Apache-2.0
"""``pypgas run``: one job, from its start to the last of its processes.

The parent starts an MPI launcher whose processes are the PEs' keepers (`pypgas.launcher.child`),
talks to each of them, merges what the PEs print, and decides when the job ends. All of it happens
in one thread around one selector.
"""

from __future__ import annotations

import dataclasses
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from . import child, report
from .launchers import find_launcher, without_job
from .output import Output, Stream
from .sanitizers import sanitized

__all__ = ["Job", "JobSpec", "run"]

TIMED_OUT = 124  # as timeout(1) has it
_INTERRUPT_GRACE = 2.0  # s that the PEs get to leave after Ctrl-C
_STACK_GRACE = 0.5  # s in which the PEs print their stacks
_LAUNCHER_GRACE = 3.0  # s that the MPI launcher gets to leave once its processes have
_CHUNK = 1 << 16
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@dataclasses.dataclass(frozen=True)
class JobSpec:
    """What to run, and how.

    Attributes:
        n: The number of PEs, at least 1.
        kind: ``"file"``, ``"module"`` or ``"code"``.
        program: The path, the module's name or the source text.
        arguments: The program's arguments.
        timeout: Seconds that the whole job may take, ``None`` for no limit.
        prefix: Whether each line of output starts with the number of its PE.
        launcher: The MPI launcher's name or path; ``None`` finds one.
        launcher_options: Further options for it.
        verbose: Whether to say which command is run, and to show the MPI launcher's own output.
        sanitize: The sanitizer to compile kernels with, ``"address"`` or ``"undefined"``.
    """

    n: int
    kind: str
    program: str
    arguments: Sequence[str] = ()
    timeout: float | None = None
    prefix: bool = False
    launcher: str | None = None
    launcher_options: Sequence[str] = ()
    verbose: bool = False
    sanitize: str | None = None


def run(spec: JobSpec) -> int:
    """Run a job.

    Returns:
        The exit code: that of the PE that failed first, 128 + n if signal n ended it (or this
        process), 124 after the time limit, 0 if all PEs ended well.

    Raises:
        LauncherError: there is no MPI launcher to start several PEs with, or no such sanitizer.
    """
    environment = without_job(os.environ)
    command = []
    if spec.n > 1:
        command = find_launcher(spec.launcher, environment).command(spec.n, spec.launcher_options)
    folder = tempfile.mkdtemp(prefix="pypgas-")
    try:
        # A socket's path may have some 100 characters only.
        if len(folder) > 80:
            Path(folder).rmdir()
            folder = tempfile.mkdtemp(prefix="pypgas-", dir="/tmp")
        if spec.sanitize is not None:
            # Not in our environment: the MPI launcher is no program to examine.
            added = sanitized(spec.sanitize, environment)
            command += ["env", *(f"{name}={value}" for name, value in added.items())]
        command += [sys.executable, str(Path(child.__file__).resolve())]
        command += [folder, spec.kind, spec.program, *spec.arguments]
        return Job(spec, command, environment, folder).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _PE:
    """The parent's end of one PE."""

    def __init__(self, pe: int, control: socket.socket) -> None:
        self.state = report.PEState(pe)
        self.control = control
        self.connected = True
        self.pipes: dict[int, Stream] = {}

    def send(self, word: str, *numbers: int) -> None:
        if self.connected:
            child.send(self.control, word, *numbers)


class Job:
    """One run of one program; see `run`.

    Args:
        spec: What to run.
        command: The command line that starts the PEs' keepers.
        environment: Their environment.
        folder: A private, empty folder for the job's files.
    """

    def __init__(
        self, spec: JobSpec, command: Sequence[str], environment: dict[str, str], folder: str
    ) -> None:
        self._spec = spec
        self._command = list(command)
        self._environment = environment
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._output = Output()
        self._messages = Stream(2)
        self._pes: dict[int, _PE] = {}
        self._launcher: subprocess.Popen[bytes] | None = None
        self._launcher_text = bytearray()
        self._launcher_code: int | None = None
        self._signals: list[int] = []
        self._deadline: float | None = None  # when the job ends, whatever the PEs do
        self._limit: float | None = None  # when the time limit strikes
        self._code: int | None = None  # the exit code, once something else than the PEs decided it
        self._interrupts = 0
        self._ending = False

    # ------------------------------------------------------------ the course of a job
    def run(self) -> int:
        """Run the job and return its exit code."""
        woken, waker = socket.socketpair()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        old_handlers = {number: signal.signal(number, self._on_signal) for number in self._handled()}
        old_waker = -1
        try:
            for end in (woken, waker):
                end.setblocking(False)
            old_waker = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
            self._selector.register(woken, selectors.EVENT_READ, lambda: self._drain(woken))
            listener.bind(str(Path(self._folder, child.SOCKET)))
            listener.listen(min(self._spec.n + 1, socket.SOMAXCONN))
            self._selector.register(listener, selectors.EVENT_READ, lambda: self._accept(listener))
            try:
                self._start()
                self._loop()
            except BrokenPipeError:
                # Nobody wants the output any more, as in `pypgas run ... | head`.
                self._code = 128 + signal.SIGPIPE
            finally:
                self._end()
            return self._conclude()
        finally:
            signal.set_wakeup_fd(old_waker)
            for number, handler in old_handlers.items():
                signal.signal(number, handler)
            self._selector.close()
            for open_socket in (listener, woken, waker):
                open_socket.close()

    @staticmethod
    def _handled() -> list[signal.Signals]:
        # A job under nohup goes on when its terminal goes away. Ctrl-C always counts: shells let
        # commands in the background ignore it, test runners and build tools then pass that on.
        ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        return [s for s in _SIGNALS if s != signal.SIGHUP or not ignored]

    def _start(self) -> None:
        if self._spec.verbose:
            self._say(f"running {self._command}")
        # A session of its own: a terminal's Ctrl-C reaches us alone, and we decide.
        self._launcher = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            start_new_session=True,
        )
        assert self._launcher.stdout is not None
        pipe = self._launcher.stdout.fileno()
        os.set_blocking(pipe, False)
        self._selector.register(pipe, selectors.EVENT_READ, lambda: self._read_launcher(pipe))
        ended = os.pidfd_open(self._launcher.pid)
        self._selector.register(ended, selectors.EVENT_READ, lambda: self._launcher_ended(ended))
        if self._spec.timeout is not None:
            self._limit = time.monotonic() + self._spec.timeout

    def _loop(self) -> None:
        while not self._over():
            self._turn()
            now = time.monotonic()
            if self._limit is not None and now >= self._limit:
                self._time_out(now)
            if self._deadline is not None and now >= self._deadline:
                return

    def _over(self) -> bool:
        if len(self._pes) == self._spec.n and all(p.state.code is not None for p in self._pes.values()):
            return True
        return self._launcher_code is not None

    def _turn(self, longest: float | None = None) -> None:
        """Handle what there is, or wait for it."""
        now = time.monotonic()
        limits = [t - now for t in (self._deadline, self._limit) if t is not None]
        limits += [t for t in (self._output.patience(), longest) if t is not None]
        timeout = max(0.0, min(limits)) if limits else None
        for key, _ in self._selector.select(timeout):
            handle: Callable[[], None] = key.data
            # An earlier one of this turn may have closed it.
            if key.fd in self._selector.get_map():
                handle()
        self._output.tick()
        while self._signals:
            self._take_signal(self._signals.pop(0))

    # ------------------------------------------------------------ PEs
    def _accept(self, listener: socket.socket) -> None:
        control, _ = listener.accept()
        control.settimeout(10)
        try:
            _, (number, size) = child.parse(control.recv(child.LONGEST))
        except (OSError, ValueError):  # it died before it had said anything
            control.close()
            return
        if size != self._spec.n or number in self._pes:
            control.close()
            self._say(
                f"the MPI launcher started a process as PE {number} of {size} in a job of "
                f"{self._spec.n}; it is not one that pypgas knows: {self._command[0]}"
            )
            self._code = 1
            self._deadline = time.monotonic()
            return
        pe = _PE(number, control)
        self._pes[number] = pe
        self._selector.register(control, selectors.EVENT_READ, lambda: self._hear(pe))
        given = self._descriptors(pe)
        child.send(control, "start", *given, descriptors=list(given.values()))
        for descriptor in given.values():
            if descriptor > 2:
                os.close(descriptor)

    def _descriptors(self, pe: _PE) -> dict[int, int]:
        """The descriptors 0, 1, 2 of a PE: input for the first one, pipes for what they print."""
        given: dict[int, int] = {}
        if pe.state.pe == 0 and _is_open(0):
            given[0] = 0
        for number in (1, 2):
            if self._spec.n == 1 and not self._spec.prefix:
                # A lone PE keeps the terminal: colours, progress bars, debuggers.
                if _is_open(number):
                    given[number] = number
                continue
            reader, writer = os.pipe()
            given[number] = writer
            os.set_blocking(reader, False)
            width = len(str(self._spec.n - 1))
            prefix = f"[{pe.state.pe:>{width}}] ".encode() if self._spec.prefix else b""
            pe.pipes[reader] = Stream(number, prefix)
            self._selector.register(
                reader, selectors.EVENT_READ, lambda reader=reader: self._read_pipe(pe, reader)
            )
        return given

    def _hear(self, pe: _PE) -> None:
        try:
            data = pe.control.recv(child.LONGEST)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(pe.control)
            pe.control.close()
            pe.connected = False
            if pe.state.code is None:
                # Its keeper is gone, by our order or killed, and has taken the worker along.
                pe.state.lost = not self._ending
                self._pe_ended(pe, -signal.SIGKILL, killed=True)
            return
        word, numbers = child.parse(data)
        if word == "pid":
            pe.state.pid = numbers[0]
            if self._interrupts:  # it came too late for the signal
                pe.send("signal", signal.SIGINT)
        elif word == "ended":
            self._pe_ended(pe, numbers[0], killed=bool(numbers[1]))

    def _pe_ended(self, pe: _PE, code: int, killed: bool) -> None:
        state = pe.state
        state.code, state.killed, state.ended_at = code, killed, time.monotonic()
        state.report = report.load(self._folder, state.pe)
        if (state.failed or state.lost) and self._deadline is None:
            self._deadline = time.monotonic() + child.GRACE

    def _read_pipe(self, pe: _PE, reader: int) -> bool:
        """Pass on what a PE has printed. Returns whether there may be more."""
        try:
            data = os.read(reader, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._output.feed(pe.pipes[reader], data)
            return True
        self._selector.unregister(reader)
        os.close(reader)
        self._output.close(pe.pipes.pop(reader))
        return False

    # ------------------------------------------------------------ the MPI launcher
    def _read_launcher(self, pipe: int) -> None:
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(pipe)
        self._launcher_text += data

    def _launcher_ended(self, ended: int) -> None:
        assert self._launcher is not None
        self._selector.unregister(ended)
        os.close(ended)
        self._launcher_code = self._launcher.wait()

    # ------------------------------------------------------------ signals and time
    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals.append(number)

    def _take_signal(self, number: int) -> None:
        if number == signal.SIGQUIT:
            self._send_all(child.STACK_SIGNAL)
            return
        self._send_all(number)
        if self._spec.n == 1 and number == signal.SIGINT and self._interrupts == 0:
            # The program may handle it, a debugger for example; its end is the job's. The second
            # one within the time of the first counts as impatience.
            self._interrupts = 0 if self._pes else 1
            return
        self._interrupts += 1
        self._code = 128 + number
        self._limit = None
        grace = 0.0 if self._interrupts > 1 else _INTERRUPT_GRACE
        self._deadline = time.monotonic() + grace

    def _send_all(self, number: int) -> None:
        for pe in self._pes.values():
            if pe.state.code is None:
                pe.send("signal", number)

    def _time_out(self, now: float) -> None:
        self._limit = None
        if self._deadline is not None:  # it is ending already
            return
        self._say(f"the time limit of {self._spec.timeout:g} s is over; where each PE is:")
        self._code = TIMED_OUT
        for number in sorted(self._pes):
            pe = self._pes[number]
            if pe.state.code is not None:
                continue
            # One after the other, so that each stack is under its PE's name.
            self._say(f"PE {number}:")
            pe.send("signal", child.STACK_SIGNAL)
            until = time.monotonic() + _STACK_GRACE / max(1, self._spec.n / 4)
            while time.monotonic() < until:
                self._turn(until - time.monotonic())
        self._deadline = time.monotonic()

    # ------------------------------------------------------------ the end
    def _end(self) -> None:
        """End every process of the job, and read what they have left to say."""
        self._ending = True
        self._limit = self._deadline = None
        for pe in self._pes.values():
            pe.send("leave")
        self._wait_for_launcher(_LAUNCHER_GRACE)
        for number, grace in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0)):
            if self._launcher is not None and self._launcher_code is None:
                child.signal_group(self._launcher.pid, number)
                self._wait_for_launcher(grace)
        for pe in self._pes.values():
            # If its keeper could not do so any more.
            if pe.state.pid and not self._keeper_left_well(pe):
                child.signal_group(pe.state.pid, signal.SIGKILL)
        self._drain_pipes()

    def _keeper_left_well(self, pe: _PE) -> bool:
        return pe.state.code is not None and not pe.state.killed and not pe.connected

    def _wait_for_launcher(self, grace: float) -> None:
        until = time.monotonic() + grace
        while self._launcher is not None and (
            self._launcher_code is None or any(pe.connected for pe in self._pes.values())
        ):
            left = until - time.monotonic()
            if left <= 0 or self._interrupts > 1:
                return
            try:
                self._turn(left)
            except BrokenPipeError:
                self._code = 128 + signal.SIGPIPE
                self._close_pipes()

    def _drain_pipes(self) -> None:
        try:
            for pe in self._pes.values():
                for reader in list(pe.pipes):
                    while self._read_pipe(pe, reader):
                        continue
                for stream in pe.pipes.values():
                    self._output.close(stream)
        except BrokenPipeError:
            self._code = 128 + signal.SIGPIPE
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pe in self._pes.values():
            for reader in pe.pipes:
                self._selector.unregister(reader)
                os.close(reader)
            pe.pipes.clear()

    def _conclude(self) -> int:
        """Say why the job ended, and return its exit code."""
        states = [self._pes[number].state for number in sorted(self._pes)]
        first = report.first_failure(states)
        if self._spec.verbose or (first is None and self._code is None and self._launcher_code):
            self._output.message(self._messages, self._launcher_text.decode(errors="replace"))
        if self._code is not None:
            if self._code == 128 + signal.SIGINT:
                self._say("interrupted")
                self._output.message(self._messages, report.format_places(states))
            return self._code
        if first is not None:
            code = report.exit_code(first)
            if code:
                self._output.message(self._messages, report.format_failure(states))
            return code
        lost = [str(s.pe) for s in states if s.killed]
        if lost or len(states) < self._spec.n:
            code = self._launcher_code or 0
            how = f"by {report.signal_title(-code)}" if code < 0 else f"with exit code {code}"
            killed = f"; killed: PE {', '.join(lost)}" if lost else ""
            self._say(f"{self._command[0]} ended {how} before all PEs had{killed}")
            return 128 - code if code < 0 else code or (128 + signal.SIGKILL if lost else 1)
        return 0

    def _say(self, text: str) -> None:
        self._output.message(self._messages, f"pypgas run: {text}\n")

    @staticmethod
    def _drain(woken: socket.socket) -> None:
        try:
            while woken.recv(4096):
                continue
        except BlockingIOError:
            return


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
