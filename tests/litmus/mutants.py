# SPDX-License-Identifier: Apache-2.0
"""Copies of the device library with one mistake in each, and the litmus kernels that have to notice it.

A litmus test is worth what it finds. Each mutant is the library with a piece of its text replaced: the mistakes are
those that the rules of docs/memory-model.md are there to forbid. `write` makes such a copy. Run as a program, on every
PE of a job, this file repeats litmus kernels with it: ``mutants.py <include folder> <repetitions> <kernel>…``. A
PE that finds a violation says so and ends the job with the exit code `CAUGHT`.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import pypgas as pg

__all__ = ["CAUGHT", "KERNELS", "MUTANTS", "Mutant", "write"]

SOURCE = Path(__file__).with_name("litmus_kernels.cu")
CAUGHT = 3


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A mistake: in a file of ``device/include``, pieces of text become others; these kernels must notice."""

    file: str
    edits: tuple[tuple[str, str], ...]
    kernels: tuple[str, ...]


_SIGNAL = "raw::signal_update(detail::remote(signal, detail::world_pe(pe, c)), op, value);\n  }\n"
_PUT = "  put<S>(dst, src, count, pe, c);\n"
_ADDS = ("adds<u64>", "tickets")

MUTANTS = {
    "the signal before its data": Mutant(
        "signals.cuh",
        ((_PUT + "  if (arch", "  if (arch"), (_SIGNAL + "}\n", _SIGNAL + _PUT + "}\n")),
        ("watch<thread>", "watch<block>"),
    ),
    "an addition in two steps": Mutant(
        "raw/atomics.cuh",
        (
            (
                "return arch::fetch_add(p, v);",
                "{ const T old = arch::load_relaxed(p); arch::store_relaxed(p, T(old + v)); return old; }",
            ),
        ),
        _ADDS,
    ),
    "a floating-point addition in two steps": Mutant(
        "raw/atomics.cuh",
        (
            (
                "while (!arch::compare_exchange(word, seen, B::to(sum(B::from(seen), v)))) {}",
                "arch::store_relaxed(word, B::to(sum(B::from(seen), v)));",
            ),
        ),
        ("adds<double>",),
    ),
    "a signal addition in two steps": Mutant(
        "raw/signals.cuh",
        (
            (
                "arch::fetch_add(signal, value);",
                "arch::store_relaxed(signal, arch::load_relaxed(signal) + value);",
            ),
        ),
        ("adds<u64>",),
    ),
    "a compare-and-swap in two steps": Mutant(
        "raw/atomics.cuh",
        (
            (
                "arch::compare_exchange(reinterpret_cast<typename B::type *>(p), seen, B::to(v));",
                "if (memcmp(p, &seen, sizeof seen)) memcpy(&seen, p, sizeof seen); else arch::store_relaxed(p, v);",
            ),
        ),
        ("guarded",),
    ),
    "a barrier that does not wait for the last PE": Mutant(
        "raw/gate.cuh",
        (("if ((now & count_mask) == n) {", "if ((now & count_mask) >= n - 1) {"),),
        ("barriers<thread>",),
    ),
    "a barrier for which one PE does not wait": Mutant(
        "raw/gate.cuh",
        (("if (word >> 2 == epoch) {", "if (word >> 2 == epoch || s.pe == 0) {"),),
        ("barriers<thread>", "barriers<block>"),
    ),
    "a wait that looks once": Mutant(
        "signals.cuh",
        (
            (
                "    if (!w.idle()) arch::leave();\n    if (raw::test(variable, compare, value, &seen)) return seen;\n",
                "    if (!w.idle()) arch::leave();\n    if (raw::holds(seen, compare, value)) return seen;\n",
            ),
        ),
        ("relay<until>",),
    ),
    "a wait for any that looks once": Mutant(
        "signals.cuh",
        (
            (
                "    const size_t i = find_any(ivars, n, status, compare, values, step, &empty);\n"
                "    if (i < n || empty) return i;\n    if (!w.idle()) arch::leave();\n",
                "    if (!w.facts.width) w.facts.seen = find_any(ivars, n, status, compare, values, step, &empty);\n"
                "    w.facts.width = 1;\n    if (w.facts.seen < n || empty) return w.facts.seen;\n"
                "    if (!w.idle()) arch::leave();\n",
            ),
        ),
        ("relay<any>",),
    ),
}


def write(mutant: Mutant | None, library: Path, folder: Path) -> Path:
    """Copy the headers of ``library`` to ``folder``, with the mutant's mistake, and return the folder.

    Raises:
        ValueError: the library no longer has the text that the mutant replaces, exactly once.
    """
    shutil.copytree(library, folder)
    if mutant is not None:
        path = folder / "pypgas" / mutant.file
        text = path.read_text()
        for old, new in mutant.edits:
            if text.count(old) != 1:
                raise ValueError(f"{mutant.file} has {text.count(old)} times what was to be replaced:\n{old}")
            text = text.replace(old, new)
        path.write_text(text)
    return folder


# ---- running the kernels: each case launches one and returns what is wrong

Case = Callable[[pg.Kernel], str]


def _reported(report: np.ndarray) -> str:
    count, at, expected, seen = (int(number) for number in report)
    return f"{count} violations, first in round {at}: {seen} instead of {expected}" if count else ""


def _watch(kernel: pg.Kernel) -> str:
    length, report = 1500, np.zeros(4, "u8")
    data, signal, mine = pg.zeros(length, "u8"), pg.zeros(1, "u8"), np.zeros(length, "u8")
    kernel[1, 1 if "thread" in kernel.name else 32](data, signal, mine, 300, length, report)
    pg.synchronize()
    return _reported(report)


def _relay(kernel: pg.Kernel) -> str:
    flags, data, report = pg.zeros(2, "u8"), pg.zeros(1, "u8"), np.zeros(4, "u8")
    kernel[1, 1](flags, data, 100, report)
    pg.synchronize()
    return _reported(report)


def _adds(kernel: pg.Kernel) -> str:
    blocks, threads, count = 2, 2, 200_000
    counter = pg.zeros(1, "f8" if "double" in kernel.name else "u8")
    kernel[blocks, threads](counter, count, 0)
    pg.synchronize()
    pg.barrier_all()
    wanted, found = pg.n_pes() * blocks * threads * count, int(counter.local[0])
    return f"{wanted - found} of {wanted} additions lost" if pg.my_pe() == 0 and found != wanted else ""


def _tickets(kernel: pg.Kernel) -> str:
    blocks, threads, count, report = 2, 4, 20_000, np.zeros(4, "u8")
    counter, table = pg.zeros(1, "u8"), pg.zeros(blocks * threads * count * pg.n_pes(), "u1")
    kernel[blocks, threads](counter, table, count, report)
    pg.synchronize()
    pg.barrier_all()
    missing = int((table.local == 0).sum()) if pg.my_pe() == 0 else 0
    return _reported(report) or (f"{missing} tickets were never drawn" if missing else "")


def _guarded(kernel: pg.Kernel) -> str:
    blocks, threads, count = 2, 1, 20_000
    lock, number = pg.zeros(1, "u8"), pg.zeros(1, "u8")
    kernel[blocks, threads](lock, number, count)
    pg.synchronize()
    pg.barrier_all()
    wanted, found = pg.n_pes() * blocks * threads * count, int(number.local[0])
    return f"{found} instead of {wanted}" if pg.my_pe() == 0 and found != wanted else ""


def _barriers(kernel: pg.Kernel) -> str:
    boxes, report = pg.zeros((2, pg.n_pes()), "u8"), np.zeros(4, "u8")
    kernel[1, 1 if "thread" in kernel.name else 32](boxes, 200, report)
    pg.synchronize()
    return _reported(report)


def _store_buffers(kernel: pg.Kernel) -> str:
    batch, report = 1000, np.zeros(4, "u8")
    elements, saw, total = pg.zeros(8 * batch, "u8"), pg.zeros(batch, "i4"), pg.zeros(batch, "i4")
    kernel[1, 1](elements, saw, total, 20, batch, report)
    pg.synchronize()
    return _reported(report)


KERNELS: dict[str, Case] = {
    "watch<thread>": _watch,
    "watch<block>": _watch,
    "relay<until>": _relay,
    "relay<any>": _relay,
    "adds<u64>": _adds,
    "adds<double>": _adds,
    "tickets": _tickets,
    "guarded": _guarded,
    "barriers<thread>": _barriers,
    "barriers<block>": _barriers,
    "store_buffers": _store_buffers,
}


def main(include: str, repetitions: int, names: Sequence[str]) -> None:
    with pg.init():
        templates = [name for name in names if "<" in name]
        module = pg.Module(SOURCE, include=[include], kernels=templates, options=["-O1"])  # compiles faster
        kernels = [module.kernel(name) for name in names]
        for _ in range(repetitions):
            for kernel in kernels:
                try:
                    found = KERNELS[kernel.name](kernel)
                except pg.PgasError as error:  # a wait without end, or the library's own checks
                    found = f"{type(error).__name__}: {error}"
                if found:
                    print(f"caught by {kernel.name}: {found}", flush=True)
                    sys.exit(CAUGHT)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
