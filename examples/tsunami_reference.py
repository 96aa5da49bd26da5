# SPDX-License-Identifier: Apache-2.0
"""The tsunami of ``tsunami.py`` once more, in the plainest NumPy there is.

This solver shares no code with ``tsunami.py``: it reads the map itself, it treats the whole region
as one array, it allocates freely and it writes each formula down as one would on paper.  It exists
to be obviously right, not fast.  ``tsunami.py --check`` compares the two.

The equations (depth ``h``, bed ``b``, surface ``s = b + h``, velocity ``u, v``)::

    dh/dt + d(hu)/dx + d(hv)/dy = 0
    du/dt + u du/dx + v du/dy + g ds/dx + c |(u, v)| u / h = 0        (v likewise)

Depths live in the middle of the cells, ``u`` on their west and ``v`` on their south faces.
"""

from __future__ import annotations

import matplotlib.cbook
import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float64]

GRAVITY = 9.81  # m/s^2
FRICTION = 0.0025  # dimensionless
THIN = 0.01  # m: water shallower than this does not move


def solve(size: int, steps: int) -> tuple[Field, Field]:
    """Return the final depth and the highest rise over time, both ``(size, size)`` in metres."""
    lon, lat, bed = load(size)
    width = 111_320.0 * np.cos(np.radians(lat.mean())) * np.ptp(lon)
    height = 111_320.0 * np.ptp(lat)
    dx, dy = width / size, height / size

    x, y = np.meshgrid((np.arange(size) + 0.5) * dx / 1000, (np.arange(size) + 0.5) * dy / 1000)
    still = np.where(bed < 0, -bed, 0.0)
    h = np.where(bed < 0, np.maximum(still + uplift(x, y), 0.0), 0.0)
    dt = 0.8 / np.sqrt(GRAVITY * h.max() * (1 / dx**2 + 1 / dy**2))
    limit = 0.25 * min(dx, dy) / dt

    # Two rings of dry land too high to climb enclose the region: they are its walls.
    bed = np.pad(bed, 2, constant_values=10_000.0)
    h = np.pad(h, 2)
    u, v = np.zeros_like(h), np.zeros_like(h)
    highest = np.zeros_like(still)
    for _ in range(steps):
        surface = bed + h
        u_new, flow_x = momentum(surface, bed, u, v, dx, dy, dt, limit)
        # South faces seen from a transposed map are west faces.
        v_new, flow_y = (f.T for f in momentum(surface.T, bed.T, v.T, u.T, dy, dx, dt, limit))
        u, v = u_new, v_new
        h = h - dt * ((east(flow_x) - flow_x) / dx + (north(flow_y) - flow_y) / dy)
        highest = np.maximum(highest, h[2:-2, 2:-2] - still)
    return h[2:-2, 2:-2], highest


def load(size: int) -> tuple[Field, Field, Field]:
    """Return longitudes, latitudes (degrees) and the bed (m, up) in ``size`` x ``size`` cells."""
    with matplotlib.cbook.get_sample_data("topobathy.npz") as data:
        lon, lat, topo = (data[k].astype(float) for k in ("longitude", "latitude", "topo"))
    rows, columns = topo.shape
    at_x = (np.arange(size) + 0.5) / size * (columns - 1)
    at_y = (np.arange(size) + 0.5) / size * (rows - 1)
    wide = np.array([np.interp(at_x, np.arange(columns), row) for row in topo])
    bed = np.array([np.interp(at_y, np.arange(rows), column) for column in wide.T]).T
    return lon, lat, bed


def uplift(x: Field, y: Field) -> Field:
    """Return how far the two faults lift the sea at ``x, y`` (km), in metres."""
    slope = ridge(x, y, 16.0, 30.0, 75.0, 12.0, 5.0) + ridge(x, y, 32.0, 42.0, 75.0, 12.0, -2.0)
    strait = ridge(x, y, 165.0, 135.0, 45.0, 9.0, 3.0)
    return slope + strait


def ridge(
    x: Field, y: Field, x0: float, y0: float, half_length: float, half_width: float, rise: float
) -> Field:
    """Return a ridge that strikes north-west: its axis is (-0.6, 0.8)."""
    along = (-0.6 * (x - x0) + 0.8 * (y - y0)) / half_length
    across = (0.8 * (x - x0) + 0.6 * (y - y0)) / half_width
    return rise * np.maximum(1 - along**2, 0) ** 2 * np.maximum(1 - across**2, 0) ** 2


def momentum(
    surface: Field,
    bed: Field,
    u: Field,
    v: Field,
    dx: float,
    dy: float,
    dt: float,
    limit: float,
) -> tuple[Field, Field]:
    """Return the new velocity through west faces, and the flow (m^2/s) it carries."""
    sill = np.maximum(bed, west(bed))
    depth_west = np.maximum(west(surface) - sill, 0)
    depth_east = np.maximum(surface - sill, 0)
    depth = np.maximum(depth_west, depth_east)

    v_here = (v + west(v) + north(v) + west(north(v))) / 4
    du_dx = np.where(u > 0, u - west(u), east(u) - u) / dx
    du_dy = np.where(v_here > 0, u - south(u), north(u) - u) / dy
    slope = (surface - west(surface)) / dx
    pushed = u - dt * (GRAVITY * slope + u * du_dx + v_here * du_dy)
    drag = FRICTION * np.hypot(u, v_here) / np.maximum(depth, THIN)
    u_new = np.where(depth > THIN, np.clip(pushed / (1 + dt * drag), -limit, limit), 0.0)
    return u_new, u_new * np.where(u_new > 0, depth_west, depth_east)


# Neighbouring values. What wraps around comes from the two dry outer rings and is never used.
def west(a: Field) -> Field:
    return np.roll(a, 1, axis=1)


def east(a: Field) -> Field:
    return np.roll(a, -1, axis=1)


def south(a: Field) -> Field:
    return np.roll(a, 1, axis=0)


def north(a: Field) -> Field:
    return np.roll(a, -1, axis=0)
