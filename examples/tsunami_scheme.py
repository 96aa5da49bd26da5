# SPDX-License-Identifier: Apache-2.0
"""The numerics of ``tsunami.py``: terrain, earthquake and one time step of the shallow-water equations.

Nothing here communicates.  Everything is computed element by element, with additions,
multiplications, divisions and square roots in a fixed order, all of which IEEE 754 rounds the same
way everywhere: a cell's next value depends on its neighbours' values and on nothing else, so however
the map is cut into blocks, the result is the same to the last bit.

The scheme is staggered: depths live in the middle of the cells, velocities ``u`` on their west faces
and ``v`` on their south faces.  A step first moves the velocities, then the water with the new
velocities, which is second-order accurate and undamped for small waves.  Flow through a face takes
the depth of the side it comes from, above the higher of the two beds: what leaves one cell enters
the next, no cell runs below zero, land floods and dries, and still water stays still.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import matplotlib.cbook
import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float64]

GHOST = 2  # width of the border of neighbours' cells that a step reads
DEPTH, U, V = 0, 1, 2  # the planes of a state, shape (3, rows + 2 * GHOST, columns + 2 * GHOST)

GRAVITY = 9.81  # m/s^2
FRICTION = 0.0025  # of the bottom, dimensionless
THIN = 0.01  # m: water shallower than this does not move
COURANT = 0.8  # of the longest stable time step
WALL = 10_000.0  # m: height of the land around the map
TILE_CELLS = 16384  # cells advanced at a time: their intermediate values fit the cache


@dataclass(frozen=True)
class Block:
    """Part of the map: rows from the south, columns from the west."""

    y0: int
    y1: int
    x0: int
    x1: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.y1 - self.y0, self.x1 - self.x0

    @property
    def window(self) -> tuple[slice, slice]:
        """Index this block in an array of the whole map."""
        return slice(self.y0, self.y1), slice(self.x0, self.x1)


@dataclass(frozen=True)
class Map:
    """The Salish Sea in ``size`` x ``size`` cells, from the survey that matplotlib ships."""

    size: int
    topo: Field  # metres above the sea, row 0 in the south
    width: float  # m, west to east
    height: float  # m, south to north

    @classmethod
    def load(cls, size: int) -> Map:
        with matplotlib.cbook.get_sample_data("topobathy.npz") as data:
            topo = data["topo"].astype(np.float64)
            lon, lat = data["longitude"].astype(np.float64), data["latitude"].astype(np.float64)
        metres_per_degree = 111_320.0
        shrink = math.cos(math.radians(float(lat.mean())))
        return cls(
            size,
            topo,
            width=metres_per_degree * shrink * float(lon[-1] - lon[0]),
            height=metres_per_degree * float(lat[-1] - lat[0]),
        )

    @property
    def dx(self) -> float:
        return self.width / self.size

    @property
    def dy(self) -> float:
        return self.height / self.size

    def bed(self, block: Block) -> Field:
        """Interpolate the bed (m, up) of a block linearly, with a wall where the map ends."""
        bed = np.full((block.shape[0] + 2 * GHOST, block.shape[1] + 2 * GHOST), WALL)
        rows = np.arange(max(block.y0 - GHOST, 0), min(block.y1 + GHOST, self.size))
        columns = np.arange(max(block.x0 - GHOST, 0), min(block.x1 + GHOST, self.size))
        j, fy = _split((rows + 0.5) * ((self.topo.shape[0] - 1) / self.size))
        i, fx = _split((columns + 0.5) * ((self.topo.shape[1] - 1) / self.size))
        strips = self.topo[j] * (1 - fy)[:, None] + self.topo[j + 1] * fy[:, None]
        inside = strips[:, i] * (1 - fx) + strips[:, i + 1] * fx
        top, left = rows[0] - block.y0 + GHOST, columns[0] - block.x0 + GHOST
        bed[top : top + rows.size, left : left + columns.size] = inside
        return bed

    def lift(self, block: Block) -> Field:
        """Return how far the earthquake lifts the sea over a block and its border, in metres.

        Two faults give way: one along the continental slope in the south-west, whose landward side
        sinks, and one under the deep trough of the Strait of Georgia.
        """
        y = ((np.arange(block.y0 - GHOST, block.y1 + GHOST) + 0.5) * (self.dy / 1000))[:, None]
        x = (np.arange(block.x0 - GHOST, block.x1 + GHOST) + 0.5) * (self.dx / 1000)
        lift = _ridge(x, y, centre=(16.0, 30.0), half_length=75.0, half_width=12.0, rise=5.0)
        lift += _ridge(x, y, centre=(32.0, 42.0), half_length=75.0, half_width=12.0, rise=-2.0)
        lift += _ridge(x, y, centre=(165.0, 135.0), half_length=45.0, half_width=9.0, rise=3.0)
        return lift


def _split(position: Field) -> tuple[NDArray[np.int64], Field]:
    """Split positions into whole and fractional parts."""
    whole = np.floor(position)
    return whole.astype(np.int64), position - whole


def _ridge(
    x: Field,
    y: Field,
    *,
    centre: tuple[float, float],
    half_length: float,
    half_width: float,
    rise: float,
) -> Field:
    """Return a smooth ridge along a fault that strikes north-west; lengths in km, rise in m."""
    along = ((y - centre[1]) * 0.8 - (x - centre[0]) * 0.6) / half_length
    across = ((y - centre[1]) * 0.6 + (x - centre[0]) * 0.8) / half_width
    # Polynomials and not exponentials: those may differ in the last bit between two code paths.
    profile = np.maximum(1.0 - along * along, 0.0) * np.maximum(1.0 - across * across, 0.0)
    profile *= profile
    profile *= rise
    return profile


def still_depth(bed: Field) -> Field:
    """Return the depth (m) of the sea at rest."""
    return np.maximum(-bed, 0.0) + 0.0  # never -0.0


def depth_after_earthquake(bed: Field, lift: Field) -> Field:
    """Return the depth (m) when the sea has been lifted; land stays dry."""
    still = still_depth(bed)
    return np.where(still > 0.0, np.maximum(still + lift, 0.0), 0.0)


class ShallowWater:
    """The water over one block: ``advance`` moves it by one time step.

    Parameters
    ----------
    bed
        Height of the bed in metres, shape ``(rows + 2 * GHOST, columns + 2 * GHOST)``; further
        columns at the end are allowed and have no effect.
    shape
        The block's rows and columns.
    dx, dy
        Size of a cell in metres.
    deepest
        Greatest depth of the whole map in metres: the fastest wave sets the time step.
    """

    def __init__(self, bed: Field, shape: tuple[int, int], dx: float, dy: float, deepest: float) -> None:
        self.bed = np.ascontiguousarray(bed)
        self.rows, self.columns = shape
        self.inner = (slice(GHOST, GHOST + self.rows), slice(GHOST, GHOST + self.columns))
        self.still = still_depth(bed[self.inner])
        self.peak = np.zeros(shape)  # the highest rise above still water so far, in m
        self.dt = COURANT / math.sqrt(GRAVITY * deepest * (1 / dx**2 + 1 / dy**2))
        self.per_dx, self.per_dy = self.dt / dx, self.dt / dy
        # A cell has four faces: if none takes more than a quarter of its water, none is overdrawn.
        self.top_speed = 0.25 * min(dx, dy) / self.dt

        self._tile = max(1, min(self.rows, TILE_CELLS // bed.shape[1]))
        self._scratch = np.zeros((12, (self._tile + 2 * GHOST) * bed.shape[1]))

    def rise(self, state: Field) -> Field:
        """Return the water's height above its level at rest (on land: its depth), in metres."""
        return state[DEPTH][self.inner] - self.still

    def advance(self, old: Field, new: Field) -> None:
        """Compute the inner cells of ``new`` from ``old`` and its border."""
        # A few rows at a time, so that everything between two states stays in the cache.
        for start in range(0, self.rows, self._tile):
            self._advance_rows(old, new, start, min(start + self._tile, self.rows))

    def _advance_rows(self, old: Field, new: Field, start: int, stop: int) -> None:
        # Rows follow each other in memory. Taken as one long vector, the neighbour to the east is
        # one element further on, the one to the north a whole row: NumPy's fastest loops. What that
        # computes in the border's columns means nothing, and is not copied to the new state.
        rows, row = stop - start, self.bed.shape[1]
        bed = self.bed[start : stop + 2 * GHOST].reshape(-1)
        depth, u, v = old[:, start : stop + 2 * GHOST].reshape(3, -1)
        surface = np.add(bed, depth, out=self._scratch[0, : bed.size])

        # All near faces of the cells, and the far faces of the last row and column.
        first = GHOST * row + GHOST
        faces = slice(first, first + rows * row + self.columns + 1)
        new_u, flow_x, new_v, flow_y = self._scratch[1:5, : faces.stop - faces.start]
        self._flow(new_u, flow_x, faces, 1, row, surface, bed, u, v)
        self._flow(new_v, flow_y, faces, row, 1, surface, bed, v, u)

        # What comes in through the near faces and does not leave through the far ones stays.
        n = flow_x.size - row
        gain, gain_y = self._scratch[5:7, :n]
        np.subtract(flow_x[:n], flow_x[1 : n + 1], out=gain)
        gain *= self.per_dx
        np.subtract(flow_y[:n], flow_y[row : n + row], out=gain_y)
        gain_y *= self.per_dy
        gain += gain_y
        gain += depth[first : first + n]

        def cells(values: Field) -> Field:
            return values[: rows * row].reshape(rows, row)[:, : self.columns]

        inside = (slice(GHOST + start, GHOST + stop), self.inner[1])
        new[DEPTH][inside] = cells(self._scratch[5])
        new[U][inside] = cells(new_u)
        new[V][inside] = cells(new_v)
        peak = self.peak[start:stop]
        np.maximum(peak, new[DEPTH][inside] - self.still[start:stop], out=peak)

    def _flow(
        self,
        new: Field,
        flow: Field,
        faces: slice,
        along: int,
        across: int,
        surface: Field,
        bed: Field,
        speed: Field,
        side_speed: Field,
    ) -> None:
        """Compute the new speed through faces and the flow (m^2/s) it carries.

        ``along`` and ``across`` are the distances in memory to the next cell along the flow and
        across it: this is written for west faces and serves the south faces as well.
        """
        depth_behind, depth_here, depth, drift, part, spare = self._scratch[6:12, : new.size]
        per_along, per_across = self.per_dx, self.per_dy
        if along > across:
            per_along, per_across = per_across, per_along

        def at(values: Field, offset: int = 0) -> Field:
            return values[faces.start + offset : faces.stop + offset]

        # How deep the water of either side stands above the higher bed.
        sill = np.maximum(at(bed, -along), at(bed), out=part)
        np.subtract(at(surface, -along), sill, out=depth_behind)
        np.maximum(depth_behind, 0.0, out=depth_behind)
        np.subtract(at(surface), sill, out=depth_here)
        np.maximum(depth_here, 0.0, out=depth_here)
        np.maximum(depth_behind, depth_here, out=depth)

        # The speed across is known on the four faces around.
        np.add(at(side_speed, -along), at(side_speed), out=drift)
        drift += at(side_speed, across - along)
        drift += at(side_speed, across)
        drift *= 0.25

        # The surface's slope pulls, and the current carries its own momentum with it.
        np.subtract(at(surface, -along), at(surface), out=new)
        new *= GRAVITY * per_along
        now = at(speed)
        for wind, step, scale in ((now, along, per_along), (drift, across, per_across)):
            np.subtract(now, at(speed, -step), out=part)
            np.subtract(at(speed, step), now, out=spare)
            _upwind(wind, part, spare, out=flow)
            flow *= scale
            new -= flow
        new += now

        # Friction acts on the new speed, which keeps thin layers stable.
        drag = np.multiply(now, now, out=part)
        drift *= drift
        drag += drift
        np.sqrt(drag, out=drag)
        drag *= FRICTION * self.dt
        np.maximum(depth, THIN, out=spare)
        drag /= spare
        drag += 1.0
        new /= drag
        np.copyto(new, 0.0, where=depth <= THIN)
        np.minimum(new, self.top_speed, out=new)
        np.maximum(new, -self.top_speed, out=new)
        _upwind(new, depth_behind, depth_here, out=flow)


def _upwind(speed: Field, behind: Field, ahead: Field, out: Field) -> None:
    """Compute ``speed * behind`` where that comes from behind, else ``speed * ahead``.

    Overwrites ``behind`` and ``ahead``.
    """
    np.maximum(speed, 0.0, out=out)
    behind *= out
    np.minimum(speed, 0.0, out=out)
    ahead *= out
    np.add(behind, ahead, out=out)
