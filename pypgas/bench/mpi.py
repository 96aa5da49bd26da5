# SPDX-License-Identifier: Apache-2.0
"""mpi4py's side: one-sided operations on an allocated window under ``Lock_all``, and MPI's collectives."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

from ..bootstrap.mpi import initialize_mpi
from .operations import BATCH, Code, Operation
from .ours import elements, pattern

__all__ = ["Mpi4py"]

_NAP = 2e-4  # s


class Mpi4py:
    """See `pypgas.bench.operations.Side`.

    Args:
        n_pes: The number of PEs, which must be the size of ``COMM_WORLD``.
        largest: Bytes of the largest transfer.

    Raises:
        BootstrapError: mpi4py or the MPI library can't be used.
        ValueError: ``COMM_WORLD`` has another number of processes.
    """

    name = "mpi4py"

    def __init__(self, n_pes: int, largest: int) -> None:
        self._mpi: Any = initialize_mpi()
        self._comm = self._mpi.COMM_WORLD
        if self._comm.Get_size() != n_pes:
            raise ValueError(f"MPI has {self._comm.Get_size()} processes, the job {n_pes} PEs")
        self._me, self._n = self._comm.Get_rank(), n_pes
        # Windows of their own keep every displacement 0: one for the data, one for the ping-pong's flag and the atomics.
        self._win = self._mpi.Win.Allocate(largest, 1, comm=self._comm)
        self._word_win = self._mpi.Win.Allocate(8, 1, comm=self._comm)
        self._data = np.frombuffer(self._win.tomemory(), np.uint8)
        self._word = np.frombuffer(self._word_win.tomemory(), np.uint64)
        self._data[...] = 0
        self._win.Lock_all()
        self._word_win.Lock_all()

    def prepare(self, operation: Operation, nbytes: int) -> Code | None:
        """Return how MPI does the operation."""
        self._word[...] = 0
        self._word_win.Sync()
        self.settle()
        if operation.name.startswith("atomic_"):
            return self._atomic(operation)
        if operation.name == "barrier_all":
            return Code({"Barrier": self._comm.Barrier}, "Barrier()")
        if operation.name in ("put", "get", "put_nbi", "put_signal", "p", "g"):
            return self._transfer(operation, 8 if operation.name in ("p", "g") else nbytes)
        return self._collective(operation, nbytes)

    def _transfer(self, operation: Operation, nbytes: int) -> Code:
        win = self._win
        source = pattern(nbytes)
        pe = 1 - self._me if self._me < 2 and self._n > 1 else 0
        names: dict[str, Any] = {
            "Put": win.Put,
            "Get": win.Get,
            "Flush": win.Flush,
            "source": source,
            "pe": pe,
        }
        if operation.name in ("put", "p"):
            return Code(names, "Put(source, pe); Flush(pe)")
        if operation.name == "put_nbi":
            return Code(names, "Put(source, pe); " * BATCH + "Flush(pe)")
        if operation.name in ("get", "g"):
            names["destination"] = np.zeros_like(source)
            return Code(names, "Get(destination, pe); Flush(pe)")
        # The flag is a second Put, ordered after the data by the Flush; the receiver looks at its own window memory.
        flags = self._word_win
        names.update(Signal=flags.Put, Flush_signal=flags.Flush, Sync=flags.Sync, flag=self._word)
        names.update(out=np.zeros(1, np.uint64), numbers=itertools.count(1))
        send = "Put(source, pe); Flush(pe); out[0] = k; Signal(out, pe); Flush_signal(pe)"
        receive = "while flag[0] < k: Sync()"
        return Code(names, f"k = next(numbers); {send}\n{receive}", f"k = next(numbers)\n{receive}\n{send}")

    def _atomic(self, operation: Operation) -> Code:
        win, mpi = self._word_win, self._mpi
        one, old, zero = np.ones(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
        names: dict[str, Any] = {"one": one, "zero": zero, "old": old, "pe": 1 % self._n, "Flush": win.Flush}
        if operation.name == "atomic_add":
            names.update(call=win.Accumulate, SUM=mpi.SUM)
            return Code(names, "call(one, pe, op=SUM); Flush(pe)")
        if operation.name == "atomic_compare_swap":
            names.update(call=win.Compare_and_swap)
            return Code(names, "call(one, zero, old, pe); Flush(pe)")
        ops = {"atomic_fetch_add": mpi.SUM, "atomic_swap": mpi.REPLACE, "atomic_fetch": mpi.NO_OP}
        names.update(call=win.Fetch_and_op, op=ops[operation.name])
        return Code(names, "call(one, old, pe, 0, op); Flush(pe)")

    def _collective(self, operation: Operation, nbytes: int) -> Code:
        comm, n = self._comm, self._n
        calls = {
            "reduce": ("Allreduce", 1, 1),
            "reduce_scatter": ("Reduce_scatter_block", n, 1),
            "fcollect": ("Allgather", 1, n),
            "alltoall": ("Alltoall", n, n),
            "inclusive_scan": ("Scan", 1, 1),
        }
        if operation.name == "broadcast":
            return Code({"Bcast": comm.Bcast, "x": pattern(nbytes)}, "Bcast(x)")
        name, blocks_in, blocks_out = calls[operation.name]
        x, out = pattern(nbytes * blocks_in), np.zeros_like(pattern(nbytes * blocks_out))
        return Code({name: getattr(comm, name), "x": x, "out": out}, f"{name}(x, out)")

    def verify(self, operation: Operation, nbytes: int) -> None:
        """Check what arrived in this process's window."""
        if operation.name in ("put", "put_nbi", "put_signal") and self._me == 1 % self._n:
            self._win.Sync()
            count, dtype = elements(nbytes)
            arrived = self._data[:nbytes].view(dtype)[:count]
            assert np.array_equal(arrived, pattern(nbytes)), f"{operation.name}: wrong data"

    def release(self) -> None:
        """The windows are kept for the next operation."""

    def settle(self) -> None:
        """Wait for all processes without taking a core from those that still work."""
        request = self._comm.Ibarrier()
        while not request.Test():
            time.sleep(_NAP)

    def close(self) -> None:
        """Free the windows."""
        del self._data, self._word
        for win in (self._win, self._word_win):
            win.Unlock_all()
            win.Free()

    def versions(self) -> dict[str, str]:
        """Return the versions of mpi4py and of the MPI library."""
        import mpi4py

        vendor, version = self._mpi.get_vendor()
        return {"mpi4py": mpi4py.__version__, "mpi": f"{vendor} {'.'.join(map(str, version))}"}
