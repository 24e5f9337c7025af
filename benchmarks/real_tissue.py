"""How much real tissue the artefact filter loses, and how many painted artefacts it finds.

    python benchmarks/real_tissue.py [--quick] [--json FILE] [--data FOLDER] [--sheet FOLDER] [--left-out]

The images of each set (SET/CLASS/IMAGE or SET/IMAGE) become slides of 16 patches, smaller images mirrored up
to a patch, at 0.25 µm per px for breakhis and ebhi, 1 for osteosarcoma, 0.5 for all others. A row a set: the
share of clean patches dropped on clean slides with all marked as tissue, as slides of one image, and with
tissue detection as well; the share of painted patches dropped where every third is painted, and of the clean ones beside
them. Then a row a kind. With --sheet, a picture of what was dropped of each set.

With --left-out the filter is trained anew for each of four groups of sets without that group, limits included, and judges
only sets it never saw: the three of its group, with their validation images, and the crc sets, which are never trained on.
Takes three quarters of an hour on two cores; with --quick a tenth of the training examples, which judge worse.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from unittest.mock import patch as patched

import numpy as np
from common import Row, options, report
from PIL import Image
from tissue_slides import ACROSS, KINDS, PATCH, grids, sets_in, slide_of

from napari_fish.errors import NoTissue
from napari_fish.mosaic import make_mosaic
from napari_fish.mosaic.artefacts.filters import Filters
from napari_fish.mosaic.training import train as training
from napari_fish.mosaic.training.fitting import SHOWS, Examples
from napari_fish.mosaic.values import Mosaic, Patch
from napari_fish.slides.protocol import RGB

DATA = Path(__file__).parents[2] / "shared" / "data"
TISSUE = DATA / "tissue"


def mosaic_of(patches: list[RGB], masked: bool = True) -> Mosaic | None:
    """Make the mosaic of a slide of patches; None where there is none."""
    slide = slide_of(patches)
    width, height = slide.dimensions
    try:
        return make_mosaic(slide, mask=np.ones((height // 64, width // 64), bool) if masked else None)
    except NoTissue:
        return None


def dropped_numbers(mosaic: Mosaic) -> dict[int, Patch]:
    """Return the patches left out, by their number on the slide."""
    return {p.y // PATCH * ACROSS + p.x // PATCH: p for p in mosaic.dropped if p.reason != "white"}


def share_found(mosaic: Mosaic | None, patches: int) -> float:
    """Return the share of a slide full of tissue that its candidates cover."""
    return 0.0 if mosaic is None else min(1.0, len(mosaic.candidates) / patches)


class Tally:
    """Counts of drops."""

    def __init__(self) -> None:
        self.counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def add(self, name: str, dropped: int, of: int) -> None:
        """Count drops."""
        self.counts[name][0] += dropped
        self.counts[name][1] += of

    def share(self, name: str) -> float:
        """Return the share dropped."""
        dropped, of = self.counts[name]
        return dropped / of if of else float("nan")


def one_set(name: str, images: list[Path], slides: int, kinds: Tally, sheet: Path | None) -> Row:
    """Make and judge the slides of a set."""
    tally, pictures = Tally(), []
    for number, patches in enumerate(grids(images, name, slides)):
        clean = mosaic_of(patches)
        gone = dropped_numbers(clean) if clean else dict.fromkeys(range(len(patches)))
        tally.add("clean dropped", len(gone), len(patches))
        pictures += [patches[i] for i in gone]
        unmasked = mosaic_of(patches, masked=False)
        tally.counts["lost"][0] += round(1000 * (1 - share_found(unmasked, len(patches))))
        tally.counts["lost"][1] += 1000
        for patch in patches[:2]:
            alone = mosaic_of([patch])
            tally.add("alone dropped", int(alone is None or not alone.candidates), 1)
        rng = np.random.default_rng([number, *name.encode()])
        shown = {i: str(rng.choice(list(KINDS))) for i in range(int(rng.integers(3)), len(patches), 3)}
        painted = [KINDS[shown[i]](p, rng) if i in shown else p for i, p in enumerate(patches)]
        mosaic = mosaic_of(painted)
        gone = dropped_numbers(mosaic) if mosaic else dict.fromkeys(range(len(patches)))
        for i in range(len(patches)):
            tally.add("painted dropped" if i in shown else "clean beside dropped", int(i in gone), 1)
            if i in shown:
                kinds.add(shown[i], int(i in gone), 1)
                if i in gone:
                    verdict = gone[i]
                    kinds.add(
                        f"{shown[i]} named", int(verdict is not None and verdict.reason == SHOWS[shown[i]]), 1
                    )
                if sheet and i not in gone:
                    Image.fromarray(painted[i][::4, ::4]).save(
                        sheet / f"missed-{shown[i]}-{name}-{number}-{i}.png"
                    )
    if sheet and pictures:
        Image.fromarray(np.hstack([p[::4, ::4] for p in pictures[:12]])).save(sheet / f"dropped-{name}.png")
    columns = ("clean dropped", "alone dropped", "clean beside dropped", "painted dropped", "lost")
    return {
        "set": name,
        "images": len(images),
        "patches": tally.counts["clean dropped"][1],
        **{f"{column} %": 100 * tally.share(column) for column in columns},
    }


def examples_of(name: str, quick: bool) -> Examples:
    """Make the training examples of a set."""
    if quick:
        training.SLIDES_A_SET //= 10
    sources = training.sources_in(DATA, 12 if quick else 126)
    return training.examples_of(name, sources[name], list(sources).index(name))


def filters_without(group: int, examples: Examples) -> Filters:
    """Train the filters, limits included, without a group of sets."""
    return examples.without(group).fit()


@contextmanager
def in_force(filters: Filters) -> Iterator[None]:
    """Judge with other filters than those in the package."""
    with patched("napari_fish.mosaic.artefacts.judge.read_filters", lambda: filters):
        yield


def left_out(quick: bool) -> dict[str, Filters]:
    """Return for each set of tissue filters that never saw it."""
    names = list(training.CREDITS)
    with ProcessPoolExecutor(2) as pool:
        examples = Examples()
        for own in pool.map(partial(examples_of, quick=quick), names):
            examples.extend(own)
        trained = list(
            pool.map(partial(filters_without, examples=examples), range(training.GROUPS), chunksize=2)
        )
    return {name: trained[number % training.GROUPS] for number, name in enumerate(names) if number}


def main() -> None:
    def more(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", type=Path, help="folder of SET/CLASS/IMAGE; the shared tissue by default"
        )
        parser.add_argument("--sets", nargs="*", help="only these")
        parser.add_argument("--slides", type=int, help="slides of each set at the most")
        parser.add_argument(
            "--left-out", action="store_true", help="judge each set by a filter that never saw it"
        )
        parser.add_argument("--sheet", type=Path, metavar="FOLDER", help="pictures of mistakes")

    chosen = options(__doc__, more)
    folders = [chosen.data] if chosen.data else [TISSUE / "validation", TISSUE / "train"]
    if chosen.sheet:
        chosen.sheet.mkdir(parents=True, exist_ok=True)
    kinds, rows = Tally(), []
    unseen = left_out(chosen.quick) if chosen.left_out else {}
    for folder in folders:
        for name, images in sets_in(folder).items():
            if not chosen.sets or name in chosen.sets:
                count = chosen.slides or (1 if chosen.quick else 4)
                with in_force(unseen[name]) if name in unseen else nullcontext():
                    rows.append({"from": folder.name, **one_set(name, images, count, kinds, chosen.sheet)})
    report(rows, None)
    found: list[Row] = [
        {
            "artefact": kind,
            "painted": kinds.counts[kind][1],
            "dropped %": 100 * kinds.share(kind),
            "rightly named %": 100 * kinds.share(f"{kind} named"),
        }
        for kind in KINDS
    ]
    report(found, None)
    if chosen.json:
        report([*rows, *found], chosen.json)


if __name__ == "__main__":
    main()
