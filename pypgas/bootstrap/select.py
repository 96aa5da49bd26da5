# SPDX-License-Identifier: Apache-2.0
"""Choosing the bootstrap: MPI or a job of one PE.

A process started without a launcher is a job of one PE and touches no MPI. The opposite mistake
is worse: a launcher starts N processes, but the MPI library in them belongs to another launcher
and tells each that it is alone. They would run as N independent jobs, in silence. So the number
of processes that the launcher's environment states must be what MPI reports.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import BootstrapError
from .base import Bootstrap
from .mpi import MPIBootstrap, import_mpi, initialize_mpi
from .single import SingleBootstrap

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Launch", "choose", "detect_launch"]

# (launcher, variable with the number of processes, variable with the process's number), innermost
# launcher first: mpirun inside a Slurm allocation leaves Slurm's variables in place, and Hydra
# starts its proxies through srun.
_LAUNCHERS = (
    ("Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("MVAPICH's mpirun", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("a PMI launcher (MPICH's or Intel MPI's mpirun, or srun)", "PMI_SIZE", "PMI_RANK"),
    ("MPICH's mpirun", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"),
)

# Slurm numbers its pseudo-steps (batch script, interactive shell, extern) from here up.
_FIRST_PSEUDO_STEP = 0xFFFFFFF0


@dataclasses.dataclass(frozen=True)
class Launch:
    """What the environment says of the launcher that started this process.

    Attributes:
        launcher: Its name, for messages.
        size: How many processes it started, at least; 0 if the environment doesn't say.
        rank: This process's number among them, if known.
        evidence: The variable that says so, as ``NAME=value``.
    """

    launcher: str
    size: int
    rank: int | None
    evidence: str


def detect_launch(environ: Mapping[str, str]) -> Launch | None:
    """Return what ``environ`` says of the launcher, ``None`` if there is no sign of one."""
    for launcher, size_name, rank_name in _LAUNCHERS:
        size = _number(environ, size_name)
        if size is not None:
            rank = _number(environ, rank_name)
            return Launch(launcher, size, rank, f"{size_name}={size}")
    step = _number(environ, "SLURM_STEP_ID")
    rank = _number(environ, "SLURM_PROCID")
    # In a batch script SLURM_NTASKS counts the allocation, of which the script is one process.
    if step is not None and step < _FIRST_PSEUDO_STEP and rank is not None:
        for size_name in ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"):
            size = _number(environ, size_name)
            if size is not None:
                return Launch("srun", size, rank, f"{size_name}={size}")
    rank = _number(environ, "PMIX_RANK")
    if rank is not None:
        return Launch("a PMIx launcher", 0, rank, f"PMIX_RANK={rank}")
    return None


def choose(comm: MPI.Intracomm | None = None) -> Bootstrap:
    """Return the bootstrap for this process (collective over the job).

    Args:
        comm: An mpi4py communicator of the PEs. ``None``: the processes that the launcher
            started, or this process alone.

    Raises:
        BootstrapError: the launcher started several processes but MPI can't bring them
            together; the message says why and what to do.
        InvalidTypeError: ``comm`` is no mpi4py intracommunicator.
    """
    if comm is not None:
        return MPIBootstrap(comm)
    launch = detect_launch(os.environ)
    if _program_uses_parallel_mpi():
        return MPIBootstrap()
    if launch is None or launch.size == 1:
        return SingleBootstrap()
    mpi = _import_for(launch)
    _check_library(mpi, launch)
    initialize_mpi()
    found = mpi.COMM_WORLD.Get_size()
    # MPI_LOCALNRANKS counts one node only, and an unknown size (0) is checked by the rank.
    too_few = found < launch.size or (launch.rank is not None and launch.rank >= found)
    if too_few:
        raise _singletons(launch, f"MPI reports {found}", _library(mpi))
    return MPIBootstrap()


def _program_uses_parallel_mpi() -> bool:
    """Whether the program itself runs MPI over several processes, whatever started them."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return False
    return bool(mpi.COMM_WORLD.Get_size() > 1)


def _import_for(launch: Launch) -> Any:
    try:
        return import_mpi()
    except BootstrapError as error:
        pe = "?" if launch.rank is None else launch.rank
        reason = str(error).removeprefix("PE ?: init: ")
        raise BootstrapError(
            f"PE {pe}: init: started by {launch.launcher} ({launch.evidence}), but {reason}"
        ) from error


def _check_library(mpi: Any, launch: Launch) -> None:
    """Refuse an MPICH without PMIx under a PMIx launcher: its MPI_Init would end the process."""
    if mpi.Is_initialized() or mpi.get_vendor()[0] != "MPICH":
        return
    if "PMIX_RANK" not in os.environ or "PMI_SIZE" in os.environ or "PMI_FD" in os.environ:
        return
    with open("/proc/self/maps") as maps:
        if "pmix" in maps.read():
            return
    raise _singletons(launch, "this MPI library can't talk to that launcher", _library(mpi))


def _library(mpi: Any) -> str:
    vendor, version = mpi.get_vendor()
    return f"{vendor} {'.'.join(map(str, version))}"


def _singletons(launch: Launch, finding: str, library: str) -> BootstrapError:
    pe = "?" if launch.rank is None else launch.rank
    count = f"{launch.size} processes" if launch.size else "several processes"
    return BootstrapError(
        f"PE {pe}: init: {launch.launcher} started {count} ({launch.evidence}), but {finding}: "
        f"mpi4py uses {library}, which is not what started the job, so that each process would "
        "run alone. Start the program with the mpirun of that library ('pypgas run' finds it; "
        "with srun, choose the --mpi= option that the library supports), or install mpi4py's MPI "
        "library to match the launcher. A process that really is to be alone, such as a child "
        "process of a PE, passes comm=MPI.COMM_SELF or is started without these variables."
    )


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isdecimal() else None
