# SPDX-License-Identifier: Apache-2.0
"""pypgas's own side of the measurements: public functions on NumPy operands."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

import pypgas as pg

from .operations import BATCH, Code, Operation

__all__ = ["Ours", "elements", "pattern"]


def elements(nbytes: int) -> tuple[int, np.dtype[Any]]:
    """Number and type of elements for a transfer of ``nbytes``."""
    return (nbytes // 8, np.dtype(np.float64)) if nbytes % 8 == 0 else (nbytes, np.dtype(np.uint8))


def pattern(nbytes: int) -> npt.NDArray[Any]:
    """Data that differs from byte to byte and is touched, so that no page is still to be made."""
    count, dtype = elements(nbytes)
    return (np.arange(count) % 251 + 1).astype(dtype)


class Ours:
    """See `pypgas.bench.operations.Side`. The runtime must be live."""

    name = "pypgas"

    def __init__(self) -> None:
        self._arrays: list[pg.SymmetricArray] = []
        self._me, self._n = pg.my_pe(), pg.n_pes()

    def _symmetric(self, count: int, dtype: Any) -> pg.SymmetricArray:
        array = pg.empty(count, dtype)
        array.fill(0)  # touches every page
        self._arrays.append(array)
        return array

    def prepare(self, operation: Operation, nbytes: int) -> Code | None:
        """Return how pypgas does the operation."""
        if operation.name.startswith("atomic_"):
            return self._atomic(operation)
        if operation.name in ("p", "g"):
            code = "p(target, 1.5, pe); quiet()" if operation.name == "p" else "g(target, pe)"
            names = {"p": pg.p, "g": pg.g, "quiet": pg.quiet, "pe": 1 % self._n}
            return Code({**names, "target": self._symmetric(1, float)}, code)
        if operation.name == "barrier_all":
            return Code({"barrier_all": pg.barrier_all}, "barrier_all()")
        if operation.name in ("put", "get", "put_nbi", "put_signal"):
            return self._transfer(operation, nbytes)
        return self._collective(operation, nbytes)

    def _transfer(self, operation: Operation, nbytes: int) -> Code:
        count, dtype = elements(nbytes)
        target = self._symmetric(count, dtype)
        pe = 1 - self._me if self._me < 2 and self._n > 1 else 0
        names = {"target": target, "source": pattern(nbytes), "pe": pe, "quiet": pg.quiet}
        if operation.name == "put":
            return Code({**names, "put": pg.put}, "put(target, source, pe); quiet()")
        if operation.name == "put_nbi":
            return Code({**names, "put_nbi": pg.put_nbi}, "put_nbi(target, source, pe); " * BATCH + "quiet()")
        if operation.name == "get":
            target.local[...] = pattern(nbytes)
            destination = np.zeros(count, dtype)
            return Code({**names, "get": pg.get, "destination": destination}, "get(destination, target, pe)")
        signal = self._symmetric(1, np.uint64)
        names.update(
            put_signal=pg.put_signal,
            wait=pg.signal_wait_until,
            signal=signal,
            GE=pg.GE,
            numbers=itertools.count(1),
        )
        send, receive = "put_signal(target, source, signal, k, pe)", "wait(signal, GE, k)"
        return Code(names, f"k = next(numbers); {send}; {receive}", f"k = next(numbers); {receive}; {send}")

    def _atomic(self, operation: Operation) -> Code:
        names = {
            "call": getattr(pg, operation.name),
            "quiet": pg.quiet,
            "target": self._symmetric(1, np.int64),
            "pe": 1 % self._n,
        }
        arguments = {"atomic_fetch": "pe", "atomic_compare_swap": "0, 1, pe"}.get(operation.name, "1, pe")
        return Code(
            names, f"call(target, {arguments})" + ("; quiet()" if operation.name == "atomic_add" else "")
        )

    def _collective(self, operation: Operation, nbytes: int) -> Code:
        many = operation.name in ("alltoall", "reduce_scatter")
        x = pattern(nbytes * self._n if many else nbytes)
        count = x.size
        if operation.name == "fcollect":
            count *= self._n
        elif operation.name == "reduce_scatter":
            count //= self._n
        names: dict[str, Any] = {"call": getattr(pg, operation.name), "x": x, "out": np.zeros(count, x.dtype)}
        if operation.name == "broadcast":
            return Code(names, "call(x)")
        return Code(names, "call(x, out=out)")

    def verify(self, operation: Operation, nbytes: int) -> None:
        """Check what arrived in this PE's memory."""
        if operation.name in ("put", "put_nbi", "put_signal") and self._me == 1 % self._n:
            assert np.array_equal(self._arrays[0].local, pattern(nbytes)), f"{operation.name}: wrong data"

    def release(self) -> None:
        """Free the arrays."""
        while self._arrays:
            self._arrays.pop().free()

    def settle(self) -> None:
        """Wait for all PEs; a long wait sleeps."""
        pg.barrier_all()

    def close(self) -> None:
        """Nothing is left to let go of."""

    def versions(self) -> dict[str, str]:
        """Return pypgas's version."""
        return {"pypgas": pg.__version__}
