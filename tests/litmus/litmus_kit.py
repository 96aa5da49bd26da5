# SPDX-License-Identifier: Apache-2.0
"""What the litmus tests share.

A litmus test runs one small pattern of operations many times, as fast as it can, and checks after each
round that no PE has seen what the memory model (docs/memory-model.md) forbids. Most of them run freely:
a round is a number that only grows, so a PE that has seen round ``r`` announced must find everything
that belongs to it at ``r`` or above, however far the writer has got since.

``LITMUS_ROUNDS=100000`` in the environment makes every test run its pattern so many times.
"""

from __future__ import annotations

import os
import time

import pypgas as pg

__all__ = ["fall_in", "next_pe", "relax", "rounds"]


def rounds(default: int, patterns: int = 1) -> range:
    """Rounds 1, 2, …: ``default`` of them, or as many as make ``LITMUS_ROUNDS`` patterns.

    ``patterns`` says how often one round runs the pattern.
    """
    asked = os.environ.get("LITMUS_ROUNDS")
    return range(1, (default if asked is None else max(1, int(asked) // patterns)) + 1)


def next_pe() -> int:
    """The next PE around the ring: this one, where it is alone."""
    return (pg.my_pe() + 1) % pg.n_pes()


def relax() -> None:
    """Let another process have the core: there may be more PEs than cores."""
    time.sleep(0)


def fall_in(turn: pg.SymmetricArray, step: int, to: int) -> None:
    """Start this step with the PE before, if it is near: PEs that run side by side meet more often.

    ``turn`` is a uint64 that nothing else uses. A PE that does not come is not waited for long: on a
    busy machine it may not be running at all.
    """
    pg.atomic_set(turn, step, to)
    # Spinning, because a PE that yields may find the other gone when it comes back.
    patience = 500 if pg.n_pes() <= len(os.sched_getaffinity(0)) else 30
    for _ in range(patience):
        if pg.signal_fetch(turn) >= step:
            return
