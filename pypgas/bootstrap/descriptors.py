# SPDX-License-Identifier: Apache-2.0
"""Unix sockets between the PEs of a node, over which they pass file descriptors.

Two PEs are on one node when a socket between them connects and a descriptor arrives through it.
Host names and boot ids prove nothing: containers share or invent them.

Names of abstract sockets are visible to every user of the machine, so both ends check the other's
user id (as the kernel reports it) and a token that only the job knows. The listening socket
exists during setup only. Abstract sockets leave nothing in any file system.
"""

from __future__ import annotations

import array
import dataclasses
import errno
import logging
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable

from ..errors import BootstrapError, PeerFailedError, PgasError
from .base import Bootstrap

__all__ = ["NodeSockets"]

_log = logging.getLogger(__name__)

_TOKEN_BYTES = 16
_HELLO = struct.Struct(f"={_TOKEN_BYTES}sq")  # job token, rank of the sender
_EXCHANGE = struct.Struct("=q")  # ordinal of the exchange
_PEER_CREDENTIALS = struct.Struct("=3i")  # pid, uid, gid
_FD_BYTES = array.array("i").itemsize
_RETRY_SECONDS = 0.002  # between attempts of what no poll() can wait for
_SLICE_SECONDS = 0.2  # longest sleep in poll(), so that dead peers are noticed


@dataclasses.dataclass(frozen=True)
class _Announcement:
    """What each PE tells all others before anyone connects."""

    name: bytes
    pid: int
    has_pidfd: bool


@dataclasses.dataclass(frozen=True)
class _Trouble:
    """Why one phase of the setup failed on a PE."""

    text: str
    secondary: bool  # only because another PE had failed


class _GaveUpError(PgasError):
    """Another PE closed its connection during setup; it reports the reason itself."""


class NodeSockets:
    """Connections of this PE to the other PEs on its node.

    Collective over ``bootstrap``: if one PE fails, all raise and none keeps a descriptor.

    Args:
        bootstrap: The PEs of the job.
        timeout: Seconds that setup may wait for a peer, and the default limit of `exchange`.

    Attributes:
        peers: The socket to each other PE of this node. Non-blocking, message-preserving.
        pids: Process id of each of them, as seen from here.

    Raises:
        BootstrapError: on every PE; the message names those that failed and why.
    """

    def __init__(self, bootstrap: Bootstrap, timeout: float = 60.0) -> None:
        self.rank = bootstrap.rank
        self.peers: dict[int, socket.socket] = {}
        self.pids: dict[int, int] = {}
        self._pidfds: dict[int, int] = {}
        self._timeout = timeout
        self._ordinal = 0
        self._connect_all(bootstrap)

    def exchange(self, fd: int, timeout: float | None = None) -> dict[int, int]:
        """Send descriptor ``fd`` to every PE of the node and return theirs, by PE.

        Collective over the node's PEs. The caller owns the descriptors returned (they are
        close-on-exec) and keeps ``fd``. On failure none is kept.

        Raises:
            PeerFailedError: a peer died before it sent its descriptor.
            BootstrapError: a peer sent nothing in ``timeout`` seconds, or this process has too
                many descriptors open.
        """
        self._ordinal += 1
        limit = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        to_send = set(self.peers)
        received: dict[int, int] = {}
        try:
            while to_send or len(received) < len(self.peers):
                retry = self._send_pending(to_send, fd)
                waiting = [pe for pe in self.peers if pe not in received]
                progress = self._receive_ready(waiting, to_send, received, retry)
                if not progress and time.monotonic() > deadline:
                    raise BootstrapError(
                        f"PE {self.rank}: exchanging descriptors: {_pes(waiting or to_send)} did "
                        f"not take part in {limit:g} s; has every PE made the same call?"
                    )
        except BaseException:
            for got in received.values():
                os.close(got)
            raise
        return received

    def pidfds(self) -> dict[int, int]:
        """Return a pidfd for each other PE of the node; it polls readable once the PE has died.

        They belong to this object. PEs whose kernel has no pidfds (before Linux 5.3) are absent.
        """
        return dict(self._pidfds)

    def close(self) -> None:
        """Close every socket and pidfd. Calling it again does nothing."""
        for sock in self.peers.values():
            sock.close()
        self.peers.clear()
        for fd in self._pidfds.values():
            os.close(fd)
        self._pidfds.clear()

    # Setup. Each phase ends in an allgather of outcomes: a PE that failed says so there instead
    # of raising on its own while the others wait for it.

    def _connect_all(self, bootstrap: Bootstrap) -> None:
        if bootstrap.size == 1:
            return
        token = bootstrap.bcast(os.urandom(_TOKEN_BYTES))
        name = b"\0pypgas-" + os.urandom(16).hex().encode()
        listener = _Listener(self.rank, token)

        def attempt(step: Callable[[], None]) -> _Trouble | None:
            trouble = _attempt(step)
            if trouble is not None:
                # At once, so that the others need not wait for us until their time is up.
                listener.close()
                self.close()
            return trouble

        try:
            trouble = attempt(lambda: listener.open(name, bootstrap.size))
            mine = _Announcement(name, os.getpid(), listener.pidfd is not None)
            announced = bootstrap.allgather((trouble, mine))
            self._raise_any([reported for reported, _ in announced])
            everyone = [announcement for _, announcement in announced]

            trouble = attempt(lambda: self._connect_upward(everyone, token, listener))
            connected = bootstrap.allgather((trouble, tuple(self.peers)))
            self._raise_any([reported for reported, _ in connected])
            callers = {pe for pe, (_, called) in enumerate(connected) if self.rank in called}

            trouble = attempt(lambda: self._greet(callers, token, listener, everyone))
            self._raise_any(bootstrap.allgather(trouble))

            trouble = attempt(lambda: self._exchange_pidfds(listener.pidfd, everyone))
            self._raise_any(bootstrap.allgather(trouble))
        except BaseException:
            self.close()
            raise
        finally:
            listener.close()

    def _raise_any(self, troubles: list[_Trouble | None]) -> None:
        failed = [(pe, trouble) for pe, trouble in enumerate(troubles) if trouble is not None]
        if failed:
            primary = [(pe, trouble) for pe, trouble in failed if not trouble.secondary] or failed
            shown = "; ".join(f"PE {pe}: {trouble.text}" for pe, trouble in primary[:4])
            more = f"; and {len(primary) - 4} more" if len(primary) > 4 else ""
            raise BootstrapError(f"PE {self.rank}: connecting the PEs of a node failed on {shown}{more}")

    def _connect_upward(self, everyone: list[_Announcement], token: bytes, listener: _Listener) -> None:
        """Connect to each higher PE whose listener can be reached, and send it our hello."""
        deadline = time.monotonic() + self._timeout
        for pe in range(self.rank + 1, len(everyone)):
            sock = _new_socket()
            try:
                if not self._connect_one(sock, pe, everyone[pe].name, listener, deadline):
                    sock.close()
                    continue
                pid, uid = _credentials(sock)
                if uid != os.geteuid():
                    raise BootstrapError(
                        f"the socket of PE {pe} belongs to user id {uid}, not {os.geteuid()}; all "
                        "PEs of a job must run as one user"
                    )
                sock.send(_HELLO.pack(token, self.rank))
            except BaseException:
                sock.close()
                raise
            self.peers[pe] = sock
            self.pids[pe] = pid or everyone[pe].pid

    def _connect_one(
        self, sock: socket.socket, pe: int, name: bytes, listener: _Listener, deadline: float
    ) -> bool:
        while True:
            try:
                sock.connect(name)
                return True
            except ConnectionRefusedError:
                return False  # no such name in this network namespace: another node
            except BlockingIOError:
                # Its backlog is full. It accepts while it connects upward itself, as we do.
                listener.accept_pending()
                if time.monotonic() > deadline:
                    raise BootstrapError(f"PE {pe} accepted no connection in {self._timeout:g} s") from None
                time.sleep(_RETRY_SECONDS)

    def _greet(
        self,
        callers: set[int],
        token: bytes,
        listener: _Listener,
        everyone: list[_Announcement],
    ) -> None:
        """Answer the hello of each lower PE and check the answers of the higher ones."""
        answered = set(self.peers)  # those we called; `answered` shrinks as they reply
        deadline = time.monotonic() + self._timeout
        while answered or not callers <= self.peers.keys():
            for pe, sock in listener.greeted(callers - self.peers.keys()):
                self.peers[pe] = sock
                self.pids[pe] = _credentials(sock)[0] or everyone[pe].pid
                sock.send(_HELLO.pack(token, self.rank))
            for pe in list(answered):
                message = _receive(self.peers[pe], _HELLO.size)
                if message is None:
                    continue
                if not message:
                    raise _GaveUpError(f"PE {pe} closed the connection")
                if message != _HELLO.pack(token, pe):
                    raise BootstrapError(f"PE {pe} did not answer with this job's token")
                answered.discard(pe)
            missing = answered | (callers - self.peers.keys())
            if missing and time.monotonic() > deadline:
                raise BootstrapError(f"{_pes(missing)} did not answer in {self._timeout:g} s")
            if missing:
                listener.wait([self.peers[pe] for pe in answered], _SLICE_SECONDS)

    def _exchange_pidfds(self, own: int | None, everyone: list[_Announcement]) -> None:
        """Swap pidfds, which also proves that descriptors pass between these PEs.

        Each PE opens its own: a process id could be reused, or mean nothing in another PE's
        process namespace.
        """
        placeholder = os.memfd_create("pypgas-placeholder") if own is None else own
        try:
            received = self.exchange(placeholder)
        finally:
            if own is None:
                os.close(placeholder)
        for pe, fd in received.items():
            if everyone[pe].has_pidfd:
                self._pidfds[pe] = fd
            else:
                os.close(fd)

    # Exchange.

    def _send_pending(self, to_send: set[int], fd: int) -> bool:
        """Send to those who can take it; return whether to try again without a poll event."""
        retry = False
        message = [_EXCHANGE.pack(self._ordinal)]
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        for pe in list(to_send):
            try:
                self.peers[pe].sendmsg(message, control)
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno == errno.ETOOMANYREFS:
                    # The user's limit on descriptors in flight: it falls as PEs receive.
                    retry = True
                    continue
                if error.errno in (errno.EPIPE, errno.ECONNRESET):
                    raise self._peer_failed(pe) from None
                raise
            to_send.discard(pe)
        return retry

    def _receive_ready(
        self, waiting: list[int], to_send: set[int], received: dict[int, int], retry: bool
    ) -> bool:
        poller = select.poll()
        by_fd: dict[int, int] = {}
        for pe in set(waiting) | to_send:
            fd = self.peers[pe].fileno()
            by_fd[fd] = pe
            # After ETOOMANYREFS the socket stays writable: polling for that would spin.
            poller.register(
                fd,
                (select.POLLIN if pe not in received else 0)
                | (select.POLLOUT if pe in to_send and not retry else 0),
            )
        events = poller.poll(1000 * (_RETRY_SECONDS if retry else _SLICE_SECONDS))
        progress = False
        for ready, event in events:
            pe = by_fd[ready]
            progress |= bool(event & select.POLLOUT)
            if pe not in received and event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                got = self._receive_fd(pe)
                if got is not None:
                    received[pe] = got
                    progress = True
        if not progress:
            # A dead PE's socket stays open as long as a child of it holds a copy.
            for pe in waiting:
                if pe in self._pidfds and _readable(self._pidfds[pe]):
                    late = self._receive_fd(pe)
                    if late is None:
                        raise self._peer_failed(pe)
                    received[pe] = late
        return progress

    def _receive_fd(self, pe: int) -> int | None:
        """Return the descriptor PE ``pe`` sent for this exchange, ``None`` if it hasn't yet."""
        while True:
            try:
                data, control, flags, _ = self.peers[pe].recvmsg(
                    _EXCHANGE.size, socket.CMSG_SPACE(_FD_BYTES), socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                return None
            except ConnectionResetError:
                continue  # reported once, and before what the peer had sent until then
            if not data:
                raise self._peer_failed(pe)
            fds = array.array("i")
            for level, kind, payload in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    fds.frombytes(payload[: len(payload) - len(payload) % _FD_BYTES])
            (ordinal,) = _EXCHANGE.unpack(data)
            if ordinal < self._ordinal:
                # Left over from an exchange that failed on this side.
                for fd in fds:
                    os.close(fd)
                continue
            if len(fds) != 1 or flags & socket.MSG_CTRUNC:
                raise BootstrapError(
                    f"PE {self.rank}: exchanging descriptors: the one of PE {pe} did not arrive; "
                    "is the limit on open files (ulimit -n) reached?"
                )
            if ordinal > self._ordinal:
                os.close(fds[0])
                raise BootstrapError(
                    f"PE {self.rank}: exchanging descriptors: PE {pe} is at exchange {ordinal}, "
                    f"this PE at {self._ordinal}; an earlier one failed here"
                )
            return fds[0]

    def _peer_failed(self, pe: int) -> PeerFailedError:
        return PeerFailedError(
            f"PE {self.rank}: exchanging descriptors: PE {pe} has died or has left the job", [pe]
        )


class _Listener:
    """The socket on which lower PEs reach this one during setup, and the pidfd they will get."""

    def __init__(self, rank: int, token: bytes) -> None:
        self.pidfd: int | None = None
        self._rank = rank
        self._token = token
        self._socket: socket.socket | None = None
        self._strangers: list[socket.socket] = []  # accepted, no valid hello yet

    def open(self, name: bytes, size: int) -> None:
        self.pidfd = _own_pidfd()
        self._socket = _new_socket()
        self._socket.bind(name)
        # Some room to spare, so that strangers who knock cannot keep the lower PEs out.
        self._socket.listen(size + 128)

    def accept_pending(self) -> None:
        """Accept what is in the backlog. Connections of other users are dropped."""
        assert self._socket is not None
        while True:
            try:
                sock, _ = self._socket.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            if _credentials(sock)[1] != os.geteuid():
                _log.warning("PE %d: dropped a connection of another user", self._rank)
                sock.close()
                continue
            self._strangers.append(sock)

    def greeted(self, expected: Iterable[int]) -> list[tuple[int, socket.socket]]:
        """Return (PE, socket) of each connection that has proved to be an expected PE."""
        self.accept_pending()
        missing = set(expected)
        proved = []
        for sock in list(self._strangers):
            try:
                message = _receive(sock, _HELLO.size)
            except OSError:
                message = b""
            if message is None:
                continue
            self._strangers.remove(sock)
            token, pe = _HELLO.unpack(message) if len(message) == _HELLO.size else (b"", -1)
            if token == self._token and pe in missing:
                missing.discard(pe)
                proved.append((pe, sock))
            else:
                _log.warning("PE %d: dropped a connection without the job's token", self._rank)
                sock.close()
        return proved

    def wait(self, also: list[socket.socket], seconds: float) -> None:
        """Sleep until a connection or a message may have come, also on the sockets ``also``."""
        assert self._socket is not None
        poller = select.poll()
        for sock in (self._socket, *self._strangers, *also):
            poller.register(sock, select.POLLIN)
        poller.poll(1000 * seconds)

    def close(self) -> None:
        for sock in self._strangers:
            sock.close()
        self._strangers.clear()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


def _attempt(step: Callable[[], None]) -> _Trouble | None:
    """Run ``step``; return its error, for the other PEs to raise it too."""
    try:
        step()
    except (OSError, PgasError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            text += "; raise the limit on open files (ulimit -n)"
        # A connection reset, like the first two, means that the other PE gave up first.
        secondary = isinstance(error, (_GaveUpError, PeerFailedError, ConnectionError))
        return _Trouble(text, secondary)
    return None


def _new_socket() -> socket.socket:
    kind = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    return socket.socket(socket.AF_UNIX, kind)


def _credentials(sock: socket.socket) -> tuple[int, int]:
    """Return (pid, user id) of the process at the other end."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    pid, uid, _ = _PEER_CREDENTIALS.unpack(raw)
    return pid, uid


def _receive(sock: socket.socket, size: int) -> bytes | None:
    """Return the next message, ``b""`` at the end of the connection, ``None`` if none is there."""
    try:
        return sock.recv(size)
    except BlockingIOError:
        return None


def _own_pidfd() -> int | None:
    try:
        return os.pidfd_open(os.getpid())
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EPERM):
            return None
        raise


def _readable(fd: int) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(0))


def _pes(numbers: Iterable[int]) -> str:
    ordered = sorted(numbers)
    shown = ", ".join(map(str, ordered[:8])) + (", ..." if len(ordered) > 8 else "")
    return f"PE {shown}" if len(ordered) == 1 else f"PEs {shown}"
