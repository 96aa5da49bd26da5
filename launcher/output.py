# SPDX-License-Identifier: Apache-2.0
"""Merging what the PEs print, line by line."""

from __future__ import annotations

import os
import time

__all__ = ["Output", "Stream"]

_IDLE = 0.1  # s after which an unfinished line is shown on a terminal: a prompt, a progress bar
_LONGEST = 1 << 16  # bytes of a line that are held back at most


class Stream:
    """The standard output or error of one PE.

    Attributes:
        target: The descriptor that its text goes to.
        prefix: What each of its lines starts with.
    """

    def __init__(self, target: int, prefix: bytes = b"") -> None:
        self.target = target
        self.prefix = prefix
        self.held = bytearray()  # the unfinished line
        self.held_since = 0.0
        self.at_line_start = True


class Output:
    """Writes the lines of many streams to few descriptors, none into the middle of another.

    A line is held back until it is complete. On a terminal an unfinished one is shown after a
    moment, or at a carriage return, so that progress bars and prompts work; if another stream
    has something to say in the meantime, it starts on a new line.

    Raises:
        BrokenPipeError: (all methods that write) nobody reads a descriptor any more.
    """

    def __init__(self) -> None:
        # Whose unfinished line stands there, by place; all terminals count as one place.
        self._open: dict[int, Stream] = {}
        self._is_terminal: dict[int, bool] = {}
        self._waiting: set[Stream] = set()

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take what a PE has printed."""
        stream.held += data
        end = stream.held.rfind(b"\n") + 1
        if self._terminal(stream.target):
            end = max(end, stream.held.rfind(b"\r") + 1)
        if not end and len(stream.held) > _LONGEST:
            end = len(stream.held)
        self._emit(stream, end)
        if stream.held and self._terminal(stream.target):
            stream.held_since = time.monotonic()
            self._waiting.add(stream)
        else:
            self._waiting.discard(stream)

    def close(self, stream: Stream) -> None:
        """Take the end of a stream: its unfinished line is not held back any longer."""
        self._emit(stream, len(stream.held))
        self._waiting.discard(stream)

    def message(self, stream: Stream, text: str) -> None:
        """Write whole lines of our own."""
        stream.held += text.encode(errors="backslashreplace")
        self._emit(stream, len(stream.held))

    def tick(self) -> None:
        """Show what has been held back long enough; call about as often as `patience` says."""
        now = time.monotonic()
        for stream in [s for s in self._waiting if now - s.held_since >= _IDLE]:
            self._waiting.discard(stream)
            self._emit(stream, len(stream.held))

    def patience(self) -> float | None:
        """Seconds until `tick` has something to do, ``None`` if it hasn't."""
        if not self._waiting:
            return None
        oldest = min(stream.held_since for stream in self._waiting)
        return max(0.0, oldest + _IDLE - time.monotonic())

    def _terminal(self, target: int) -> bool:
        if target not in self._is_terminal:
            self._is_terminal[target] = os.isatty(target)
        return self._is_terminal[target]

    def _emit(self, stream: Stream, end: int) -> None:
        if not end:
            return
        text = bytes(stream.held[:end])
        del stream.held[:end]
        place = -1 if self._terminal(stream.target) else stream.target
        owner = self._open.pop(place, None)
        if owner is not None and owner is not stream:
            text_before = b"\n"
            owner.at_line_start = True
        else:
            text_before = b""
        finished = text.endswith(b"\n")
        if stream.prefix:
            body = text[:-1] if finished else text
            body = body.replace(b"\n", b"\n" + stream.prefix)
            text = (stream.prefix if stream.at_line_start else b"") + body + (b"\n" if finished else b"")
        stream.at_line_start = finished
        if not finished:
            self._open[place] = stream
        _write(stream.target, text_before + text)


def _write(target: int, text: bytes) -> None:
    view = memoryview(text)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # somebody else made it non-blocking; it is theirs as well as ours
            time.sleep(0.005)
