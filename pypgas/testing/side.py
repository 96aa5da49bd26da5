# SPDX-License-Identifier: Apache-2.0
"""The side channel: agreement among the PEs of a test without touching symmetric memory.

Inside the harness it goes through the controller, so it works while the runtime under test
misbehaves. In a job started by hand it goes through a collective of pypgas, and in a
process that is no job there is nobody to ask.
"""

from __future__ import annotations

import base64
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np

import pypgas as pg
from pypgas.testing.channel import Channel

__all__ = [
    "ExchangeRefusedError",
    "agree",
    "attach",
    "begin",
    "deadline",
    "detach",
    "exchange",
    "place",
    "shared_folder",
]


class ExchangeRefusedError(RuntimeError):
    """An exchange that cannot complete, because another PE failed or took no part in it."""


class _Place:
    channel: Channel | None = None
    pe = 0
    n = 1
    folder: Path | None = None
    deadline: float | None = None


_place = _Place()


def attach(channel: Channel, pe: int, n: int) -> None:
    """Route exchanges through the controller (done by the worker)."""
    _place.channel, _place.pe, _place.n = channel, pe, n


def detach() -> None:
    """Stop using the controller."""
    _place.channel = None


def begin(folder: Path, limit: float) -> None:
    """Note the folder that the PEs of the test about to run share, and its time limit in seconds."""
    _place.folder = folder
    _place.deadline = time.monotonic() + limit


def deadline() -> float | None:
    """When the running test's time is up, on the monotonic clock; ``None`` outside the harness."""
    return _place.deadline


def shared_folder() -> Path | None:
    """The folder that the PEs of the running test share, in the harness."""
    return _place.folder


def place() -> tuple[int, int]:
    """This PE's number and the number of PEs that take part in an exchange."""
    if _place.channel is not None:
        return _place.pe, _place.n
    if pg.is_initialized():
        return pg.my_pe(), pg.n_pes()
    return 0, 1


def exchange(value: Any, *, failed: bool = False) -> list[Any]:
    """Give every PE every PE's ``value`` (anything that pickles), in PE order.

    Collective over the PEs of the test. ``failed`` says that this PE has failed already,
    so that the harness does not wait long for the others. Raises ``ExchangeRefusedError`` when
    another PE died, finished the test, or does not come.
    """
    __tracebackhide__ = True
    channel = _place.channel
    if channel is None:
        return _exchange_by_collective(value)
    text = base64.b64encode(pickle.dumps(value)).decode()
    channel.send({"kind": "exchange", "value": text, "failed": failed})
    answer = channel.receive()
    if answer["kind"] != "exchanged":
        raise ExchangeRefusedError(f"PE {_place.pe}: exchange: {answer.get('why', answer['kind'])}")
    return [pickle.loads(base64.b64decode(text)) for text in answer["values"]]


def agree(ok: bool, message: str = "") -> None:
    """Raise ``AssertionError`` on every PE if ``ok`` is false on any; collective.

    The error names the PEs that said no, with their messages.
    """
    __tracebackhide__ = True
    answers = exchange((bool(ok), message), failed=not ok)
    wrong = [f"PE {pe}: {text or 'not ok'}" for pe, (fine, text) in enumerate(answers) if not fine]
    if wrong:
        raise AssertionError("\n".join(wrong))


def _exchange_by_collective(value: Any) -> list[Any]:
    _, n = place()
    if n == 1:
        return [value]
    data = np.frombuffer(pickle.dumps(value), dtype=np.uint8)
    sizes = pg.fcollect(np.array([data.size], dtype=np.int64))
    parts = np.split(np.asarray(pg.collect(data)), np.cumsum(sizes)[:-1])
    return [pickle.loads(part.tobytes()) for part in parts]
