# SPDX-License-Identifier: Apache-2.0
"""Messages between the controller and its PEs: JSON objects over a Unix stream socket."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from typing import Any

__all__ = ["Channel", "Message"]

Message = dict[str, Any]

_LENGTH = struct.Struct("!I")
_CHUNK = 1 << 18


class Channel:
    """One end of a connection.

    Messages are dictionaries that JSON can carry. Whatever it cannot carry (an odd value
    in a report's user properties, say) arrives as its ``repr``.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._received = bytearray()
        self._ended = False

    def fileno(self) -> int:
        """The socket's descriptor, for ``selectors``."""
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send one message, waiting while the other side's buffer is full.

        Raises ``OSError`` (``BrokenPipeError`` mostly) when the other side is gone.
        """
        body = json.dumps(message, default=repr).encode()
        rest = memoryview(_LENGTH.pack(len(body)) + body)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                select.select([], [self._socket], [])

    def receive(self, timeout: float | None = None) -> Message:
        """Wait for one message, at most ``timeout`` seconds.

        Raises ``TimeoutError`` then, ``EOFError`` when the other side is gone.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            message = self._next()
            if message is not None:
                return message
            if self._ended:
                raise EOFError("the other side closed the connection")
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"no message within {timeout:g} s")
            if select.select([self._socket], [], [], left)[0]:
                self._read()

    def drain(self) -> tuple[list[Message], bool]:
        """The messages that have arrived, without waiting, and whether the other side is gone."""
        self._read()
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages, self._ended

    def close(self) -> None:
        """Close this end; closing twice is harmless."""
        self._socket.close()

    def _read(self) -> None:
        while not self._ended:
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if data:
                self._received += data
            else:
                self._ended = True

    def _next(self) -> Message | None:
        if len(self._received) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._received)
        end = _LENGTH.size + length
        if len(self._received) < end:
            return None
        body = bytes(self._received[_LENGTH.size : end])
        del self._received[:end]
        message: Message = json.loads(body)
        return message
