#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""PageRank of a real graph: which modules of Python's standard library matter most?

pypgas run -n 4 examples/pagerank.py

A module links to those that it imports. Each PE reads a share of the library's files, ``collect``
brings the links together, and each PE looks after the ranks of a share of the modules. In each
iteration it fetches what the importers of its modules have to give, wherever they live, with one bulk
atomic fetch.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pypgas as pg

DAMPING = 0.85
TOLERANCE = 1e-12
IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import|import[ \t]+([\w., \t]+))", re.MULTILINE)
SKIP = {"__pycache__", "idlelib", "site-packages", "test", "tests", "turtledemo"}

Links = NDArray[np.int64]  # shape (n, 2): importing and imported module


def find_modules() -> dict[str, Path | None]:
    """Return the modules' names and files, the same on every PE; built-in ones have no file."""
    library = Path(sysconfig.get_path("stdlib"))
    modules: dict[str, Path | None] = dict.fromkeys(sorted(sys.stdlib_module_names))
    for folder, folders, files in os.walk(library):
        folders[:] = sorted(set(folders) - SKIP)
        for file in sorted(Path(folder, name) for name in files if name.endswith(".py")):
            parts = file.relative_to(library).with_suffix("").parts
            if parts[0] in modules:
                modules[".".join(parts).removesuffix(".__init__")] = file
    return modules


def find_links(modules: dict[str, Path | None], me: int, n: int) -> Links:
    """Return the links in every ``n``-th file from the one numbered ``me``."""
    number = {name: k for k, name in enumerate(modules)}
    links = set()
    for name, file in list(modules.items())[me::n]:
        if file is None:
            continue
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        for source, targets in IMPORT.findall(file.read_text(encoding="utf-8", errors="replace")):
            for target in [source] if source else targets.split(","):
                imported = number.get(absolute(target.strip().split(" ")[0], package))
                if imported is not None and imported != number[name]:
                    links.add((number[name], imported))
    return np.array(sorted(links), dtype="i8").reshape(-1, 2)


def absolute(name: str, package: str) -> str:
    """Return the full name of a module that may be named relative to a package, by leading dots."""
    relative = name.lstrip(".")
    up = len(name) - len(relative) - 1
    if up < 0:
        return name
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - up], *filter(None, [relative])])


def pagerank(links: Links, n_modules: int) -> NDArray[np.float64]:
    """Return the ranks of all modules, from all links (collective)."""
    me, n = pg.my_pe(), pg.n_pes()
    share = -(-n_modules // n)  # modules on each PE; the last one may have fewer
    first, stop = min(me * share, n_modules), min((me + 1) * share, n_modules)
    sources, targets = links[(links[:, 1] >= first) & (links[:, 1] < stop)].T
    owner, index = np.divmod(sources, share)
    out_degree = np.bincount(links[:, 0], minlength=n_modules)[first:stop]
    sink = out_degree == 0  # what leads nowhere gives to all alike

    rank = np.full(stop - first, 1.0 / n_modules)
    gift = pg.zeros(share, dtype="f8")  # what each of my modules gives to each that it imports
    for _ in range(1000):
        gift.local[: rank.size] = rank / np.maximum(out_degree, 1)
        lost = pg.reduce(float(rank[sink].sum()), op="sum")
        pg.barrier_all()  # all gifts are there
        received = np.bincount(targets - first, pg.atomic_fetch(gift, owner, index=index), rank.size)
        new = (1 - DAMPING + DAMPING * lost) / n_modules + DAMPING * received
        change = pg.reduce(float(np.abs(new - rank).sum()), op="sum")  # and all have been fetched
        rank = new
        if change < TOLERANCE:
            break
    return pg.collect(rank)


def plain_pagerank(links: Links, n_modules: int) -> NDArray[np.float64]:
    """Return the ranks as the solution of a linear system, to check the iteration."""
    matrix = np.zeros((n_modules, n_modules))
    matrix[links[:, 1], links[:, 0]] = 1.0
    matrix[:, matrix.sum(axis=0) == 0] = 1.0
    matrix /= matrix.sum(axis=0)
    right = np.full(n_modules, (1 - DAMPING) / n_modules)
    return np.linalg.solve(np.eye(n_modules) - DAMPING * matrix, right)


def main() -> int:
    with pg.init():
        me, n = pg.my_pe(), pg.n_pes()
        modules = find_modules()
        links = pg.collect(find_links(modules, me, n))
        ranks = pagerank(links, len(modules))
        good = True
        if me == 0:
            error = float(np.abs(ranks - plain_pagerank(links, len(modules))).max())
            good = error < 1e-10 and abs(ranks.sum() - 1) < 1e-10
            names = list(modules)
            best = ", ".join(f"{names[k]} {ranks[k]:.3f}" for k in np.argsort(-ranks)[:5])
            print(
                f"pagerank: {len(modules)} modules, {len(links)} imports, {n} PEs; "
                f"{best}: {'correct' if good else 'WRONG'}"
            )
        return 0 if pg.broadcast(int(good), root=0) else 1


if __name__ == "__main__":
    sys.exit(main())
