"""Biopsies and microarrays laid out from real tissue on clean, tinted and dirty glass.

    python benchmarks/real_layouts.py [--quick] [--json FILE] [--data FOLDER] [--seed N] [--half a|b] [--png FOLDER]

Fields of one set and class (those that are mostly glass left out, and so are pieces that would be), quilted and mirrored where a piece is larger than a picture, are cut round or torn, 0.05 to
2 mm², and laid on a slide of 2 µm/px; what is between them is glass, with the light uneven, tinted, or dirty (dust, fibres,
bubbles, pen strokes, smears of stain). A piece counts as found when tissue covers half of it, and as represented when a
candidate patch does not only touch it. What is found where no tissue was laid is a false piece.

Settings are chosen on half ``a`` of the sets, and half ``b`` says how good they are.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from common import Row, options, report
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage
from tissue_slides import ArraySlide

from napari_fish.errors import NoTissue
from napari_fish.mosaic import Mosaic, make_mosaic
from napari_fish.mosaic.draw import draw_mosaic
from napari_fish.mosaic.masks.rings import draw
from napari_fish.mosaic.training.examples import FIELD_MPP
from napari_fish.slides.protocol import RGB

DATA = Path(__file__).parents[2] / "shared" / "data" / "tissue"
MPP = 2.0
"""µm per px of a layout: what mosaics are measured at."""
AREAS = (0.05, 0.08, 0.12, 0.2, 0.26, 0.4, 0.7, 1.0, 1.5, 2.0)
"""mm² of the pieces on a slide."""
GLASS = {
    "clean": (243, 243, 243),
    "tinted": None,
    "dirty": (240, 241, 239),
}
TINTS = ((240, 222, 238), (238, 236, 214), (214, 226, 236), (222, 222, 222), (250, 236, 226), (205, 210, 196))
HALF_A = ("brca", "brecahad", "crc_gallery", "crc_queries", "lc25000", "ocdc", "osteosarcoma")
"""Sets on which the settings that tell pen and dirt from tissue were chosen, seeds 1 and 2."""
LEAST_TISSUE = 0.75
"""Share of a piece that is not glass in the pictures it is made of."""
INKS = ((40, 60, 160), (20, 20, 25), (30, 120, 60), (170, 30, 40))


@dataclass
class Layout:
    """A slide and where tissue was laid: ``pieces`` is 0 for glass, 1, 2, … for the pieces, shape (rows, columns)."""

    rgb: RGB
    pieces: NDArray[np.int32]
    areas: list[float] = field(default_factory=list)


def sets(data: Path) -> dict[str, dict[str, list[Path]]]:
    """Return the images of each set by class; folders ``train`` and ``validation`` of one set are one set."""
    found: dict[str, dict[str, list[Path]]] = {}
    for path in sorted(
        p for p in data.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".tif", ".tiff")
    ):
        parts = [part for part in path.relative_to(data).parts if part not in ("train", "validation")]
        kind = parts[1] if len(parts) > 2 else ""
        found.setdefault(parts[0], {}).setdefault(kind, []).append(path)
    return found


def mpp_of(name: str, path: Path) -> float:
    """Return the µm per px of an image of a set."""
    if name == "oral":
        return 1.0 if "100x" in path.name else 0.25
    return FIELD_MPP.get(name, 0.5)


@cache
def transmitted(path: Path, mpp: float) -> NDArray[np.float32]:
    """Return the light that an image lets through at `MPP`, its own white as 1."""
    with Image.open(path) as file:
        size = (max(8, round(file.width * mpp / MPP)), max(8, round(file.height * mpp / MPP)))
        rgb = np.asarray(file.convert("RGB").resize(size, Image.Resampling.BOX), np.float32)
    white = np.clip(np.percentile(rgb.reshape(-1, 3), 99.5, axis=0), 200, 255)
    return np.minimum(rgb / white, 1.0).astype(np.float32)


def quilt(name: str, paths: list[Path], side: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return transmitted light, 0 to 1, of ``side`` px of tissue at `MPP`, images side by side and mirrored."""
    result = np.ones((side, side, 3), np.float32)
    y = 0
    while y < side:
        x = height = 0
        while x < side:
            path = paths[int(rng.integers(len(paths)))]
            rgb = transmitted(path, mpp_of(name, path))
            if np.mean(rgb.min(axis=2) < 0.9) < 0.5 and len(paths) > 1 and rng.random() < 0.99:
                continue  # a field that is mostly glass
            rgb = rgb[:: rng.choice((-1, 1)), :: rng.choice((-1, 1))]
            if height == 0:
                height = rgb.shape[0]
            rgb = np.pad(rgb, ((0, max(0, height - rgb.shape[0])), (0, 0), (0, 0)), mode="symmetric")[:height]
            part = result[y : y + height, x : x + rgb.shape[1]]
            part[:] = rgb[: part.shape[0], : part.shape[1]]
            x += rgb.shape[1]
        y += height
    return result


def fabric_of(
    name: str, paths: list[Path], shape: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return a quilt that is tissue in most of a shape: a lumen as large as the piece would be no piece of tissue."""
    for _ in range(20):
        fabric = quilt(name, paths, max(shape.shape), rng)[: shape.shape[0], : shape.shape[1]]
        if np.mean(ndimage.uniform_filter(fabric.min(axis=2), 15)[shape] < 0.92) >= LEAST_TISSUE:
            break
    return fabric


def shape_of(area: float, torn: bool, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a disc, or a torn piece, of an area in mm²."""
    pixels = area * 1e6 / MPP**2
    side = int(2.2 * math.sqrt(pixels)) + 8
    y, x = np.mgrid[:side, :side] - side / 2
    if torn:
        stretch = rng.uniform(1.0, 2.2)
        rough = ndimage.gaussian_filter(rng.standard_normal((side, side)), side / 14)
        radius = (
            np.hypot(x * math.sqrt(stretch), y / math.sqrt(stretch)) / side
            + 0.35 * rough / rough.std() * 0.15
        )
    else:
        radius = np.hypot(x, y) / side
    limit = np.partition(radius.ravel(), int(pixels))[int(pixels)]
    labels, _ = ndimage.label(radius < limit)
    largest = labels == 1 + int(np.argmax(np.bincount(labels.ravel())[1:]))
    rows, columns = ndimage.find_objects(largest.astype(np.int8))[0]
    return np.pad(ndimage.binary_fill_holes(largest[rows, columns]), 2)


def glass(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return bare glass of a kind, shape (rows, columns, 3)."""
    colour = GLASS[kind] or TINTS[int(rng.integers(len(TINTS)))]
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    cy, cx = rng.uniform(0.3, 0.7, 2) * shape
    falling = ((y - cy) / shape[0]) ** 2 + ((x - cx) / shape[1]) ** 2
    strength = rng.uniform(0, 0.25) if kind == "tinted" else rng.uniform(0, 0.06)
    light = np.asarray(colour, np.float32) * (1 - strength * falling)[..., None]
    return np.asarray(light, np.float32)


def dirt(light: NDArray[np.float32], rng: np.random.Generator, taken: NDArray[np.bool_]) -> None:
    """Put dust, fibres, bubbles, pen strokes and a smear on glass, off the tissue."""
    rows, columns = light.shape[:2]
    layer = Image.new("L", (columns, rows))
    pen = ImageDraw.Draw(layer)
    for _ in range(int(rng.integers(20, 60))):
        r = rng.uniform(5, 45) / MPP
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
        pen.ellipse((x - r, y - r * rng.uniform(0.4, 1), x + r, y + r), fill=int(rng.uniform(60, 230)))
    for _ in range(6):
        points = rng.uniform(0, 1, 2) * (columns, rows) + np.cumsum(rng.normal(0, 25, (30, 2)), axis=0)
        pen.line(
            [tuple(p) for p in points.tolist()], fill=int(rng.uniform(80, 220)), width=int(rng.integers(2, 9))
        )
    for _ in range(4):
        r = rng.uniform(150, 900) / MPP
        x, y = rng.uniform(0, columns), rng.uniform(0, rows)
        pen.ellipse(
            (x - r, y - r, x + r, y + r), outline=int(rng.uniform(80, 200)), width=int(rng.integers(3, 10))
        )
    cover = ndimage.gaussian_filter(np.asarray(layer, np.float32) / 255, 1.0)
    cover[taken] = 0
    light *= 1 - 0.85 * cover[..., None]
    for _ in range(3):
        strokes = Image.new("L", (columns, rows))
        points = rng.uniform(0.1, 0.9, 2) * (columns, rows) + np.cumsum(rng.normal(0, 90, (8, 2)), axis=0)
        ImageDraw.Draw(strokes).line(
            [tuple(p) for p in points.tolist()],
            fill=255,
            width=int(rng.uniform(60, 400) / MPP),
            joint="curve",
        )
        ink = ndimage.gaussian_filter(np.asarray(strokes, np.float32) / 255, 2.0)
        ink *= np.clip(rng.uniform(0.5, 1) + 0.08 * _streaks((rows, columns), rng), 0, 1)
        ink[ndimage.binary_dilation(taken, iterations=20)] = 0
        colour = np.asarray(INKS[int(rng.integers(len(INKS)))], np.float32) / 255
        light *= 1 - ink[..., None] * (1 - colour)
    y, x = np.mgrid[:rows, :columns]
    cy, cx = rng.uniform(0, 1, 2) * (rows, columns)
    smear = 0.12 * np.exp(-(((y - cy) / 500) ** 2) - ((x - cx) / 400) ** 2)
    light *= 1 - smear[..., None] * np.asarray((0.1, 1.0, 0.4), np.float32)


def _streaks(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32]:
    rough = ndimage.gaussian_filter(rng.standard_normal(shape).astype(np.float32), (2, 25))
    return np.asarray(rough / rough.std(), np.float32)


def lay_out(name: str, paths: list[Path], kind: str, torn: bool, rng: np.random.Generator) -> Layout:
    """Lay pieces of tissue out in rows on glass of a kind."""
    shapes = [shape_of(area, torn, rng) for area in rng.permutation(AREAS)]
    width = 2600
    shapes.sort(key=len)
    places, x, y, tallest = [], 60, 60, 0
    for one in shapes:
        if x + one.shape[1] + 60 > width:
            x, y, tallest = 60, y + tallest + 60, 0
        places.append((y, x))
        x += one.shape[1] + 60
        tallest = max(tallest, one.shape[0])
    height = y + tallest + 60
    pieces = np.zeros((height, width), np.int32)
    tissue = np.ones((height, width, 3), np.float32)
    for number, (one, (top, left)) in enumerate(zip(shapes, places, strict=True), start=1):
        where = (slice(top, top + one.shape[0]), slice(left, left + one.shape[1]))
        soft = ndimage.gaussian_filter(one.astype(np.float32), 0.7)[..., None]
        fabric = fabric_of(name, paths, one, rng)
        tissue[where] = 1 - soft * (1 - fabric)
        pieces[where][one] = number
    light = glass(kind, (height, width), rng)
    if kind == "dirty":
        dirt(light, rng, pieces > 0)
    noisy = light * tissue + rng.normal(0, 1.0, light.shape)
    areas = [float(n) * MPP**2 / 1e6 for n in np.bincount(pieces.ravel())[1:]]
    return Layout(np.clip(noisy, 0, 255).astype(np.uint8), pieces, areas)


def score(layout: Layout, mosaic: Mosaic | None) -> tuple[list[bool], list[bool], int, int, float]:
    """Return which pieces were found and represented, pieces that are false, all pieces, and IoU of the tissue."""
    pieces, count = layout.pieces, len(layout.areas)
    if mosaic is None:
        return [False] * count, [False] * count, 0, 0, 0.0
    rings = [[c.outer, *c.holes] for c in mosaic.contours]
    found = draw(rings, mosaic.dimensions, 1.0)[: pieces.shape[0], : pieces.shape[1]]
    covered = ndimage.mean(found, pieces, range(1, count + 1))
    seen = np.zeros(pieces.shape, bool)
    for patch in mosaic.candidates:
        seen[max(0, patch.y) : patch.y + mosaic.patch_size, max(0, patch.x) : patch.x + mosaic.patch_size] = (
            True
        )
    represented = ndimage.mean(seen, pieces, range(1, count + 1))
    false = sum(
        float(
            (draw([ring], mosaic.dimensions, 1.0)[: pieces.shape[0], : pieces.shape[1]] & (pieces > 0)).sum()
        )
        < 0.2 * ring_area(ring)
        for ring in rings
    )
    truth = pieces > 0
    iou = float((found & truth).sum() / max(1, (found | truth).sum()))
    return [c >= 0.5 for c in covered], [c >= 0.5 for c in represented], int(false), len(rings), iou


def ring_area(rings: list[object]) -> float:
    """Return the area of a polygon without its holes, in px²."""
    total = 0.0
    for number, ring in enumerate(rings):
        x, y = np.asarray(ring, np.float64).T
        area = abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) / 2
        total += -area if number else area
    return total


def layouts(
    data: Path, seed: int, quick: bool, half: str | None = None
) -> Iterator[tuple[str, str, bool, Layout]]:
    """Yield layouts of every set, or of half of them, on every kind of glass, round and torn."""
    for name, classes in sets(data).items():
        if half is not None and (name in HALF_A) != (half == "a"):
            continue
        rng = np.random.default_rng([seed, *name.encode()])
        kinds = sorted(classes)
        for turn, kind in enumerate(GLASS):
            for torn in (False, True) if not quick else (bool(turn % 2),):
                chosen = classes[kinds[int(rng.integers(len(kinds)))]]
                yield name, kind, torn, lay_out(name, chosen, kind, torn, rng)


def main() -> None:
    def more(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, default=DATA, help="folder of SET/CLASS/IMAGE")
        parser.add_argument("--seed", type=int, default=1, help="of shapes, places and dirt")
        parser.add_argument("--half", choices=("a", "b"), help="of the sets; all by default")
        parser.add_argument("--png", type=Path, help="draw every layout into this folder")

    chosen = options(__doc__ or "", more)
    report(rows(chosen.data, chosen.seed, chosen.quick, chosen.png, chosen.half), chosen.json)


def rows(data: Path, seed: int, quick: bool, png: Path | None = None, half: str | None = None) -> list[Row]:
    """Return a row a set and kind of glass, and one over all."""
    sums: dict[tuple[str, str], list[float]] = {}
    for name, kind, torn, layout in layouts(data, seed, quick, half):
        slide = ArraySlide(layout.rgb, MPP)
        try:
            mosaic = make_mosaic(slide)
        except NoTissue as error:
            print(name, kind, error)
            mosaic = None
        found, represented, false, pieces, iou = score(layout, mosaic)
        for key in ((name, "all"), ("all sets", kind), ("all sets", "all")):
            total = sums.setdefault(key, [0.0] * 7)
            for i, value in enumerate((len(found), sum(found), sum(represented), false, pieces, iou, 1)):
                total[i] += value
        if png is not None and mosaic is not None:
            png.mkdir(parents=True, exist_ok=True)
            Image.fromarray(draw_mosaic(slide, mosaic, 1100)).save(
                png / f"{name}-{kind}-{'torn' if torn else 'round'}.png"
            )
    return [
        {
            "set": name,
            "glass": kind,
            "pieces": int(n),
            "found": found / n,
            "represented": represented / n,
            "false pieces": false / max(1, pieces),
            "IoU": iou / slides,
        }
        for (name, kind), (n, found, represented, false, pieces, iou, slides) in sums.items()
    ]


if __name__ == "__main__":
    main()
