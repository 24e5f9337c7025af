"""A slide-level experiment on real tissue: slides composed from labelled images, built, and evaluated.

Each pseudo slide shows images of one class on a white ground at 0.5 µm/px, in blocks of 1024 px: an image that is
smaller is continued by its mirror image, so that no scale is changed. A source image is in one slide only, and so is a
patient (BreakHis names patients; a patient with two classes gives one slide of the more frequent one). Slides are made of
train images or of validation images, never of both; only validation slides are asked for, all may be found.

Sober reading: the other sets do not name patients, so images of one patient may be in two slides; the pixel size of
LC25000 is not documented and taken as 0.5 µm; all tissue of a pseudo slide is of one kind, as in no real slide.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tifffile
from common import Row, report
from numpy.typing import NDArray
from PIL import Image

from napari_fish.building.build import build
from napari_fish.evaluate import EvaluateParams, evaluate, to_json, write_report
from napari_fish.store.snapshot.store import SnapshotStore

TISSUE = Path(__file__).resolve().parents[2] / "shared" / "data" / "tissue"
MPP, BLOCK, MARGIN, GLASS = 0.5, 1024, 256, (244, 242, 245)
ACROSS, DOWN = 3, 2
BENIGN = {"A", "F", "PT", "TA"}
SITES = {"breakhis": "breast", "lc25000": "lung and colon", "crc": "colorectum"}
# Micrometres per px: BreakHis at 400x; crc at about 20x; LC25000 is not documented.
SCALES = {"breakhis": 0.25, "lc25000": 0.5, "crc": 0.5}


@dataclass(frozen=True)
class Recipe:
    """What one pseudo slide is made of."""

    name: str
    images: tuple[Path, ...]
    group: str
    diagnosis: str
    patient: str
    split: str

    @property
    def kind(self) -> str:
        """Benign or malignant, where that is known."""
        if self.group != "breakhis":
            return ""
        return "benign" if self.diagnosis in BENIGN else "malignant"


def recipes(blocks: int, most: int | None) -> Iterator[Recipe]:
    """Divide the images among slides."""
    made: Counter[tuple[str, str, str]] = Counter()
    for group, split, folder in (
        ("breakhis", "train", "train/breakhis"),
        ("breakhis", "validation", "validation/breakhis"),
        ("lc25000", "train", "train/lc25000"),
        ("lc25000", "validation", "validation/lc25000"),
        ("crc", "train", "validation/crc_gallery"),
        ("crc", "validation", "validation/crc_queries"),
    ):
        for patient, diagnosis, images in _divided(TISSUE / folder, group, blocks):
            made[group, split, diagnosis] += 1
            number = made[group, split, diagnosis]
            if most is not None and number > most:
                continue
            name = f"{group}-{split}-{diagnosis}-{number:02d}"
            yield Recipe(name, tuple(images), group, diagnosis, patient or name, split)


def _divided(folder: Path, group: str, blocks: int) -> Iterator[tuple[str, str, Sequence[Path]]]:
    """Return patient (empty for unknown), class and images of each slide."""
    images = sorted(folder.rglob("*.*"))
    if group != "breakhis":
        for diagnosis in sorted({path.parent.name for path in images}):
            mine = [path for path in images if path.parent.name == diagnosis]
            for start in range(0, len(mine) - blocks + 1, blocks):
                yield "", diagnosis, mine[start : start + blocks]
        return
    patients: dict[str, list[Path]] = defaultdict(list)
    for path in images:
        patients[path.name.split("_")[0]].append(path)
    for patient, mine in sorted(patients.items()):
        diagnosis = Counter(path.parent.name for path in mine).most_common(1)[0][0]
        yield patient, diagnosis, [path for path in mine if path.parent.name == diagnosis][:blocks]


def block(path: Path, mpp: float) -> NDArray[np.uint8]:
    """Read an image at 0.5 µm/px and continue it by its mirror image to a block."""
    with Image.open(path) as picture:
        size = (round(picture.width * mpp / MPP), round(picture.height * mpp / MPP))
        pixels = np.asarray(picture.convert("RGB").resize(size, Image.Resampling.LANCZOS))
    missing = [max(0, BLOCK - side) for side in pixels.shape[:2]]
    return np.pad(pixels, ((0, missing[0]), (0, missing[1]), (0, 0)), "symmetric")[:BLOCK, :BLOCK]


def write_slide(recipe: Recipe, path: Path) -> None:
    """Compose a slide and write it as a pyramidal TIFF."""
    canvas = np.full((DOWN * BLOCK + 2 * MARGIN, ACROSS * BLOCK + 2 * MARGIN, 3), GLASS, np.uint8)
    for i, image in enumerate(recipe.images[: ACROSS * DOWN]):
        y, x = MARGIN + i // ACROSS * BLOCK, MARGIN + i % ACROSS * BLOCK
        canvas[y : y + BLOCK, x : x + BLOCK] = block(image, SCALES[recipe.group])
    with tifffile.TiffWriter(path) as tiff:
        for level in range(3):
            rows, columns = (side // 4**level for side in canvas.shape[:2])
            pixels = np.asarray(Image.fromarray(canvas).resize((columns, rows), Image.Resampling.BOX))
            tiff.write(
                pixels, photometric="rgb", tile=(256, 256), compression="jpeg", compressionargs={"level": 90},
                subfiletype=int(level > 0), metadata=None, resolution=(1e4 / MPP / 4**level,) * 2,
                resolutionunit="CENTIMETER",
            )  # fmt: skip


def compose(folder: Path, quick: bool) -> Path:
    """Write all slides and their labels; return the labels file."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = folder / "labels.csv"
    with labels.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("slide", "patient", "site", "diagnosis", "group", "split"))
        for recipe in recipes(ACROSS * DOWN, 2 if quick else None):
            path = folder / f"{recipe.name}.tif"
            if not path.exists():
                write_slide(recipe, path)
            site = SITES[recipe.group]
            diagnosis = (
                f"{site.split()[0]} {recipe.diagnosis}" if recipe.group != "lc25000" else recipe.diagnosis
            )
            table.writerow((path.name, recipe.patient, site, diagnosis, recipe.kind, recipe.split))
    return labels


EXPERIMENTS: dict[str, dict[str, object]] = {
    "diagnosis within site": {"target": "diagnosis", "within": "site"},
    "diagnosis": {"target": "diagnosis"},
    "benign or malignant (breast)": {"target": "group", "within": "site"},
    "site, k = 10": {"target": "site", "k": 10},
}


def rows_of(document: dict[str, object], experiment: str) -> Iterator[Row]:
    """Return one row a mode of an experiment."""
    for table in ("modes", "ablation"):
        lines = document[table]
        assert isinstance(lines, dict)
        for name, line in lines.items():
            yield {
                "experiment": experiment,
                "queries": document["n_queries"],
                "labels": len(document["labels"]),  # type: ignore[arg-type]
                "mode": name,
                "ranking": line["ranking"],
                **{
                    what: f"{line[what]:.3f}"
                    + (" [{:.2f}, {:.2f}]".format(*line["ci"][what]) if line["ci"][what] else "")
                    for what in ("mmv_macro", "mmv", "map", "top1")
                },
                "short": round(line["short"], 3),
                "filled": round(line["filled"], 3),
                "recall": line["recall"],
                "median ms": None if line["latency_ms"] is None else round(line["latency_ms"]["median"], 2),
            }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two slides of each class and split")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's rows as JSON")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep slides, database and reports here")
    parser.add_argument("--threshold", type=int, metavar="BITS", help="instead of the calibrated one")
    given = parser.parse_args()
    if not TISSUE.is_dir():
        raise SystemExit("SKIPPED: ../shared/data is not beside this checkout")
    with tempfile.TemporaryDirectory() as temporary:
        out = given.out or Path(temporary)
        labels = compose(out / "slides", given.quick)
        print(build(out / "slides", out / "pseudo.fish", labels))
        rows: list[Row] = []
        with SnapshotStore(out / "pseudo.fish") as store:
            for name, options in EXPERIMENTS.items():
                params = EvaluateParams(
                    ablation=True, query_where=("split=validation",), threshold=given.threshold, **options  # type: ignore[arg-type]
                )  # fmt: skip
                found = evaluate(store, params=params, command="python benchmarks/pseudo_slides.py")
                write_report(found, out / f"{name}.html")
                rows += rows_of(to_json(found), name)
        report(rows, given.json)
        (out / "results.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
