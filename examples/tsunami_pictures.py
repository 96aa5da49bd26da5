# SPDX-License-Identifier: Apache-2.0
"""The pictures of ``tsunami.py``: the highest water as a PNG, the waves on their way as a GIF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LightSource, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

Field = NDArray[np.floating[Any]]
Pixels = NDArray[np.uint8]

LAND = LinearSegmentedColormap.from_list(
    "land", ["#6f8f5f", "#8fa071", "#b7ac85", "#a58f74", "#8d7a6b", "#d8d4d0", "#ffffff"]
)
HEIGHTS = LinearSegmentedColormap.from_list(
    "heights", ["#dcebf0", "#f3d9a2", "#f2a25c", "#dd5a41", "#a01a50", "#4a0a4e"]
)
WAVES = LinearSegmentedColormap.from_list(
    "waves",
    ["#041c4a", "#0b4a8f", "#3f8fc4", "#a9d3e4", "#dcebf0", "#f6cf9c", "#ec8a4b", "#c9372c", "#67001f"],
)
FAINT = 0.02  # m: a film of water on land below this is not drawn
N_WAVES, N_GREYS, N_LAND = 160, 24, 72  # the 256 colours of a GIF


def draw_peak(path: Path, bed: Field, width: float, height: float, peak: Field, note: str) -> None:
    """Draw the highest rise (m) each cell has seen as a PNG; the map's width and height are in m."""
    scene = Scene(bed, width, height, HEIGHTS, 0.0, _scale(peak, 0.98))
    wave = scene.colours(scene.norm(peak))[..., :3] * (0.88 + 0.16 * scene.shade)
    wet = (bed < 0) | (peak > FAINT)
    scene.image.set_data(np.clip(np.where(wet[..., np.newaxis], wave, scene.land), 0.0, 1.0))
    scene.title.set_text(f"Highest water of the tsunami in the Salish Sea, {note}")
    scene.figure.savefig(path)


def draw_film(
    path: Path, bed: Field, width: float, height: float, frames: Sequence[tuple[float, Field]]
) -> None:
    """Draw the rise of the water (m) at several times (s) as an animated GIF.

    matplotlib draws the scene once.  A frame replaces the colours of the water in it, as numbers
    of the GIF's palette: a few milliseconds, where drawing everything anew takes a tenth of a second.
    """
    limit = max(_scale(np.abs(rise), 0.9) for _, rise in frames)
    scene = Scene(bed, width, height, WAVES, -limit, limit)
    scene.image.set_data(np.where(bed[..., np.newaxis] < 0, WAVES(0.5)[:3], scene.land))
    scene.title.set_animated(True)
    background = scene.render()
    empty = scene.canvas.copy_from_bbox(scene.figure.bbox)

    palette = Image.new("P", (1, 1))
    palette.putpalette(_palette(scene, background).tobytes())
    still = Image.fromarray(background).quantize(palette=palette, dither=Image.Dither.NONE)
    indexed = np.array(still)
    indexed[(background == 255).all(axis=2)] = N_WAVES + N_GREYS - 1  # the page is exactly white
    rows, columns = scene.place()
    cell_rows = _nearest(rows, bed.shape[0])[::-1]  # pixels count from the top
    cell_columns = _nearest(columns, bed.shape[1])
    headline = slice(0, rows.start - 2)

    images = []
    for seconds, rise in frames:
        picture = indexed.copy()
        wave = np.rint(np.clip(scene.norm(rise), 0.0, 1.0) * (N_WAVES - 1)).astype(np.uint8)
        wet = (bed < 0) | (rise > FAINT)
        chosen = np.ix_(cell_rows, cell_columns)
        np.copyto(picture[rows, columns], wave[chosen], where=wet[chosen])

        scene.canvas.restore_region(empty)
        scene.title.set_text(f"Tsunami in the Salish Sea, {seconds / 60:.1f} minutes after the earthquake")
        scene.figure.draw_artist(scene.title)
        grey = scene.pixels()[headline].mean(axis=2) / 255.0
        picture[headline] = N_WAVES + np.rint(grey * (N_GREYS - 1)).astype(np.uint8)

        image = Image.fromarray(picture)
        image.putpalette(palette.getpalette() or [])
        images.append(image)
    pause = [100] * (len(images) - 1) + [1500]  # ms
    images[0].save(path, save_all=True, append_images=images[1:], duration=pause, loop=0)


class Scene:
    """A map with shaded land, axes in km and a colour bar in m, ready for water to be painted."""

    def __init__(
        self, bed: Field, width: float, height: float, colours: Colormap, low: float, high: float
    ) -> None:
        self.colours, self.norm = colours, Normalize(low, high, clip=True)
        light = LightSource(azdeg=315, altdeg=40)
        shade = light.hillshade(bed, vert_exag=4, dx=width / bed.shape[1], dy=-height / bed.shape[0])
        self.shade = shade[..., np.newaxis]
        land = LAND(np.clip(bed / 2000.0, 0.0, 1.0))[..., :3] * (0.45 + 0.75 * self.shade)
        land[_shore(bed)] *= 0.55
        self.land = np.clip(land, 0.0, 1.0)

        self.figure = Figure(figsize=(8.0, 6.0), dpi=100, layout="constrained")
        self.canvas = FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_subplot()
        extent = (0.0, width / 1000, 0.0, height / 1000)
        self.image = self.axes.imshow(self.land, origin="lower", extent=extent)
        self.axes.set_xlabel("east (km)")
        self.axes.set_ylabel("north (km)")
        self.title = self.axes.set_title(" ", fontsize=11)
        bar = self.figure.colorbar(
            ScalarMappable(self.norm, colours),
            ax=self.axes,
            shrink=0.75,
            pad=0.02,
            extend="both" if low < 0 else "max",
        )
        bar.set_label("height above still water (m)")

    def render(self) -> Pixels:
        """Draw everything but animated artists and return the pixels, ``(rows, columns, 3)``."""
        self.canvas.draw()
        return self.pixels()

    def pixels(self) -> Pixels:
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()

    def place(self) -> tuple[slice, slice]:
        """Return the rows and columns of pixels inside the axes' frame."""
        box = self.axes.get_window_extent()
        total = int(self.figure.bbox.height)
        top, bottom = total - round(box.y1) + 1, total - round(box.y0) - 1
        return slice(top, bottom), slice(round(box.x0) + 1, round(box.x1) - 1)


def _shore(bed: Field) -> NDArray[np.bool_]:
    """Return which cells of land touch the sea."""
    sea = np.pad(bed < 0, 1)
    touches = sea[:-2, 1:-1] | sea[2:, 1:-1] | sea[1:-1, :-2] | sea[1:-1, 2:]
    return touches & (bed >= 0)


def _scale(rise: Field, quantile: float) -> float:
    """Return a round height (m) that all but the highest waves stay below."""
    visible = rise[rise > 5 * FAINT]
    if visible.size == 0:
        return 1.0
    return max(0.5, float(np.ceil(2 * np.quantile(visible, quantile)) / 2))


def _nearest(pixels: slice, cells: int) -> NDArray[np.int64]:
    """Return the cell that each pixel shows."""
    n = pixels.stop - pixels.start
    return ((np.arange(n) + 0.5) * (cells / n)).astype(np.int64)


def _palette(scene: Scene, background: Pixels) -> Pixels:
    """Return 256 colours: those of the waves, greys for text, and those of the land."""
    waves = scene.colours(np.linspace(0.0, 1.0, N_WAVES))[:, :3]
    greys = np.repeat(np.linspace(0.0, 1.0, N_GREYS)[:, np.newaxis], 3, axis=1)
    land = Image.fromarray(background[scene.place()]).quantize(N_LAND, dither=Image.Dither.NONE)
    colours = np.array(land.getpalette(), dtype=np.uint8).reshape(-1, 3)[:N_LAND]
    colours = np.concatenate([colours, np.zeros((N_LAND - len(colours), 3), np.uint8)])
    mixed = np.rint(np.concatenate([waves, greys]) * 255).astype(np.uint8)
    return np.concatenate([mixed, colours])
