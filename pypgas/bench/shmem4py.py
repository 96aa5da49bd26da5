# SPDX-License-Identifier: Apache-2.0
"""shmem4py's side, where it is installed with an OpenSHMEM library that the job's launcher has started."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .operations import BATCH, Code, Operation
from .ours import elements, pattern

__all__ = ["Shmem4py"]


class Shmem4py:
    """See `pypgas.bench.operations.Side`.

    Args:
        n_pes: The number of PEs that shmem4py must have, too.

    Raises:
        ImportError: shmem4py is not installed.
        ValueError: it has another number of PEs.
    """

    name = "shmem4py"

    def __init__(self, n_pes: int) -> None:
        from shmem4py import shmem

        self._shmem: Any = shmem
        if shmem.n_pes() != n_pes:
            raise ValueError(f"shmem4py has {shmem.n_pes()} PEs, the job {n_pes}")
        self._me, self._n = shmem.my_pe(), n_pes
        self._arrays: list[Any] = []
        self._signals: list[Any] = []

    def _symmetric(self, values: Any) -> Any:
        array = self._shmem.empty(values.shape, values.dtype)
        array[...] = values
        self._arrays.append(array)
        return array

    def prepare(self, operation: Operation, nbytes: int) -> Code | None:
        """Return how shmem4py does the operation."""
        shmem, one = self._shmem, np.ones(1)
        names: dict[str, Any] = {"quiet": shmem.quiet, "pe": 1 % self._n}
        if operation.name.startswith("atomic_"):
            names.update(call=getattr(shmem, operation.name), target=self._symmetric(np.zeros(1, np.int64)))
            arguments = {"atomic_fetch": "pe", "atomic_compare_swap": "0, 1, pe"}.get(operation.name, "1, pe")
            code = f"call(target, {arguments})" + ("; quiet()" if operation.name == "atomic_add" else "")
        elif operation.name == "barrier_all":
            names, code = {"barrier_all": shmem.barrier_all}, "barrier_all()"
        elif operation.name in ("p", "g"):
            # The interface has no single-element functions; arrays of one element stand for them.
            names.update(put=shmem.put, get=shmem.get, target=self._symmetric(one), source=one)
            code = "put(target, source, pe); quiet()" if operation.name == "p" else "get(source, target, pe)"
        elif operation.name in ("put", "get", "put_nbi", "put_signal"):
            return self._transfer(operation, nbytes)
        else:
            return self._collective(operation, nbytes)
        self.settle()
        return Code(names, code)

    def _transfer(self, operation: Operation, nbytes: int) -> Code:
        shmem = self._shmem
        count, dtype = elements(nbytes)
        source = pattern(nbytes)
        target = self._symmetric(source if operation.name == "get" else np.zeros(count, dtype))
        pe = 1 - self._me if self._me < 2 and self._n > 1 else 0
        names: dict[str, Any] = {"target": target, "source": source, "pe": pe, "quiet": shmem.quiet}
        if operation.name == "put":
            code = Code({**names, "put": shmem.put}, "put(target, source, pe); quiet()")
        elif operation.name == "put_nbi":
            code = Code({**names, "put": shmem.put_nbi}, "put(target, source, pe); " * BATCH + "quiet()")
        elif operation.name == "get":
            code = Code({**names, "get": shmem.get, "own": np.zeros(count, dtype)}, "get(own, target, pe)")
        else:
            code = self._ping_pong(names)
        self.settle()
        return code

    def _ping_pong(self, names: dict[str, Any]) -> Code:
        shmem = self._shmem
        names.update(numbers=itertools.count(1), GE=shmem.CMP.GE)
        if self._has_signals():
            signal = shmem.new_signal()
            self._signals.append(signal)
            names.update(put_signal=shmem.put_signal, wait=shmem.signal_wait_until, signal=signal)
            names.update(SET=shmem.SIGNAL.SET)
            send, receive = "put_signal(target, source, pe, signal, k, SET)", "wait(signal, GE, k)"
        else:
            names.update(put=shmem.put, fence=shmem.fence, set=shmem.atomic_set, wait=shmem.wait_until)
            names.update(flag=self._symmetric(np.zeros(1, np.uint64)))
            send, receive = "put(target, source, pe); fence(); set(flag, k, pe)", "wait(flag, GE, k)"
        return Code(names, f"k = next(numbers); {send}; {receive}", f"k = next(numbers); {receive}; {send}")

    def _has_signals(self) -> bool:
        """Whether the library has put with signal, which came with OpenSHMEM 1.5."""
        shmem = self._shmem
        signal, word = shmem.new_signal(), shmem.zeros(1)
        try:
            shmem.put_signal(word, np.ones(1), self._me, signal, 1, shmem.SIGNAL.SET)
        except NotImplementedError:
            return False
        finally:
            shmem.del_signal(signal)
            shmem.del_array(word)
        return True

    def _collective(self, operation: Operation, nbytes: int) -> Code | None:
        # These take symmetric arrays only.
        blocks_in, blocks_out, call = {
            "broadcast": (1, 1, "broadcast(out, x, 0)"),
            "reduce": (1, 1, "sum_reduce(out, x)"),
            "fcollect": (1, self._n, "fcollect(out, x)"),
            "alltoall": (self._n, self._n, "alltoall(out, x)"),
        }.get(operation.name, (0, 0, ""))
        if not call:
            return None
        name = call.partition("(")[0]
        x = self._symmetric(pattern(nbytes * blocks_in))
        out = self._symmetric(np.zeros_like(pattern(nbytes * blocks_out)))
        self.settle()
        return Code({name: getattr(self._shmem, name), "x": x, "out": out}, call)

    def verify(self, operation: Operation, nbytes: int) -> None:
        """Check what arrived in this PE's memory."""
        if operation.name in ("put", "put_nbi", "put_signal") and self._me == 1 % self._n:
            assert np.array_equal(self._arrays[0], pattern(nbytes)), f"{operation.name}: wrong data"

    def release(self) -> None:
        """Free the arrays."""
        while self._signals:
            self._shmem.del_signal(self._signals.pop())
        while self._arrays:
            self._shmem.del_array(self._arrays.pop())

    def settle(self) -> None:
        """Wait for all PEs."""
        self._shmem.barrier_all()

    def close(self) -> None:
        """Nothing is left to let go of: shmem4py finalizes itself at exit."""

    def versions(self) -> dict[str, str]:
        """Return the versions of shmem4py and of its library."""
        import shmem4py

        library = (
            f"{self._shmem.info_get_name()}, OpenSHMEM {'.'.join(map(str, self._shmem.info_get_version()))}"
        )
        return {"shmem4py": getattr(shmem4py, "__version__", "unknown"), "openshmem": library}
