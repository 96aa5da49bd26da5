# SPDX-License-Identifier: Apache-2.0
"""Streams and events: work that is queued, runs in order, and is waited for when its results are needed."""

from __future__ import annotations

from .. import _native
from ..errors import InvalidValueError, WaitTimeoutError

__all__ = ["Event", "Stream", "synchronize"]


class Event(_native.EventBase):
    """A point in a stream: `record` marks it, `Stream.wait` and `synchronize` wait for it."""

    __slots__ = ()

    def record(self, stream: Stream) -> Event:
        """Mark the point after everything that is queued on ``stream`` now. Returns the event."""
        stream._record(self)
        return self

    @property
    def done(self) -> bool:
        """Whether the last record has been reached (true if there was none)."""
        recorded, completed, _ = self._state()
        return completed >= recorded

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait until the last record has been reached.

        Raises:
            WaitTimeoutError: ``timeout`` seconds have passed.
        """
        waited = 0.0
        while not self._wait(0.05):
            waited += 0.05
            if timeout is not None and waited >= timeout:
                raise WaitTimeoutError(f"Event.synchronize: not reached in {timeout:g} s")

    def elapsed_since(self, start: Event) -> float:
        """Return the seconds between the last record of ``start`` and that of this event.

        Raises:
            InvalidValueError: one of them has not been reached.
        """
        if not (self.done and start.done and self._state()[0] and start._state()[0]):
            raise InvalidValueError(
                "Event.elapsed_since: both events must be recorded and reached; synchronize first"
            )
        return self._state()[2] - start._state()[2]


class Stream(_native.StreamBase):
    """Kernels and operations that run one after the other, while the program goes on.

    Different streams run independently. A failure of a kernel or operation is raised at the next `synchronize` or
    launch on the stream; what was queued behind it is skipped.
    """

    __slots__ = ("__weakref__",)

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait until everything queued is over, and raise what failed.

        Raises:
            KernelError: a kernel failed, or did not end within the limit (``timeout`` seconds, by default the setting
                ``wait_timeout``) and was ended.
            WaitTimeoutError, PeerFailedError: a wait of a kernel or operation ended early.
        """
        self._synchronize(timeout)

    @property
    def done(self) -> bool:
        """Whether everything queued is over."""
        return self._done()

    def record(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default, and return it."""
        return (event if event is not None else Event()).record(self)

    def wait(self, event: Event) -> None:
        """Let what is queued from now on wait for the last record of ``event``, made on any stream."""
        self._wait(event)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is None:
            self.synchronize()


def synchronize(timeout: float | None = None) -> None:
    """Wait for the default stream, on which kernels without ``stream=`` run. See `Stream.synchronize`."""
    _native.synchronize_default(timeout)
