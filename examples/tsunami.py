#!/usr/bin/env python
# SPDX-License-Identifier: Apache-2.0
"""A tsunami in the Salish Sea, computed by any number of processing elements (PEs).

    pypgas run -n 4 examples/tsunami.py --size 1024 --steps 500 --output output

solves the shallow-water equations over the real sea floor between Vancouver Island and the mainland
(the survey that matplotlib ships as sample data, 91 x 120 points, interpolated to the resolution
asked for).  The map is cut into a grid of blocks, one per PE.  In each time step a PE

1. advances its own cells (``tsunami_scheme.py``, plain NumPy),
2. puts the outermost of them into the borders of its up to eight neighbours: ``pg.put_signal``
   writes into the neighbour's memory and then raises a signal there,
3. waits until all its neighbours have done the same: ``pg.wait_until_all``.

There is no global synchronisation in the loop, and no message is matched or copied twice.

``--kernel`` does all of this in one kernel (``tsunami_kernel.cu``): it advances the cells, puts the borders and
waits for the neighbours itself, with no step of the host in between, and gives the same result bit for bit.

``--check`` proves the result: it must equal that of one PE bit for bit, and that of an independent
solver (``tsunami_reference.py``) to rounding.  The volume of the water must never change.

Needs the extra ``examples``: ``pip install "pypgas[examples]"``.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tsunami_reference
from tsunami_kernel import KernelWater
from tsunami_scheme import (
    DEPTH,
    GHOST,
    WALL,
    Block,
    Field,
    Map,
    ShallowWater,
    depth_after_earthquake,
)

import pypgas as pg

TOLERANCE = 1e-8  # m: most that the independent solver's rounding may differ
MAX_DRIFT = 1e-12  # relative change of volume that rounding may cause
PATIENCE = 120  # s to wait for a neighbour: a step takes well under one


class Grid:
    """The map cut into a grid of blocks, one per PE, as square as their number allows."""

    def __init__(self, size: int, n_pes: int) -> None:
        across = max(n for n in range(1, n_pes + 1) if n_pes % n == 0 and n * n <= n_pes)
        self.rows, self.columns = n_pes // across, across
        self.size = size
        if size // self.rows < GHOST:
            raise ValueError(f"{n_pes} PEs need a map of {GHOST * self.rows} cells or more a side")

    def block(self, pe: int) -> Block:
        row, column = divmod(pe, self.columns)
        return Block(
            y0=row * self.size // self.rows,
            y1=(row + 1) * self.size // self.rows,
            x0=column * self.size // self.columns,
            x1=(column + 1) * self.size // self.columns,
        )

    def neighbour(self, pe: int, dy: int, dx: int) -> int | None:
        row, column = pe // self.columns + dy, pe % self.columns + dx
        inside = 0 <= row < self.rows and 0 <= column < self.columns
        return row * self.columns + column if inside else None

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns of an array that holds any of the blocks and its border."""
        return -(-self.size // self.rows) + 2 * GHOST, -(-self.size // self.columns) + 2 * GHOST


@dataclass(frozen=True)
class Side:
    """What one neighbour gets: cells of mine, into its border, announced by one of its signals."""

    pe: int
    signal: int
    mine: tuple[slice, slice, slice]
    theirs: tuple[slice, slice, slice]


DIRECTIONS = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]


class Halo:
    """The borders of this PE's block and who fills them."""

    def __init__(self, grid: Grid, pe: int) -> None:
        self.sides: list[Side] = []
        self.signals = pg.zeros(len(DIRECTIONS), dtype="u8")  # one per neighbour: its last step
        self.expected = np.zeros(len(DIRECTIONS), dtype=bool)
        for k, (dy, dx) in enumerate(DIRECTIONS):
            other = grid.neighbour(pe, dy, dx)
            if other is None:
                continue
            self.expected[k] = True
            rows, columns = grid.block(pe).shape, grid.block(other).shape
            ys = [_overlap(d, n, m) for d, n, m in zip((dy, dx), rows, columns, strict=True)]
            self.sides.append(
                Side(
                    pe=other,
                    signal=DIRECTIONS.index((-dy, -dx)),  # seen from there, I am on the other side
                    mine=(slice(None), ys[0][0], ys[1][0]),
                    theirs=(slice(None), ys[0][1], ys[1][1]),
                )
            )

    def exchange(self, state: pg.SymmetricArray, step: int) -> None:
        """Give the neighbours their borders of ``state`` after ``step``, and wait for mine."""
        for side in self.sides:
            pg.put_signal(
                state[side.theirs],  # the same place in the neighbour's memory
                state.local[side.mine],
                self.signals[side.signal],
                step,
                side.pe,
            )
        pg.wait_until_all(self.signals, pg.GE, step, where=self.expected, timeout=PATIENCE)


def _overlap(direction: int, mine: int, theirs: int) -> tuple[slice, slice]:
    """Return my outermost cells in one dimension, and their place in the neighbour's block."""
    if direction < 0:
        return slice(GHOST, 2 * GHOST), slice(GHOST + theirs, 2 * GHOST + theirs)
    if direction > 0:
        return slice(mine, mine + GHOST), slice(0, GHOST)
    return slice(GHOST, GHOST + mine), slice(GHOST, GHOST + theirs)


class Canvas:
    """A picture of the whole map on PE 0, of every ``stride``-th cell."""

    def __init__(self, grid: Grid, pe: int, stride: int) -> None:
        n = -(-grid.size // stride)
        self.image = pg.zeros((n, n), dtype="f8")
        self.block, self.stride = grid.block(pe), stride

    def gather(self, values: Field) -> Field:
        """Return the field of the whole map on PE 0 from everybody's blocks (collective).

        On the other PEs what is returned is empty.
        """
        s, b = self.stride, self.block
        piece = np.ascontiguousarray(values[-b.y0 % s :: s, -b.x0 % s :: s])
        top, left = -(-b.y0 // s), -(-b.x0 // s)
        pg.barrier_all()  # PE 0 has taken the picture before this one
        if piece.size:
            place = self.image[top : top + piece.shape[0], left : left + piece.shape[1]]
            pg.put(place, piece, 0)
        pg.barrier_all()
        return self.image.local.copy() if pg.my_pe() == 0 else np.empty((0, 0))


def exact_volume(depth: Field) -> int:
    """Return the sum of all PEs' depths in units of 2**-56 m, without any rounding (collective).

    Whole numbers add up to the same sum in any order, so this does not depend on the blocks.
    """
    scaled = depth * 2.0**20
    whole = np.floor(scaled)
    rest = np.floor((scaled - whole) * 2.0**36)
    parts = np.array([whole.sum(dtype="i8"), rest.sum(dtype="i8")])
    coarse, fine = pg.reduce(parts, op="sum")
    return (int(coarse) << 36) + int(fine)


class Progress:
    """A progress bar on PE 0's terminal; a line every tenth of the way where there is none."""

    def __init__(self, steps: int, dt: float) -> None:
        self.steps, self.dt = steps, dt
        self.live = bool(pg.broadcast(int(sys.stderr.isatty()), root=0))  # PE 0 writes
        self.start = time.perf_counter()

    def due(self, step: int) -> bool:
        """Return whether to report now: on all PEs alike, as that takes a reduction."""
        return step == self.steps or step % max(1, self.steps // (100 if self.live else 10)) == 0

    def show(self, step: int, highest: float) -> None:
        if pg.my_pe() != 0:
            return
        spent = time.perf_counter() - self.start
        filled = 20 * step // self.steps
        text = (
            f"[{'#' * filled}{'.' * (20 - filled)}] step {step}/{self.steps}, "
            f"{step * self.dt / 60:.1f} min after the earthquake, highest wave {highest:.2f} m, "
            f"{spent / step * (self.steps - step):.0f} s left"
        )
        if self.live:
            print(f"\r{text} ", end="\n" if step == self.steps else "", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)


def simulate(options: argparse.Namespace) -> bool:
    """Run the simulation and report; return whether the result is right (collective)."""
    me, n, size, steps = pg.my_pe(), pg.n_pes(), options.size, options.steps
    area, grid = Map.load(size), Grid(size, n)
    block = grid.block(me)

    states = pg.zeros((2, 3, *grid.padded))  # two time levels of depth, u and v
    halo = Halo(grid, me)
    bed, states.local[0, DEPTH] = initial(area, block, grid.padded)
    deepest = float(pg.reduce(states.local[0, DEPTH].max(), op="max"))
    water = ShallowWater(bed, block.shape, area.dx, area.dy, deepest)
    volume = exact_volume(states.local[0, DEPTH][water.inner])

    film = Canvas(grid, me, max(1, size // 700))
    every = max(1, steps // options.frames) if options.output else steps + 1
    frames = []
    if options.output:
        frames.append((0.0, film.gather(water.rise(states.local[0]))))

    pg.barrier_all()
    progress = Progress(steps, water.dt)
    kernel = make_kernel(water, states, halo) if options.kernel else None
    done = 0  # steps that kernels have taken
    for step in range(1, steps + 1):
        old, new = states[(step - 1) % 2], states[step % 2]
        if kernel is None:
            water.advance(old.local, new.local)
            halo.exchange(new, step)
        elif progress.due(step) or step % every == 0:
            kernel.run(done + 1, step)  # the host waits for whole runs of steps, never within one
            done = step
        if progress.due(step):
            progress.show(step, float(pg.reduce(water.rise(new.local).max(), op="max")))
        if step % every == 0:
            frames.append((step * water.dt, film.gather(water.rise(new.local))))
    seconds = time.perf_counter() - progress.start

    depth = states.local[steps % 2, DEPTH][water.inner]
    drift = (exact_volume(depth) - volume) / volume
    highest = float(pg.reduce(water.peak.max(), op="max"))
    canvas = Canvas(grid, me, 1)
    result = canvas.gather(depth), canvas.gather(water.peak)

    good = abs(drift) <= MAX_DRIFT
    if me == 0:
        report(area, n, steps, water.dt, seconds, volume, drift, highest, result)
        if options.output:
            draw(options.output, area, steps * water.dt, film.stride, frames, result[1])
    if options.check:
        good = check(area, steps, result) and good
    return good


def make_kernel(water: ShallowWater, states: pg.SymmetricArray, halo: Halo) -> KernelWater:
    """Return what advances the water by kernels (collective)."""
    sides = [
        # I am on the other side of each neighbour, so its signal for me is mine for it, mirrored.
        (s.pe, s.signal, len(DIRECTIONS) - 1 - s.signal, (s.mine[1], s.mine[2]), (s.theirs[1], s.theirs[2]))
        for s in halo.sides
    ]
    return KernelWater(water, states, halo.signals, sides)


def initial(area: Map, block: Block, shape: tuple[int, int]) -> tuple[Field, Field]:
    """Return the bed and the depth (m) after the earthquake in arrays of a shape, borders included.

    The arrays may be larger than the block; what is beyond it is dry.
    """
    bed, depth = np.full(shape, WALL), np.zeros(shape)
    used = tuple(slice(0, n + 2 * GHOST) for n in block.shape)
    bed[used] = area.bed(block)
    depth[used] = depth_after_earthquake(bed[used], area.lift(block))
    return bed, depth


def report(
    area: Map,
    n: int,
    steps: int,
    dt: float,
    seconds: float,
    volume: int,
    drift: float,
    highest: float,
    result: tuple[Field, Field],
) -> None:
    cubic_km = volume / 2**56 * area.dx * area.dy / 1e9
    digest = hashlib.sha256(b"".join(field.tobytes() for field in result)).hexdigest()
    size = area.size
    print(f"{size} x {size} cells, {steps} steps of {dt:.2f} s on {n} PEs in {seconds:.1f} s")
    print(f"water: {cubic_km:.6f} km^3, changed by {drift:.1e}; highest wave: {highest:.6f} m")
    print(f"sha256 of the result: {digest}", flush=True)


def draw(
    output: Path,
    area: Map,
    seconds: float,
    stride: int,
    frames: list[tuple[float, Field]],
    peak: Field,
) -> None:
    from tsunami_pictures import draw_film, draw_peak  # costly, and only PE 0 needs it

    output.mkdir(parents=True, exist_ok=True)
    bed = area.bed(Block(0, area.size, 0, area.size))[GHOST:-GHOST, GHOST:-GHOST]
    note = f"first {seconds / 60:.1f} minutes"
    draw_peak(output / "highest-wave.png", bed, area.width, area.height, peak, note)
    thinned = bed[::stride, ::stride]
    draw_film(output / "waves.gif", thinned, area.width, area.height, frames)
    print(f"pictures: {output / 'highest-wave.png'}, {output / 'waves.gif'}", flush=True)


def check(area: Map, steps: int, result: tuple[Field, Field]) -> bool:
    """Compare the result on PE 0 with that of one PE and of the independent solver (collective)."""
    me, n = pg.my_pe(), pg.n_pes()
    truth = pg.zeros((2, area.size, area.size))
    if me == n - 1:  # meanwhile PE 0 does the other one
        pg.put(truth, np.stack(tsunami_reference.solve(area.size, steps)), 0)
    good = True
    if me == 0:
        alone = one_pe(area, steps)
        same = all(a.tobytes() == b.tobytes() for a, b in zip(result, alone, strict=True))
        verdict = "equal, bit for bit, to" if same else "DIFFERS from"
        print(f"check: {verdict} the result of one PE")
        good = same
    pg.barrier_all()
    if me == 0:
        error = max(float(np.abs(a - b).max()) for a, b in zip(result, truth.local, strict=True))
        close = error <= TOLERANCE
        print(
            f"check: {'agrees with' if close else 'DIFFERS from'} the independent solver, "
            f"by at most {error:.1e} m (limit {TOLERANCE:.0e} m)",
            flush=True,
        )
        good = good and close
    return bool(pg.broadcast(int(good), root=0))


def one_pe(area: Map, steps: int) -> tuple[Field, Field]:
    """Return the final depth and the highest rise (m) that one PE computes for the whole map."""
    block = Block(0, area.size, 0, area.size)
    bed, depth = initial(area, block, Grid(area.size, 1).padded)
    states = np.zeros((2, 3, *bed.shape))
    states[0, DEPTH] = depth
    water = ShallowWater(bed, block.shape, area.dx, area.dy, float(depth.max()))
    for step in range(1, steps + 1):
        water.advance(states[(step - 1) % 2], states[step % 2])
    return np.ascontiguousarray(states[steps % 2, DEPTH][water.inner]), water.peak


def main() -> int:
    options = parse()
    # Drawing and checking take a while on PE 0: the others may wait for it without a word.
    with pg.init(wait_timeout=3600, wait_report=600):
        return 0 if simulate(options) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=1024, help="cells per side (default: 1024)")
    parser.add_argument("--steps", type=int, default=500, help="time steps (default: 500)")
    parser.add_argument("--output", type=Path, help="folder for the pictures (default: none)")
    parser.add_argument("--frames", type=int, default=50, help="pictures in the GIF (default: 50)")
    parser.add_argument("--check", action="store_true", help="compare with two other solutions")
    parser.add_argument(
        "--kernel", action="store_true", help="take the time steps in one kernel (needs a compiler)"
    )
    options = parser.parse_args()
    for name, least in (("size", 2 * GHOST), ("steps", 1), ("frames", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} must be at least {least}")
    return options


if __name__ == "__main__":
    sys.exit(main())
