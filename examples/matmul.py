#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""A distributed matrix product by SUMMA: blocks on a grid of PEs, panels broadcast along its lines.

pypgas run -n 4 examples/matmul.py --size 400

Each PE holds a block of A, B and C. For one range ``k`` of the inner dimension after the other, who
owns A's columns ``k`` broadcasts its part along its row of the grid, who owns B's rows ``k`` along its
column, and everybody adds the product of the two panels. ``split_2d`` gives the two teams.
"""

from __future__ import annotations

import argparse
import itertools
import sys

import numpy as np
from numpy.typing import NDArray

import pypgas as pg

Matrix = NDArray[np.float64]


def cuts(size: int, parts: int) -> list[int]:
    """Return where ``size`` rows are cut into parts that differ by one row at most."""
    return [part * size // parts for part in range(parts + 1)]


def owner(edges: list[int], index: int) -> int:
    """Return the part that holds a row."""
    return int(np.searchsorted(edges, index, side="right")) - 1


def summa(a: Matrix, b: Matrix, size: int, row: pg.Team, column: pg.Team) -> Matrix:
    """Return this PE's block of A @ B, from its blocks ``a`` and ``b`` (collective).

    ``row`` is the team of the PEs in the same row of the grid, ``column`` that in the same column.
    """
    a_edges, b_edges = cuts(size, row.n_pes), cuts(size, column.n_pes)
    c = np.zeros((a.shape[0], b.shape[1]))
    edges = sorted({*a_edges, *b_edges})  # so that each range has one owner in A and one in B
    for low, high in itertools.pairwise(edges):
        a_panel, b_panel = np.empty((a.shape[0], high - low)), np.empty((high - low, b.shape[1]))
        a_owner, b_owner = owner(a_edges, low), owner(b_edges, low)
        if row.my_pe == a_owner:
            a_panel[:] = a[:, low - a_edges[a_owner] : high - a_edges[a_owner]]
        if column.my_pe == b_owner:
            b_panel[:] = b[low - b_edges[b_owner] : high - b_edges[b_owner]]
        pg.broadcast(a_panel, root=a_owner, team=row)
        pg.broadcast(b_panel, root=b_owner, team=column)
        c += a_panel @ b_panel
    return c


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=400, help="rows and columns of the matrices")
    size = parser.parse_args().size
    with pg.init():
        n = pg.n_pes()
        across = max(k for k in range(1, n + 1) if n % k == 0 and k * k <= n)
        row, column = pg.TEAM_WORLD.split_2d(across)
        with row, column:
            y, x = cuts(size, column.n_pes), cuts(size, row.n_pes)
            rows = slice(y[column.my_pe], y[column.my_pe + 1])
            columns = slice(x[row.my_pe], x[row.my_pe + 1])

            # Small whole numbers: sums of their products are exact in any order.
            random = np.random.default_rng(5)
            a, b = random.integers(-100, 100, size=(2, size, size)).astype("f8")
            c = summa(a[rows, columns], b[rows, columns], size, row, column)

            good = bool(pg.reduce(int(np.array_equal(c, a[rows] @ b[:, columns])), op="min"))
            if pg.my_pe() == 0:
                print(
                    f"matmul: {size} x {size} on {column.n_pes} x {row.n_pes} PEs: "
                    f"{'correct' if good else 'WRONG'}"
                )
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
