# SPDX-License-Identifier: Apache-2.0
"""Results as a picture: times over sizes, bandwidth of transfers, and the operations that have no size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..config import format_size
from .timing import Measurement

__all__ = ["plot"]

_COLOURS = {"pypgas": "tab:blue", "mpi4py": "tab:orange", "shmem4py": "tab:green"}
_TRANSFERS = ("put", "get", "put_nbi", "put_signal")


def plot(results: Sequence[Measurement], title: str, path: str) -> None:
    """Draw the results to a file, whose ending says the format.

    Raises:
        ImportError: matplotlib is not installed.
        OSError, ValueError: the file can't be written, or not in that format.
    """
    from matplotlib.figure import Figure

    sized = list(dict.fromkeys(m.operation for m in results if m.nbytes))
    single = [m for m in results if not m.nbytes]
    panels = len(sized) + any(name in _TRANSFERS for name in sized) + bool(single)
    columns = min(3, max(1, panels))
    rows = math.ceil(panels / columns)
    figure = Figure(figsize=(5.2 * columns, 3.6 * rows), layout="constrained")
    figure.suptitle(title, fontsize=10)
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(panels)]
    for name in sized:
        _lines(axes.pop(0), name, [m for m in results if m.operation == name])
    if any(name in _TRANSFERS for name in sized):
        _bandwidth(axes.pop(0), [m for m in results if m.operation in _TRANSFERS and m.nbytes])
    if single:
        _bars(axes.pop(0), single)
    figure.savefig(path, dpi=110)


def _sides(results: Sequence[Measurement]) -> list[str]:
    return list(dict.fromkeys(side for m in results for side in m.seconds))


def _sizes(axis: Any, results: Sequence[Measurement]) -> None:
    sizes = sorted({m.nbytes for m in results})
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(sizes, [format_size(size) for size in sizes])
    axis.minorticks_off()
    axis.grid(alpha=0.3)


def _lines(axis: Any, name: str, results: Sequence[Measurement]) -> None:
    for side in _sides(results):
        mine = [m for m in results if side in m.seconds]
        times = [m.median(side) * 1e6 for m in mine]
        axis.plot([m.nbytes for m in mine], times, "o-", color=_COLOURS.get(side), label=side)
    _sizes(axis, results)
    axis.set_title(name)
    axis.set_ylabel("µs a round")
    axis.legend(fontsize=8)


def _bandwidth(axis: Any, results: Sequence[Measurement]) -> None:
    styles = dict(zip(_TRANSFERS, ("-", "--", ":", "-."), strict=True))
    for name in dict.fromkeys(m.operation for m in results):
        for side in _sides(results):
            mine = [m for m in results if m.operation == name and side in m.seconds]
            rates = [m.bandwidth(side) / 1e9 for m in mine]
            sizes = [m.nbytes for m in mine]
            axis.plot(sizes, rates, styles[name], color=_COLOURS.get(side), label=f"{side} {name}")
    _sizes(axis, results)
    axis.set_title("bandwidth")
    axis.set_ylabel("GB/s")
    axis.legend(fontsize=7)


def _bars(axis: Any, results: Sequence[Measurement]) -> None:
    sides = _sides(results)
    height = 0.8 / len(sides)
    for k, side in enumerate(sides):
        mine = [(i, m) for i, m in enumerate(results) if side in m.seconds]
        places = [i + (k - (len(sides) - 1) / 2) * height for i, _ in mine]
        widths = [m.median(side) * 1e6 for _, m in mine]
        axis.barh(places, widths, height, color=_COLOURS.get(side), label=side)
    axis.set_yticks(range(len(results)), [m.operation for m in results])
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel("µs a round")
    axis.grid(alpha=0.3, axis="x")
    axis.legend(fontsize=8)
