# SPDX-License-Identifier: Apache-2.0
"""The tsunami's numerics, without any communication."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from programs import EXAMPLES

sys.path.insert(0, str(EXAMPLES))

import itertools

import tsunami_scheme as scheme
from tsunami_scheme import DEPTH, GHOST, Block, Field, Map, ShallowWater, U, V


def basin(depth: Field, bed: Field, dx: float, dy: float) -> tuple[ShallowWater, Field]:
    """Return a walled basin and its two states."""
    walled = np.pad(bed, GHOST, constant_values=scheme.WALL)
    water = ShallowWater(walled, bed.shape, dx, dy, float(depth.max()))
    states = np.zeros((2, 3, *walled.shape))
    states[0, DEPTH][water.inner] = depth
    return water, states


def run(water: ShallowWater, states: Field, steps: int) -> Field:
    for step in range(steps):
        water.advance(states[step % 2], states[(step + 1) % 2])
    return states[steps % 2]


def test_still_water_stays_still() -> None:
    area = Map.load(50)
    bed = area.bed(Block(0, 50, 0, 50))[GHOST:-GHOST, GHOST:-GHOST]
    water, states = basin(scheme.still_depth(bed), bed, area.dx, area.dy)
    final = run(water, states, 20)
    np.testing.assert_array_equal(final, states[0])
    assert not final[[U, V]].any()


@pytest.mark.parametrize("along_y", [False, True])
def test_a_seiche_has_the_period_of_theory(along_y: bool) -> None:
    n, dx, depth = 100, 100.0, 50.0
    wave = 0.001 * np.cos(np.pi * (np.arange(n) + 0.5) / n)
    shape = (n, 3) if along_y else (3, n)
    start = np.broadcast_to(depth + (wave[:, None] if along_y else wave), shape).copy()
    water, states = basin(start, np.full(shape, -depth), dx, dx)
    period = 2 * n * dx / np.sqrt(scheme.GRAVITY * depth)
    half = round(period / 2 / water.dt)
    rise = water.rise(run(water, states, half))
    middle = rise[:, 1] if along_y else rise[1]
    np.testing.assert_allclose(middle, -wave, atol=2e-5)


def test_a_dam_break_floods_dry_land_and_loses_nothing() -> None:
    bed = np.linspace(-1.0, 3.0, 60) + np.zeros((20, 60))
    depth = np.zeros((20, 60))
    depth[5:15, :15] = 2.5 - bed[5:15, :15]
    water, states = basin(depth, bed, 10.0, 12.0)
    final = run(water, states, 400)[DEPTH]
    assert final.min() >= 0.0
    assert water.peak[:, 25:].max() > 0.1
    np.testing.assert_allclose(final.sum(), depth.sum(), rtol=1e-14)


@pytest.mark.parametrize("tile", [1, 500, 100_000])
@pytest.mark.parametrize("cuts", [(1, 1), (2, 2), (3, 2), (1, 5), (7, 1)])
def test_neither_blocks_nor_tiles_change_a_bit(
    cuts: tuple[int, int], tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheme, "TILE_CELLS", tile)
    size, steps = 31, 12
    area = Map.load(size)
    whole = Block(0, size, 0, size)
    bed = area.bed(whole)
    depth = scheme.depth_after_earthquake(bed, area.lift(whole))
    ys, xs = (np.linspace(0, size, n + 1).astype(int).tolist() for n in cuts)
    blocks = [Block(y0, y1, x0, x1) for y0, y1 in itertools.pairwise(ys) for x0, x1 in itertools.pairwise(xs)]
    waters = [ShallowWater(area.bed(b), b.shape, area.dx, area.dy, float(depth.max())) for b in blocks]

    def advance(state: Field, blocks_and_waters: list[tuple[Block, ShallowWater]]) -> Field:
        result = np.zeros_like(state)
        for b, water in blocks_and_waters:
            old = state[:, b.y0 : b.y1 + 2 * GHOST, b.x0 : b.x1 + 2 * GHOST].copy()
            new = np.full_like(old, np.nan)
            water.advance(old, new)
            place = slice(b.y0 + GHOST, b.y1 + GHOST), slice(b.x0 + GHOST, b.x1 + GHOST)
            result[:, place[0], place[1]] = new[:, water.inner[0], water.inner[1]]
        return result

    one = ShallowWater(bed, whole.shape, area.dx, area.dy, float(depth.max()))
    expected = np.zeros((3, *bed.shape))
    expected[DEPTH] = depth
    pieces = expected.copy()
    for _ in range(steps):
        expected = advance(expected, [(whole, one)])
        pieces = advance(pieces, list(zip(blocks, waters, strict=True)))
    assert pieces[DEPTH].tobytes() == expected[DEPTH].tobytes()
    np.testing.assert_array_equal(pieces, expected)
