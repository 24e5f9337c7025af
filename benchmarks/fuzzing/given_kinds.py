"""What people give beside slides: masks and labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from .kind import Kind, changed_file

NAMES = ("a.tif", "b ü.tif", "c.svs", "d.svs")


def _masks(folder: Path) -> Iterator[Path]:
    from PIL import Image
    from tests.mosaic.masks.test_masks import HOLE, SQUARE, feature, picture

    pixels = Image.fromarray(picture(16))
    for ending in ("png", "jpg", "tif", "gif", "bmp", "webp", "jp2", "ppm"):
        pixels.convert("L").save(folder / f"mask.{ending}")
        yield folder / f"mask.{ending}"
    many = {"type": "MultiPolygon", "coordinates": [[SQUARE], [SQUARE, HOLE]]}
    features = [feature(SQUARE, HOLE), {"type": "Feature", "geometry": many, "properties": {"name": "Tumor"}}]
    for name in ("a.geojson", "b.geojson"):
        document: Any = {"type": "FeatureCollection", "features": features} if name < "b" else features
        (folder / name).write_text(json.dumps(document))
        yield folder / name


@cache
def _slide_of_masks() -> Any:
    from tests.mosaic.conftest import ArraySlide, glass

    return ArraySlide(glass(3000, 4000), 0.5, levels=1)


def _ask_mask(path: Path) -> None:
    from napari_fish.mosaic.masks import tissue_from_mask
    from napari_fish.mosaic.masks.maskfile import MaskFile
    from napari_fish.mosaic.params import TissueParams

    MaskFile(path).identity()
    tissue_from_mask(_slide_of_masks(), MaskFile(path), TissueParams(), 1024)


def _labels(folder: Path) -> Iterator[Path]:
    import pandas

    table = pandas.DataFrame(
        {
            "Slide ID": NAMES,
            "Case": [1, 2, 3, 3],
            "Organ": ["breast"] * 4,
            "Diagnosis": ["a", "b", "ü", None],
            "Age": [50.5, 3, 1, 0],
        }
    )
    table.to_csv(folder / "a.csv", index=False)
    table.to_csv(folder / "b.tsv", index=False, sep="\t", encoding="utf-16")
    table.to_csv(folder / "c.txt", index=False, sep=";", encoding="latin-1")
    table.to_excel(folder / "d.xlsx", index=False)
    yield from sorted(folder.iterdir())


def _ask_labels(path: Path) -> None:
    from napari_fish.labels.patients import patient_rule
    from napari_fish.labels.table import read_labels

    table = read_labels(path)
    table.describe()
    table.match(NAMES)
    patient_rule(None, table)


KINDS = {
    "masks": Kind(_masks, changed_file, _ask_mask),
    "labels": Kind(_labels, changed_file, _ask_labels),
}
