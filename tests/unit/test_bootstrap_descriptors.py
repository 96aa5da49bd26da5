# SPDX-License-Identifier: Apache-2.0
"""Sockets between the PEs of a node, over real processes made by fork, without MPI."""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from pypgas.bootstrap import NodeSockets, SingleBootstrap
from pypgas.bootstrap import descriptors as module
from pypgas.errors import BootstrapError, PeerFailedError


class Hub:
    """A bootstrap through the parent process, which passes every allgather on."""

    name = "hub"

    def __init__(self, rank: int, size: int, link: socket.socket) -> None:
        self.rank, self.size, self._link = rank, size, link

    def allgather(self, obj: object) -> list[object]:
        self._link.send(pickle.dumps(obj))
        return pickle.loads(self._link.recv(1 << 20))

    def bcast(self, obj: object, root: int = 0) -> object:
        return self.allgather(obj)[root]

    def barrier(self) -> None:
        self.allgather(None)

    def finalize(self) -> None:
        pass


def run_pes(size: int, program: Callable[[Hub], None], limit: float = 60.0) -> list[int]:
    """Fork ``size`` PEs that run ``program``; return their exit codes, 0 for success."""
    links, pids = [], []
    for rank in range(size):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for link in links:
                    link.close()
                ours.close()
                signal.alarm(int(limit))
                program(Hub(rank, size, theirs))
                code = 0
            except BaseException:  # noqa: BLE001 - whatever it is, it ends this process
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        theirs.close()
        links.append(ours)
        pids.append(pid)
    gone: set[int] = set()
    while len(gone) < size:
        parts = {}
        for rank, link in enumerate(links):
            if rank not in gone:
                part = link.recv(1 << 20)
                if part:
                    parts[rank] = part
                else:
                    gone.add(rank)
        if len(parts) == size:
            reply = pickle.dumps([pickle.loads(parts[rank]) for rank in range(size)])
            for link in links:
                link.send(reply)
        else:
            # Someone has left: nobody's allgather can succeed any more.
            for rank in parts:
                links[rank].close()
                gone.add(rank)
    for link in links:
        link.close()
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def open_descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def listening() -> str:
    """Return the kernel's table of Unix sockets. Other jobs on this machine have entries too."""
    return Path("/proc/net/unix").read_text()


def exchange_numbers(hub: Hub, sockets: NodeSockets) -> None:
    """Swap files that hold each PE's number and check every one."""
    mine = os.memfd_create("number")
    os.write(mine, b"%d" % hub.rank)
    got = sockets.exchange(mine)
    os.close(mine)
    assert sorted(got) == [pe for pe in range(hub.size) if pe != hub.rank]
    for pe, fd in got.items():
        assert os.pread(fd, 20, 0) == b"%d" % pe
        assert not os.get_inheritable(fd)
        os.close(fd)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 64])
def test_every_pe_gets_everyones_descriptor(size: int) -> None:
    def program(hub: Hub) -> None:
        opened, names = module._Listener.open, []

        def open_and_tell(self: module._Listener, name: bytes, size: int) -> None:
            opened(self, name, size)
            names.append(name.decode().replace("\0", "@"))
            assert names[0] in listening()

        module._Listener.open = open_and_tell  # type: ignore[method-assign]
        before = open_descriptors()
        sockets = NodeSockets(hub)
        others = [pe for pe in range(size) if pe != hub.rank]
        assert sorted(sockets.peers) == sorted(sockets.pids) == others
        pids = hub.allgather(os.getpid())
        assert sockets.pids == {pe: pids[pe] for pe in others}
        # One socket and one pidfd per peer, and they stay that many.
        assert len(open_descriptors()) - len(before) == 2 * len(others)
        for _ in range(3):
            exchange_numbers(hub, sockets)
        assert len(open_descriptors()) - len(before) == 2 * len(others)
        sockets.close()
        sockets.close()
        assert open_descriptors() == before
        assert not any(name in listening() for name in names)

    assert run_pes(size, program) == [0] * size


def test_one_pe_alone_opens_nothing() -> None:
    before = open_descriptors()
    sockets = NodeSockets(SingleBootstrap())
    assert sockets.peers == sockets.pids == sockets.pidfds() == {}
    with open(os.devnull) as anything:
        assert sockets.exchange(anything.fileno()) == {}
    assert open_descriptors() == before


def test_pidfds_tell_who_died() -> None:
    def program(hub: Hub) -> None:
        sockets = NodeSockets(hub)
        pidfds = sockets.pidfds()
        assert sorted(pidfds) == sorted(sockets.peers)
        if hub.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        poller = select.poll()
        for fd in pidfds.values():
            poller.register(fd, select.POLLIN)
        # The other survivor may have finished by now, but never before PE 1 died.
        assert pidfds[1] in [fd for fd, _ in poller.poll(20_000)]

    # The others end with the hub: their own result is all that counts.
    assert run_pes(3, program) == [0, -signal.SIGKILL, 0]


@pytest.mark.parametrize("child_keeps_socket", [False, True])
def test_a_peer_that_dies_before_an_exchange_is_named(child_keeps_socket: bool) -> None:
    def program(hub: Hub) -> None:
        sockets = NodeSockets(hub)
        if hub.rank == 1:
            if child_keeps_socket and os.fork() == 0:
                time.sleep(3)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        before = open_descriptors()
        start = time.monotonic()
        with pytest.raises(PeerFailedError, match="PE 1 has died") as caught:
            exchange_numbers(hub, sockets)
        assert caught.value.pes == [1]
        assert time.monotonic() - start < 2
        assert len(open_descriptors()) <= len(before) + 1  # exchange_numbers' own memfd
        if hub.rank == 0:  # stay, so that PE 2 can only miss PE 1
            gone = select.poll()
            gone.register(sockets.pidfds()[2], select.POLLIN)
            gone.poll(20_000)

    assert run_pes(3, program) == [0, -signal.SIGKILL, 0]


def test_what_a_peer_sent_before_it_left_still_arrives() -> None:
    def program(hub: Hub) -> None:
        sockets = NodeSockets(hub)
        with open(os.devnull) as anything:
            if hub.rank == 0:
                sockets._ordinal += 1
                sockets._send_pending({1}, anything.fileno())
            hub.barrier()
            if hub.rank == 1:
                sockets._ordinal += 1
                sockets._send_pending({0}, anything.fileno())
            hub.barrier()
            if hub.rank == 0:
                sockets.close()  # with PE 1's message unread: that resets the connection
            hub.barrier()
            if hub.rank == 1:
                fd = sockets._receive_fd(0)
                assert fd is not None
                os.close(fd)
                with pytest.raises(PeerFailedError, match="PE 0"):
                    sockets._receive_fd(0)

    assert run_pes(2, program) == [0, 0]


def test_a_peer_that_does_not_come_is_named_and_nothing_is_kept() -> None:
    def program(hub: Hub) -> None:
        sockets = NodeSockets(hub)
        if hub.rank != 1:
            with open(os.devnull) as anything:
                before = open_descriptors()
                with pytest.raises(BootstrapError, match=r"PE 1 did not take part in 0\.4 s"):
                    sockets.exchange(anything.fileno(), timeout=0.4)
                assert open_descriptors() == before
        hub.barrier()
        # The late PE finds the others' descriptors waiting, and is told that they moved on.
        if hub.rank == 1:
            with open(os.devnull) as anything:
                for fd in sockets.exchange(anything.fileno()).values():
                    os.close(fd)
        hub.barrier()
        exchange_numbers(hub, sockets)
        hub.barrier()

    assert run_pes(3, program) == [0, 0, 0]


def test_strangers_are_dropped() -> None:
    """A process that finds the name in /proc/net/unix but lacks the token does no harm."""

    def program(hub: Hub) -> None:
        opened = module._Listener.open
        knocking = []

        def open_and_be_found(self: module._Listener, name: bytes, size: int) -> None:
            opened(self, name, size)
            for message in (b"", b"short", b"x" * module._HELLO.size, None):
                stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                stranger.connect(name)
                if message is not None:
                    stranger.send(message)
                knocking.append(stranger)
            if os.geteuid() == 0:  # only root can try it as another user
                pid = os.fork()
                if pid == 0:
                    os.setuid(65534)
                    other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    other.settimeout(5)
                    other.connect(name)
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0

        module._Listener.open = open_and_be_found  # type: ignore[method-assign]
        sockets = NodeSockets(hub)
        exchange_numbers(hub, sockets)
        hub.barrier()

    assert run_pes(3, program) == [0, 0, 0]


def test_a_peer_of_another_user_is_an_error() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become two users")

    def program(hub: Hub) -> None:
        before = open_descriptors()
        if hub.rank == 1:
            os.setuid(65534)
        # PEs 0 and 1 can both find out; if one gives up before the other connects, only one does.
        with pytest.raises(BootstrapError, match=r"failed on PE [01]: the socket of PE [12] belongs"):
            NodeSockets(hub)
        assert open_descriptors() == before
        hub.barrier()

    assert run_pes(3, program) == [0, 0, 0]


def test_pes_in_another_network_namespace_are_on_another_node() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make network namespaces")

    def program(hub: Hub) -> None:
        if hub.rank >= 2:
            clone_newnet = 0x40000000
            assert ctypes.CDLL(None).unshare(clone_newnet) == 0
        # PEs 2 and 3 are each in a namespace of their own.
        sockets = NodeSockets(hub)
        assert sorted(sockets.peers) == {0: [1], 1: [0], 2: [], 3: []}[hub.rank]
        hub.barrier()

    assert run_pes(4, program) == [0, 0, 0, 0]


@pytest.mark.parametrize("spare", [0, 1, 2, 3, 4, 6, 8])
def test_too_few_descriptors_is_an_error_on_every_pe_that_leaves_nothing(spare: int) -> None:
    def program(hub: Hub) -> None:
        before = open_descriptors()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hub.rank == 2:
            unused = [fd for fd in range(1000) if str(fd) not in before]
            resource.setrlimit(resource.RLIMIT_NOFILE, (unused[spare], hard))
        start = time.monotonic()
        with pytest.raises(BootstrapError, match=r"failed on PE 2: .*open files.*ulimit -n"):
            NodeSockets(hub, timeout=30)
        assert time.monotonic() - start < 10, "waited for a PE that had failed"
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert open_descriptors() == before
        hub.barrier()

    assert run_pes(5, program) == [0] * 5


def test_a_limit_on_descriptors_in_flight_only_slows_things_down() -> None:
    """The kernel counts descriptors in flight per user: ETOOMANYREFS means try again."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become a user without other descriptors in flight")

    def program(hub: Hub) -> None:
        os.setgid(65533)
        os.setuid(65533)
        sockets = NodeSockets(hub)
        # Far fewer than the 20 * 19 that all send at once.
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        for _ in range(3):
            exchange_numbers(hub, sockets)
        hub.barrier()

    assert run_pes(20, program) == [0] * 20


def test_kernels_without_pidfds(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "no such call")

    def program(hub: Hub) -> None:
        if hub.rank == 0:
            monkeypatch.setattr(os, "pidfd_open", refuse)
        sockets = NodeSockets(hub)
        assert sorted(sockets.pidfds()) == [pe for pe in (1, 2) if pe != hub.rank]
        exchange_numbers(hub, sockets)
        hub.barrier()

    assert run_pes(3, program) == [0, 0, 0]
