# SPDX-License-Identifier: Apache-2.0
"""One PE of a job that ``pypgas run`` starts.

The MPI launcher runs this file once per PE, as ``python child.py JOB KIND PROGRAM ARGS...``. It
is run by its path and uses the standard library alone, so that the program decides what is
imported and when.

The process splits in two. The *worker* runs the program as ``python`` would. The *keeper* stays
the process that the MPI launcher knows: it tells ``pypgas run`` how the worker ended and leaves
only when the whole job may end. So no MPI launcher sees a PE die, and none can kill the others
before they have said what happened to them. Keeper and parent talk over a Unix socket in the
job's folder. A message is a word and numbers:

===================================  ============================================================
keeper: ``hello PE SIZE``            first; the parent answers with ``start``
parent: ``start 0 1 2``              start the worker; its descriptors of these numbers come with
                                     the message, the others stay as they are
keeper: ``pid PID``                  the worker, which leads a process group of its own
parent: ``signal NUMBER``            send this signal to the worker's process group
keeper: ``ended CODE TOLD``          as ``subprocess``: the exit code, or minus the signal; whether
                                     (1 or 0) the MPI launcher had the worker killed
parent: ``leave``                    kill what is left of the group, and leave
===================================  ============================================================

The end of that connection means that the parent is gone, and ends everything.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import io
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, ModuleType, TracebackType

TYPE_CHECKING = False  # as in typing, which is slow to import
if TYPE_CHECKING:
    from typing import Any, NoReturn

# Variables with a process's number and the number of processes, as launchers set them.
NUMBERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
SOCKET = "control"  # the parent's socket, in the job's folder
GRACE = 3.0  # s that the other PEs get after one has failed
STACK_SIGNAL = signal.SIGQUIT  # prints the Python stacks of a PE
_PR_SET_PDEATHSIG = 1


def report_path(folder: str, pe: int) -> str:
    """The file in which PE ``pe`` says why it failed: one JSON object, see `describe_failure`."""
    return os.path.join(folder, f"pe-{pe}.json")


# ---------------------------------------------------------------- running the program
def run_program(kind: str, program: str, arguments: list[str]) -> None:
    """Run a program in a fresh ``__main__``, as ``python PROGRAM``, ``-m`` or ``-c`` would.

    Args:
        kind: ``"file"`` (a script, or a folder or archive with a ``__main__.py``), ``"module"``
            or ``"code"``.
        program: The path, the module's name or the source text.
        arguments: ``sys.argv[1:]`` of the program.
    """
    own_folder = os.path.dirname(os.path.abspath(__file__))
    # Python put this file's folder first, where the program's belongs.
    if sys.path and os.path.abspath(sys.path[0]) == own_folder:
        del sys.path[0]
    sys.argv = [program if kind == "file" else f"-{kind[0]}", *arguments]
    if kind == "module":
        if not sys.flags.safe_path:
            sys.path.insert(0, os.getcwd())
        import runpy

        runpy.run_module(program, run_name="__main__", alter_sys=True)
    elif kind == "file" and not _is_source(program):
        import runpy

        runpy.run_path(program, run_name="__main__")
    elif kind == "file":
        if not sys.flags.safe_path:
            sys.path.insert(0, os.path.dirname(os.path.realpath(program)))
        with open(program, "rb") as file:
            source = file.read()
        exec(compile(source, program, "exec"), _fresh_main(program).__dict__)
    else:
        if not sys.flags.safe_path:
            sys.path.insert(0, "")
        exec(compile(program, "<string>", "exec"), _fresh_main(None).__dict__)


def _is_source(path: str) -> bool:
    """Whether this is source text: not a folder, an archive or compiled code."""
    if os.path.isdir(path):
        return False
    with open(path, "rb") as file:
        return b"\0" not in file.read(4096)


def _fresh_main(path: str | None) -> ModuleType:
    # A new module, and not this file's namespace: nothing of ours is visible to the program,
    # and what it defines is found in sys.modules["__main__"], where pickle looks.
    main = ModuleType("__main__")
    main.__dict__.update({"__builtins__": sys.modules["builtins"], "__annotations__": {}})
    if path is not None:
        from importlib.machinery import SourceFileLoader

        main.__dict__.update(
            {"__file__": path, "__cached__": None, "__loader__": SourceFileLoader("__main__", path)}
        )
    sys.modules["__main__"] = main
    return main


# ---------------------------------------------------------------- how the program ended
def run_worker(folder: str, pe: int, kind: str, program: str, arguments: list[str]) -> int:
    """Run the program; on failure report it, tell the other PEs and leave without MPI.

    Returns:
        0. A PE that fails does not return.

    Raises:
        BaseException: In a process that the program forked: its end is as in any Python program,
            and says nothing about the PE.
    """
    worker = os.getpid()
    try:
        run_program(kind, program, arguments)
    except SystemExit as error:
        if os.getpid() != worker:
            raise
        code, message = _exit_code(error.code)
        # pypgas.abort(0) is a good end, but one of the whole job.
        if code == 0 and not getattr(error, "ends_job", False):
            return 0
        _fail(folder, pe, error, code, message)
    except BaseException as error:
        if os.getpid() != worker:
            raise
        code = 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
        _fail(folder, pe, error, code, str(error))
    return 0


def _exit_code(value: object) -> tuple[int, str]:
    if value is None:
        return 0, ""
    if isinstance(value, int):
        # What the system keeps of it; 256 must not pass for success.
        return (value & 0xFF) or (1 if value else 0), ""
    return 1, str(value)


def _fail(folder: str, pe: int, error: BaseException, code: int, message: str) -> NoReturn:
    # First of all: later steps may take time, and the report says when this happened.
    write_report(folder, pe, describe_failure(pe, error, code, message))
    # Only where the program has imported pypgas is there anybody to tell.
    _call_if_loaded("pypgas.core.runtime", "mark_failed", error)
    _call_if_loaded("pypgas.bootstrap.mpi", "leave_without_mpi")
    # As an uncaught exception does, for exit hooks that ask (last_exc since Python 3.12).
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    setattr(sys, "last_exc", error)  # noqa: B010 checkers for Python 3.11 do not know it
    # The program's exit hooks run, an MPI_Finalize registered below Python's level does not:
    # it would wait for PEs that may never come.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, or nobody reads it any more
            continue
    os._exit(code)


def _call_if_loaded(module: str, name: str, *arguments: object) -> None:
    function = getattr(sys.modules.get(module), name, None)
    if function is None:
        return
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 a second failure must not hide the first
        print(f"pypgas: {module}.{name}: {type(error).__name__}: {error}", file=sys.stderr)


def describe_failure(pe: int, error: BaseException, code: int, message: str) -> dict[str, Any]:
    """What the job's failure report needs to know about an exception that ended a PE.

    Returns:
        ``pe``; ``kind`` (``"exception"``, ``"exit"``, ``"interrupt"``); ``type`` and ``message``
        of the exception; ``traceback``, its text from the program's own frames on; ``where``,
        the innermost line outside pypgas; ``code``, the exit code; ``secondary``, whether it
        only follows from the failure of another PE; ``time`` in seconds on the machine's
        monotonic clock.
    """
    kind = "exception"
    if isinstance(error, KeyboardInterrupt):
        kind = "interrupt"
    elif isinstance(error, SystemExit):
        kind = "exit"
    report: dict[str, Any] = {
        "pe": pe,
        "kind": kind,
        "type": _type_name(type(error)),
        "message": message,
        "code": code,
        "secondary": any(_is_peer_failure(e) for e in _chain(error)),
        "time": time.monotonic(),
        "where": "",
        "traceback": "",
    }
    if kind != "exit":
        import traceback

        trace = _program_frames(error.__traceback__)
        report["traceback"] = "".join(traceback.format_exception(type(error), error, trace))
        report["where"] = _where(trace)
    return report


def write_report(folder: str, pe: int, report: Mapping[str, Any]) -> None:
    """Put a report where the parent finds it, whole or not at all. The first one stands."""
    import json

    path = report_path(folder, pe)
    if os.path.exists(path):
        return
    try:
        with open(path + ".new", "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(dict(report), file)
        os.rename(path + ".new", path)
    except OSError as error:  # the folder is gone: the job is being ended already
        print(f"pypgas: no failure report of PE {pe}: {error}", file=sys.stderr)
        print(report.get("traceback", ""), file=sys.stderr)


def _type_name(kind: type[BaseException]) -> str:
    return (
        kind.__qualname__
        if kind.__module__ in ("builtins", "__main__")
        else (f"{kind.__module__}.{kind.__qualname__}")
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _is_peer_failure(error: BaseException) -> bool:
    # By name: a program that never imported pypgas must not pay for it here.
    return any(
        c.__name__ == "PeerFailedError" and c.__module__ == "pypgas.errors" for c in type(error).__mro__
    )


def _program_frames(trace: TracebackType | None) -> TracebackType | None:
    # None is left of an error in starting the program, which then speaks for itself.
    while trace is not None and _is_hidden(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_hidden(file: str) -> bool:
    return file == __file__ or file.startswith("<frozen ") or file.endswith(os.sep + "runpy.py")


def _where(trace: TracebackType | None) -> str:
    runtime = os.path.dirname(getattr(sys.modules.get("pypgas"), "__file__", None) or "") or None
    found = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if not found or runtime is None or not code.co_filename.startswith(runtime + os.sep):
            found = f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    return found


# ---------------------------------------------------------------- messages
LONGEST = 256  # bytes of a message


def send(control: socket.socket, word: str, *numbers: int, descriptors: Sequence[int] = ()) -> None:
    """Send one message, and descriptors with it. That the other end is gone, reading tells."""
    text = " ".join([word, *(str(int(number)) for number in numbers)]).encode()
    try:
        socket.send_fds(control, [text], list(descriptors))
    except (BrokenPipeError, ConnectionResetError):
        return


def parse(data: bytes) -> tuple[str, list[int]]:
    """Split a message into its word and its numbers.

    Raises:
        ValueError: this is no message.
    """
    word, *numbers = data.decode("ascii").split()
    return word, [int(number) for number in numbers]


# ---------------------------------------------------------------- keeper and worker
def number_of(environ: Mapping[str, str]) -> tuple[int, int]:
    """This PE's number and the number of PEs, from a launcher's environment; (0, 1) without."""
    for rank, size in NUMBERS:
        if rank in environ and size in environ:
            return int(environ[rank]), int(environ[size])
    return 0, 1


def fork_worker(descriptors: Mapping[int, int], control: socket.socket | None = None) -> int:
    """Fork the worker.

    Args:
        descriptors: What the worker gets as its descriptors 0, 1 and 2.
        control: The keeper's own connection, closed in the worker.

    Returns:
        The worker's process id; 0 in the worker, which then has the program to run.
    """
    keeper = os.getpid()
    pid = os.fork()
    if pid:
        # Also here, so that the group exists whoever is first to need it.
        _set_group(pid)
        return pid
    _set_group(0)
    # However the keeper ends, the worker must not stay.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != keeper:
        os._exit(1)
    for number, descriptor in descriptors.items():
        os.dup2(descriptor, number, inheritable=True)
        os.close(descriptor)
    if control is not None:
        control.close()
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(name, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A pipe makes Python buffer whole blocks; what a PE prints should be seen when it prints it.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    if sys.stderr is not None:
        faulthandler.enable()
        faulthandler.register(STACK_SIGNAL)
    return 0


def _set_group(pid: int) -> None:
    try:
        os.setpgid(pid, 0)
    except (PermissionError, ProcessLookupError):  # the other side was first
        return


def signal_group(group: int, number: int) -> None:
    """Send a signal to a process group that may have ended."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


class Keeper:
    """Watches over the worker and does what the parent says."""

    def __init__(self, control: socket.socket, folder: str) -> None:
        self._control = control
        self._folder = folder
        self._worker = 0
        self._told = False  # the MPI launcher has told us to leave

    def run(self, pe: int, size: int) -> int | None:
        """Start the worker, stay until the parent lets go.

        Returns:
            The exit code to leave with; ``None`` in the worker.
        """
        send(self._control, "hello", pe, size)
        data, descriptors, _, _ = socket.recv_fds(self._control, LONGEST, 3)
        if not data:
            return self._orphaned()
        _, numbers = parse(data)
        # Out of the way of 0, 1 and 2, which some of them will become.
        given = {n: fd if fd > 2 else _above(fd) for n, fd in zip(numbers, descriptors, strict=True)}
        if 0 not in given:
            given[0] = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            if given[0] <= 2:
                given[0] = _above(given[0])
        self._worker = fork_worker(given, self._control)
        if not self._worker:
            return None
        for descriptor in given.values():
            os.close(descriptor)
        signal.signal(signal.SIGTERM, self._end_worker)
        signal.signal(signal.SIGHUP, self._end_worker)
        send(self._control, "pid", self._worker)
        return self._watch()

    def _watch(self) -> int:
        ended = os.pidfd_open(self._worker)
        poller = select.poll()
        poller.register(ended, select.POLLIN)
        poller.register(self._control, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poller.poll()}
            if ended in ready:
                poller.unregister(ended)
                _, status = os.waitpid(self._worker, 0)
                send(self._control, "ended", os.waitstatus_to_exitcode(status), self._told)
            if self._control.fileno() in ready:
                data = self._control.recv(LONGEST)
                if not data:
                    return self._orphaned()
                word, numbers = parse(data)
                if word == "signal":
                    signal_group(self._worker, numbers[0])
                elif word == "leave":
                    signal_group(self._worker, signal.SIGKILL)
                    return 0

    def _end_worker(self, number: int, frame: FrameType | None) -> None:
        self._told = True
        signal_group(self._worker, signal.SIGKILL)

    def _orphaned(self) -> int:
        if self._worker:
            signal_group(self._worker, signal.SIGKILL)
        remove_folder(self._folder)
        return 1


def _above(descriptor: int) -> int:
    import fcntl

    moved: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved


def remove_folder(folder: str) -> None:
    """Remove a job's folder, which holds files only; others may be doing the same."""
    try:
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:
        return


def run_alone(pe: int, folder: str) -> int | None:
    """Start and watch the worker where the parent can't be reached: on another node.

    Its output goes the MPI launcher's way, and what the parent would have reported is printed.

    Returns:
        The exit code for the MPI launcher; ``None`` in the worker.
    """
    worker = fork_worker({})
    if not worker:
        return None
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: signal_group(worker, signal.SIGKILL))
    _, status = os.waitpid(worker, 0)
    code = os.waitstatus_to_exitcode(status)
    signal_group(worker, signal.SIGKILL)
    if code == 0:
        return 0
    text = f"pypgas: PE {pe} ended with exit code {code}\n"
    if code < 0:
        text = f"pypgas: PE {pe} was killed by {signal.Signals(-code).name}\n"
    if os.path.exists(report_path(folder, pe)):
        import json

        with open(report_path(folder, pe), encoding="utf-8") as file:
            report = json.load(file)
        text += report["traceback"] or report["message"] + "\n"
    sys.stderr.write(text)
    sys.stderr.flush()
    # The MPI launcher may end the others once this process has left.
    time.sleep(GRACE)
    return code if code > 0 else 128 - code


def main() -> int:
    """Be one PE. Returns the exit code."""
    folder, kind, program, *arguments = sys.argv[1:]
    pe, size = number_of(os.environ)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # Hydra's word that another process failed
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    remote = False
    try:
        control.connect(os.path.join(folder, SOCKET))
    except FileNotFoundError:  # the parent's folder is on another node
        import tempfile

        remote = True
        control.close()
        folder = tempfile.mkdtemp(prefix="pypgas-")
    except ConnectionRefusedError:  # the parent has died
        return 1
    os.environ["PYPGAS_JOB_DIR"] = folder
    code = run_alone(pe, folder) if remote else Keeper(control, folder).run(pe, size)
    if code is None:
        return run_worker(folder, pe, kind, program, arguments)
    if remote:
        remove_folder(folder)
    return code


if __name__ == "__main__":
    sys.exit(main())
