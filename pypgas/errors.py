# SPDX-License-Identifier: Apache-2.0
"""Every exception pypgas raises, as one tree under :class:`PgasError`.

Each class also derives from the built-in exception a Python user would expect
(``ValueError``, ``TypeError``, ``MemoryError``, ``TimeoutError``, ...), so code that
knows nothing of pypgas can still catch it.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "BootstrapError",
    "CollectiveMismatchError",
    "CompileError",
    "ConfigError",
    "DoubleFreeError",
    "ForkedChildError",
    "HeapExhaustedError",
    "InvalidPEError",
    "InvalidTypeError",
    "InvalidValueError",
    "KernelError",
    "LeakWarning",
    "NotInitializedError",
    "NotSymmetricError",
    "PeerFailedError",
    "PgasError",
    "ResourceLimitError",
    "StaleArrayError",
    "UnreachableError",
    "WaitTimeoutError",
]


class PgasError(Exception):
    """Base of all pypgas exceptions.

    Exceptions that concern other PEs list them, as world PE numbers, in ``pes``.
    """

    def __init__(self, message: str = "", pes: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.pes: list[int] = list(pes)


class ConfigError(PgasError, ValueError):
    """A setting or a ``PYPGAS_*`` environment variable is unknown or malformed."""


class BootstrapError(PgasError, RuntimeError):
    """The PEs of the job could not find or reach each other."""


class NotInitializedError(PgasError, RuntimeError):
    """A call before ``init()`` or after ``finalize()``."""


class ForkedChildError(NotInitializedError):
    """A call in a child made by ``fork()``: a PE is one process and cannot be duplicated."""


class InvalidPEError(PgasError, ValueError):
    """A PE number outside ``0 … n_pes - 1`` of the team it counts in."""


class InvalidTypeError(PgasError, TypeError):
    """An argument of the wrong type, or a dtype the operation has no meaning for."""


class InvalidValueError(PgasError, ValueError):
    """An argument of the right type with a value, shape, size or layout that is not allowed."""


class NotSymmetricError(InvalidValueError):
    """Memory that must be symmetric is not, or a view reaches outside its allocation."""


class StaleArrayError(PgasError, ValueError):
    """An object whose memory was freed, or that belongs to an earlier runtime."""


class DoubleFreeError(StaleArrayError):
    """``free()`` of an array that was freed before."""


class HeapExhaustedError(PgasError, MemoryError):
    """The symmetric heap has no block large enough."""


class ResourceLimitError(PgasError, RuntimeError):
    """A configured limit (for example the number of teams) is reached."""


class CollectiveMismatchError(PgasError, RuntimeError):
    """The PEs of a team called different collectives, or the same one with sizes that differ."""


class WaitTimeoutError(PgasError, TimeoutError):
    """A wait passed its time limit. ``pes`` and ``missing`` list the PEs that did not arrive."""

    @property
    def missing(self) -> list[int]:
        """World numbers of the PEs that had not arrived when the limit passed."""
        return self.pes


class PeerFailedError(PgasError, RuntimeError):
    """A PE that this one waits for has died or has left by an exception."""


class UnreachableError(PgasError, RuntimeError):
    """A PE's memory is not mapped here and no transport reaches it."""


class CompileError(PgasError, RuntimeError):
    """A kernel's source does not compile, or there is no compiler. ``log`` is all that the compiler said."""

    def __init__(self, message: str = "", log: str = "") -> None:
        super().__init__(message)
        self.log = log


class KernelError(PgasError, RuntimeError):
    """A kernel failed while it ran: an assertion, a trap, a bad access, or it did not end.

    ``kernel`` is its name; ``block`` and ``thread`` say where, ``None`` if that has no one place.
    """

    def __init__(
        self,
        message: str = "",
        kernel: str = "",
        block: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.block = block
        self.thread = thread


class LeakWarning(ResourceWarning):
    """Symmetric arrays were still allocated when the runtime was finalized (shown under ``-X dev``)."""
