# SPDX-License-Identifier: Apache-2.0
"""The life of a runtime: ``init()``, what a job consists of, and the ways it can end."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import _native
from ..bootstrap import mpi
from ..bootstrap.base import Bootstrap
from ..bootstrap.descriptors import NodeSockets
from ..bootstrap.select import choose
from ..config import Settings
from ..devices.cpu import CpuDevice
from ..errors import BootstrapError, ConfigError, InvalidValueError, LeakWarning, PeerFailedError, PgasError
from ..memory import heap
from ..memory.heap import Heap
from ..transports.direct import DirectMapping
from . import binding, status
from .team import predefined

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Runtime", "current_runtime", "finalize", "init", "is_initialized", "mark_failed"]

_log = logging.getLogger("pypgas")

_FINALIZED, _FAILED = 2, 3
_LEAST_HEAP = 64 << 20
_LEAST_STAGING_PER_PE = 64  # bytes: an exchange of one block for each PE passes a slice of all blocks
_SPINS, _SPINS_WHEN_CROWDED = 400, 20  # looks at a variable before a wait yields its core
_LOCAL_SETTINGS = ("cache_dir", "cache_size", "job_dir", "log_level")  # may differ between PEs


class Runtime:
    """A live job: this PE, its heap and its teams. Made by `init`, used as a context manager.

    Leaving the ``with`` block normally finalizes (collective). Leaving it by an exception tells the other PEs that
    this one has failed and waits for nobody.

    Attributes:
        settings: The settings in force.
        device: The device this PE computes on (``"cpu"``).
        bootstrap: How the PEs found each other.
        heap: This PE's symmetric heap.
        world: The team of all PEs.
        shared: The team of the PEs whose memory is mapped here.
        node: The team of the PEs on this host.
    """

    def __init__(self, bootstrap: Bootstrap, settings: Settings, arguments: dict[str, object]) -> None:
        self.settings = settings
        self.device = CpuDevice()
        self.bootstrap = bootstrap
        self._arguments = arguments
        self._live = False
        self._pidfds: list[int] = []
        _configure_log(settings)
        binding.bind(self._release)
        bound = False
        mapping: DirectMapping | None = None
        try:
            with contextlib.closing(NodeSockets(bootstrap)) as sockets:
                here = sorted([*sockets.peers, bootstrap.rank])
                heap_bytes = self._agree_on_settings(here)
                staging = max(settings.staging_size, _LEAST_STAGING_PER_PE * bootstrap.size)
                area_bytes = _native.area_bytes(settings.max_teams, staging)
                mapping = DirectMapping(bootstrap.size, area_bytes, heap_bytes)
                self._map_node(mapping, sockets, staging)
                pidfds = {pe: os.dup(fd) for pe, fd in sockets.pidfds().items()}
            self._pidfds = list(pidfds.values())
            crowded = len(here) > self.device.processors()
            _native.attach(
                bootstrap.rank,
                mapping.address,
                mapping.bytes,
                mapping.areas,
                mapping.heaps,
                heap_bytes,
                settings.max_teams,
                staging,
                [pidfds.get(pe, -1) for pe in range(bootstrap.size)],
                _SPINS_WHEN_CROWDED if crowded else _SPINS,
            )
            bound = True
            _native.set_waits(settings.wait_timeout, settings.wait_report)
            self.heap = Heap(heap_bytes, mapping.heaps[bootstrap.rank], status.call_site)
            heap.set_current(self.heap)
            everyone = tuple(range(bootstrap.size))
            self.world, self.shared, self.node = predefined(settings.max_teams, everyone, tuple(here))
            _native.set_world(self.world)
            # The areas were prepared before any descriptor was passed on; teams are made on all PEs before any is used.
            bootstrap.barrier()
        except BaseException:
            if bound:
                _native.detach(_FAILED, "init failed")
            elif mapping is not None:
                mapping.release()
            self._close_pidfds()
            bootstrap.finalize()
            raise
        self._live = True

    def _agree_on_settings(self, here: list[int]) -> int:
        """Check that all PEs agree, and return the heap size they share."""
        boot, settings = self.bootstrap, self.settings
        shared = {k: v for k, v in vars(settings).items() if k not in _LOCAL_SETTINGS}
        share = max(_LEAST_HEAP, self.device.memory_bytes() // len(here))
        everyone = boot.allgather((shared, share, here))
        for pe, (theirs, _, _) in enumerate(everyone):
            differ = sorted(name for name in shared if theirs[name] != shared[name])
            if differ:
                raise ConfigError(
                    f"PE {boot.rank}: init: settings differ between PEs: {differ[0]} is {shared[differ[0]]!r} here and "
                    f"{theirs[differ[0]]!r} on PE {pe}; all PEs must use the same"
                )
        absent = [pe for pe in range(boot.size) if pe not in here]
        if any(len(members) != boot.size for _, _, members in everyone):
            raise BootstrapError(
                f"PE {boot.rank}: init: PEs {absent or 'of this job'} are on other hosts, and this version reaches memory of "
                "one host only; start the job on one host"
            )
        if settings.heap_size is not None:
            return settings.heap_size
        return min(size for _, size, _ in everyone) // 4096 * 4096

    def _map_node(self, mapping: DirectMapping, sockets: NodeSockets, staging: int) -> None:
        own = self.device.create_segment(mapping.segment_bytes)
        try:
            mapping.map({self.bootstrap.rank: os.dup(own)})
            _native.prepare_area(
                mapping.areas[self.bootstrap.rank],
                self.settings.max_teams,
                staging,
                os.getpid(),
            )
            mapping.map(sockets.exchange(own))
        finally:
            os.close(own)

    def _release(self, blocks: list[int]) -> None:
        self.heap.release(blocks)

    @property
    def live(self) -> bool:
        """Whether the runtime can be used."""
        return self._live and _native.is_active()

    def matches(self, arguments: dict[str, object]) -> bool:
        """Whether ``init()`` with these arguments means this runtime."""
        return self._arguments == arguments

    def finalize(self) -> None:
        """End the runtime on all PEs (collective): complete all operations, release all memory.

        Arrays that are still allocated are released and reported as a `LeakWarning`, which Python shows under
        ``-X dev`` or ``-W default``. A second call does nothing.
        """
        if not self._live:
            return
        _native.check("finalize")
        _native.synchronize_all(None)
        _native.quiet()
        _native.agree("finalize", "finalize", None, 0, 0, None)
        self._report_leaks()
        self._end(_FINALIZED, "")

    def fail(self, reason: str) -> None:
        """Tell the other PEs that this one is leaving in disorder, and end the runtime here. Waits for nobody."""
        if self._live:
            self._end(_FAILED, reason)

    def _end(self, phase: int, reason: str) -> None:
        self._live = False
        if phase == _FAILED:
            _native.abandon_streams()
        _native.detach(phase, reason)
        heap.set_current(None)
        self._close_pidfds()
        if phase == _FINALIZED:
            self.bootstrap.finalize()
        _forget(self)

    def _close_pidfds(self) -> None:
        for fd in self._pidfds:
            os.close(fd)
        self._pidfds = []

    def _report_leaks(self) -> None:
        live = self.heap.statistics().live
        if live:
            listed = "; ".join(f"{block.nbytes} bytes from {block.site}" for block in live[:8])
            more = f" and {len(live) - 8} more" if len(live) > 8 else ""
            warnings.warn(
                f"PE {self.bootstrap.rank}: finalize: {len(live)} symmetric arrays were still allocated: {listed}{more}",
                LeakWarning,
                stacklevel=3,
            )

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live and not _native.is_active():
            return  # a forked child leaves a block that is its parent's to end
        if error is None or (isinstance(error, SystemExit) and not error.code):
            self.finalize()
        elif self._live:
            self.fail(describe_exception(error))
            if isinstance(error, SystemExit):
                mpi.leave_without_mpi()  # the exit code is this PE's; the others may never come to MPI_Finalize

    def __repr__(self) -> str:
        state = "live" if self.live else "ended"
        return (
            f"<pypgas.Runtime PE {self.bootstrap.rank} of {self.bootstrap.size}, {self.device.name}, {state}>"
        )


def describe_exception(error: BaseException) -> str:
    """Return why a PE failed, for the other PEs' messages."""
    if isinstance(error, PeerFailedError):
        return f"{status.SECONDARY} {error.pes}"
    return f"{type(error).__name__}: {error}"


_runtime: Runtime | None = None


def _forget(runtime: Runtime) -> None:
    global _runtime
    if _runtime is runtime:
        _runtime = None


def _configure_log(settings: Settings) -> None:
    _log.setLevel(settings.log_level)


def init(
    comm: MPI.Intracomm | None = None,
    *,
    device: str = "auto",
    heap_size: int | str | None = None,
    wait_timeout: float | None = None,
    wait_report: float | None = None,
    **settings: Any,
) -> Runtime:
    """Start the runtime on every PE (collective) and return it.

    Args:
        comm: An mpi4py intracommunicator whose ranks become the PEs; by default all processes that the launcher
            started, or this process alone where there was no launcher.
        device: ``"cpu"``, or ``"auto"`` for the best there is.
        heap_size: Upper limit of each PE's heap in bytes, or text such as ``"2G"``.
        wait_timeout: Seconds after which waits raise.
        wait_report: Seconds after which waits are reported.
        **settings: Any other field of `pypgas.Settings`. Keywords win over ``PYPGAS_*`` variables.

    A second call with the same arguments returns the same runtime.

    Raises:
        ConfigError: a setting is unknown or malformed, or differs between PEs.
        BootstrapError: the PEs could not find each other.
        InvalidValueError: already initialised with other arguments, or no such device.
    """
    global _runtime
    arguments: dict[str, object] = dict(
        settings,
        comm=comm,
        device=device,
        heap_size=heap_size,
        wait_timeout=wait_timeout,
        wait_report=wait_report,
    )
    if _runtime is not None and _runtime._live:
        _native.check("init")
        if _runtime.matches(arguments):
            return _runtime
        raise InvalidValueError(
            f"PE {_runtime.bootstrap.rank}: init: pypgas is initialised already, with other arguments; call finalize() first"
        )
    if device not in ("auto", "cpu"):
        raise InvalidValueError(f"init: device = {device!r} is not 'auto' or 'cpu'")
    chosen = Settings.from_environment(
        None, heap_size=heap_size, wait_timeout=wait_timeout, wait_report=wait_report, **settings
    )
    runtime = Runtime(choose(comm), chosen, arguments)
    _runtime = runtime
    _leave_in_order()
    return runtime


def finalize() -> None:
    """End the runtime on all PEs (collective). Does nothing if it has ended; `init` can start a new one."""
    if _runtime is not None:
        _runtime.finalize()


def is_initialized() -> bool:
    """Whether a runtime is live in this process. May be called at any time."""
    return _runtime is not None and _runtime.live


def current_runtime(operation: str) -> Runtime:
    """Return the live runtime.

    Raises:
        NotInitializedError: there is none, or this process is a fork of a PE.
    """
    _native.check(operation)
    assert _runtime is not None
    return _runtime


def mark_failed(reason: str | BaseException) -> None:
    """Tell the other PEs that this one has failed; they get `PeerFailedError`. Does nothing without a live runtime."""
    if _runtime is not None and _runtime.live:
        _runtime.fail(reason if isinstance(reason, str) else describe_exception(reason))


_registered = False


def _leave_in_order() -> None:
    """Have the interpreter's exit end a runtime the program did not end."""
    global _registered
    if not _registered:
        _registered = True
        atexit.register(_at_exit)


def _at_exit() -> None:
    if _runtime is None or not _runtime.live:
        return
    if mpi.leaving_by_exception():
        error = getattr(sys, "last_value", None)
        mark_failed(error if error is not None else "the program ended by an exception")
        mpi.leave_without_mpi()
        return
    try:
        _runtime.finalize()
    except PgasError as error:
        # Exceptions in exit handlers can't be caught by anyone; the job's other PEs say the same.
        _log.error("%s", error)
        mark_failed(f"finalize at exit: {error}")
        mpi.leave_without_mpi()
