# SPDX-License-Identifier: Apache-2.0
"""The rules of the memory model inside kernels: each kernel of ``litmus_kernels.cu`` loops over the rounds itself."""

from pathlib import Path

import numpy as np
import pytest
from litmus_kit import next_pe, rounds

import pypgas as pg
from pypgas.testing import time_limit

SOURCE = Path(__file__).with_name("litmus_kernels.cu")
SCOPES = [("thread", 1), ("warp", 32), ("block", 48)]
WAITS = [
    "until",
    "signal_until",
    "all",
    "any",
    "some",
    "all_vector",
    "any_vector",
    "some_vector",
    "tested",
    "fetched",
]
TYPES = {"u64": "u8", "int": "i4", "short": "i2", "float": "f4", "double": "f8", "pgas::half": "f2"}

KERNELS = [
    *(f"message<{scope}, {how}>" for scope, _ in SCOPES for how in ("set", "add", "fenced", "quieted")),
    *(f"watch<{scope}>" for scope, _ in SCOPES),
    *(f"relay<{form}>" for form in WAITS),
    *(f"adds<{name}>" for name in TYPES),
    *(f"{name}<{scope}>" for name in ("barriers", "syncs") for scope, _ in SCOPES),
]

pytestmark = time_limit(120)


@pytest.fixture(scope="module")
def kernels():
    return pg.Module(SOURCE, kernels=KERNELS)


class Report:
    """What a kernel writes down."""

    def __init__(self):
        self.numbers = np.zeros(4, "u8")

    def check(self):
        count, at, expected, seen = self.numbers
        assert count == 0, f"{count} violations; the first in round {at}: {seen} instead of {expected}"


@pytest.fixture
def report():
    return Report()


def finish(report=None):
    """Wait for the kernel; other PEs' kernels may need this PE until all are over."""
    pg.synchronize()
    if report is not None:
        report.check()
    pg.barrier_all()


@pytest.mark.parametrize("how", ["set", "add", "fenced", "quieted"])
@pytest.mark.parametrize(("scope", "threads"), SCOPES)
def test_messages(kernels, report, scope, threads, how):
    """Rules 5, 10 to 13: whoever sees the signal sees the data, each message exactly."""
    length, depth = 33, 64
    slots, signal, credit = pg.zeros((depth, length), "u8"), pg.zeros(1, "u8"), pg.zeros(1, "u8")
    mine = np.zeros(length, "u8")
    count = len(rounds(2000))
    kernels.kernel(f"message<{scope}, {how}>")[2, threads](
        slots, signal, credit, mine, count, length, depth, report.numbers
    )
    finish(report)
    assert signal.local[0] == credit.local[0] == count


@pytest.mark.parametrize("length", [1, 40, 1500])
@pytest.mark.parametrize(("scope", "threads"), SCOPES)
def test_signals_tell_what_is_there(kernels, report, scope, threads, length):
    """Rule 10, looked at all the time instead of waited for."""
    data, signal, mine = pg.zeros(length, "u8"), pg.zeros(1, "u8"), np.zeros(length, "u8")
    share = {1: 1, 40: 1, 1500: 10}[length]
    kernels.kernel(f"watch<{scope}>")[1, threads](
        data, signal, mine, len(rounds(2000, share)), length, report.numbers
    )
    finish(report)


@pytest.mark.parametrize("form", WAITS)
def test_waits_reload(kernels, report, form):
    """Rules 9 and 12: every form of waiting looks again, and what is ordered before what it saw is there."""
    flags, data = pg.zeros(2, "u8"), pg.zeros(1, "u8")
    kernels.kernel(f"relay<{form}>")[1, 1](flags, data, len(rounds(200)), report.numbers)
    finish(report)


@pytest.mark.parametrize("name", list(TYPES))
def test_adds_lose_nothing(kernels, name):
    """Rules 14 and 15: threads, blocks, PEs and the host add to one element."""
    blocks, threads, from_host = 4, 32, 200
    counter = pg.zeros(1, TYPES[name])
    # Halves and floats count exactly up to a limit only.
    most = {"pgas::half": 2048 // pg.n_pes(), "float": (1 << 24) // pg.n_pes()}.get(name, 1 << 40)
    from_host = min(from_host, most // 2)
    share = max(1, min(len(rounds(6000)), most - from_host) // (blocks * threads))
    pg.barrier_all()
    with pg.Stream() as stream:
        kernels.kernel(f"adds<{name}>")[blocks, threads](counter, share, 0, stream=stream)
        for _ in range(from_host):
            pg.atomic_add(counter, 1, 0)
    pg.barrier_all()
    if pg.my_pe() == 0:
        total = pg.n_pes() * (blocks * threads * share + from_host)
        assert counter.local[0] == np.array(total).astype(counter.dtype)
    pg.barrier_all()


def test_tickets_are_drawn_once(kernels, report):
    """Rule 16."""
    blocks, threads = 3, 16
    share = max(1, len(rounds(6000)) // (blocks * threads))
    counter = pg.zeros(1, "u8")
    table = pg.zeros(share * blocks * threads * pg.n_pes(), "u1")
    kernels.kernel("tickets")[blocks, threads](counter, table, share, report.numbers)
    finish(report)
    if pg.my_pe() == 0:
        assert counter.local[0] == table.size
        assert table.local.all()
    pg.barrier_all()


def test_a_lock_of_compare_swap(kernels):
    """Rules 4 and 17: threads of all PEs take turns in adding one by get and put."""
    blocks, threads = 2, 4
    share = max(1, len(rounds(400)) // (blocks * threads))
    lock, number = pg.zeros(1, "u8"), pg.zeros(1, "u8")
    kernels.kernel("guarded")[blocks, threads](lock, number, share)
    finish()
    if pg.my_pe() == 0:
        assert number.local[0] == blocks * threads * share * pg.n_pes()
    pg.barrier_all()


@pytest.mark.parametrize(("scope", "threads"), SCOPES)
def test_barriers(kernels, report, scope, threads):
    """Rule 23."""
    boxes = pg.zeros((2, pg.n_pes()), "u8")
    kernels.kernel(f"barriers<{scope}>")[1, threads](boxes, len(rounds(300)), report.numbers)
    finish(report)


@pytest.mark.parametrize(("scope", "threads"), SCOPES)
def test_syncs(kernels, report, scope, threads):
    """Rule 24."""
    boxes = pg.zeros(2, "u8")
    kernels.kernel(f"syncs<{scope}>")[1, threads](boxes, len(rounds(300)), report.numbers)
    finish(report)


def test_quiet_separates_write_from_read(kernels, report):
    """Rule 7."""
    batch = 1000
    elements, saw, total = pg.zeros(8 * batch, "u8"), pg.zeros(batch, "i4"), pg.zeros(batch, "i4")
    kernels.kernel("store_buffers")[1, 1](elements, saw, total, len(rounds(10, batch)), batch, report.numbers)
    finish(report)


def test_more_blocks_than_cores(kernels, report):
    """Blocks that wait for later blocks of other PEs: a block that waits does not keep others from running."""
    blocks = 24
    signals = pg.zeros(blocks, "u8")
    count = len(rounds(50))
    kernels.kernel("chain")[blocks, 8](signals, count, report.numbers)
    finish(report)
    assert (signals.local[:-1] == count).all()


def test_host_and_kernel_in_one_conversation(kernels, report):
    """The host sends what a kernel waits for, and a kernel what the host waits for."""
    slots, signal, credit = pg.zeros((8, 5), "u8"), pg.zeros(1, "u8"), pg.zeros(1, "u8")
    count, to = len(rounds(100)), next_pe()
    message = np.arange(5, dtype="u8")
    with pg.Stream() as stream:
        pg.kernel(HEARS, "hears")[1, 1](slots, signal, credit, count, report.numbers, stream=stream)
        for r in range(1, count + 1):
            if r > 8:
                pg.signal_wait_until(credit, pg.GE, r - 8)
            pg.put_signal(slots[(r - 1) % 8], message + 1000 * r, signal, r, to)
    report.check()
    pg.barrier_all()


HEARS = """
#include <pypgas.cuh>
using pgas::u64;
__global__ void hears(u64 *slots, u64 *signal, u64 *credit, u64 rounds, u64 *report) {
  const int from = (pgas::my_pe() + pgas::n_pes() - 1) % pgas::n_pes();
  for (u64 r = 1; r <= rounds; r++) {
    pgas::signal_wait_until(signal, pgas::Compare::ge, r);
    for (u64 i = 0; i < 5; i++) {
      const u64 seen = slots[(r - 1) % 8 * 5 + i];
      if (seen != r * 1000 + i && !report[0]++) { report[1] = r; report[2] = r * 1000 + i; report[3] = seen; }
    }
    pgas::signal_set(credit, r, from);
  }
}
"""
