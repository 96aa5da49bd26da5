# SPDX-License-Identifier: Apache-2.0
"""A lock that all PEs share."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from .. import _native
from ..errors import InvalidValueError, StaleArrayError
from ..memory.creation import zeros

if TYPE_CHECKING:
    from ..memory.array import SymmetricArray

__all__ = ["Lock"]


class Lock:
    """A fair mutual exclusion between PEs, made by all of them together (collective).

    PEs get the lock in the order in which they asked. It is not reentrant. ``with lock:`` acquires and releases;
    releasing completes this PE's operations first, so that the next holder sees them. OpenSHMEM 1.6, SHMEM_LOCK.
    """

    def __init__(self) -> None:
        self._words: SymmetricArray = zeros(_native.lock_bytes(), "u1")
        self._home = 0
        self._ticket: int | None = None

    def acquire(self, *, timeout: float | None = None) -> None:
        """Wait for the lock.

        Raises:
            InvalidValueError: this PE holds it already.
            WaitTimeoutError: ``timeout`` seconds passed; this PE has left the queue.
            PeerFailedError: a PE has failed, perhaps while holding it.
        """
        self._check("acquire")
        if self._ticket is not None:
            raise InvalidValueError(
                f"PE {_native.my_pe()}: Lock.acquire: this PE holds the lock already; it is not reentrant"
            )
        self._ticket = _native.lock_acquire(self._words, self._home, timeout)

    def test(self) -> bool:
        """Take the lock if it is free. Returns whether this PE has it now."""
        self._check("test")
        if self._ticket is not None:
            raise InvalidValueError(
                f"PE {_native.my_pe()}: Lock.test: this PE holds the lock already; it is not reentrant"
            )
        self._ticket = _native.lock_test(self._words, self._home)
        return self._ticket is not None

    def release(self) -> None:
        """Complete this PE's operations and pass the lock on.

        Raises:
            InvalidValueError: this PE does not hold it.
        """
        self._check("release")
        if self._ticket is None:
            raise InvalidValueError(f"PE {_native.my_pe()}: Lock.release: this PE does not hold the lock")
        ticket, self._ticket = self._ticket, None
        _native.lock_release(self._words, self._home, ticket)

    @property
    def held(self) -> bool:
        """Whether this PE holds the lock."""
        return self._ticket is not None

    def free(self) -> None:
        """Release the lock's memory (collective)."""
        self._words.free()

    def _check(self, operation: str) -> None:
        _native.check(f"Lock.{operation}")
        if not self._words._allocation.live:
            raise StaleArrayError(
                f"PE {_native.my_pe()}: Lock.{operation}: the lock was freed or belongs to an earlier runtime"
            )

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<pypgas.Lock at PE {self._home}{', held here' if self.held else ''}>"
