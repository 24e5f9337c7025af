"""What a build will take: slides to do, patches, bytes; from a look at a few slides."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from napari_fish.building.params import BuildParams
from napari_fish.building.survey import Candidate, survey
from napari_fish.errors import FishError
from napari_fish.mosaic import MosaicParams, preset
from napari_fish.mosaic.grid import patch_size
from napari_fish.mosaic.mosaic import patch_corners
from napari_fish.mosaic.reading import known_mpp
from napari_fish.mosaic.tissue import segment
from napari_fish.slides import open_slide
from napari_fish.slides.opening import expanded
from napari_fish.store.opening import is_database, open_catalogue
from napari_fish.store.records import Quarantined
from napari_fish.work import Progress, ShouldStop, stop_if_asked

ENOUGH_SLIDES = 8
"""Slides looked at, spread over all that are to do."""
ENOUGH_SECONDS = 6.0
"""Looking ends after so long, with as many slides as there was time for."""
CLUSTER_SHARES = (0.24, 0.17, 0.14, 0.12, 0.10, 0.08, 0.06, 0.05, 0.04)
"""How patches of a slide usually spread over its colour clusters."""
BYTES_A_PATCH = 420
"""Of a patch in the catalogue and in the snapshot, without its picture, at 1024 bits."""
BYTES_A_SLIDE = 68_000
"""Of a slide's overview and of what is known of it."""
BYTES_A_PICTURE_PX = 0.49
"""Of a patch's JPEG and the pages of SQLite it fills, for each of its px."""


@dataclass(frozen=True)
class Outlook:
    """What a build would do.

    Attributes
    ----------
    found, done
        Slides found, and how many of them the database has as they are now.
    patches
        Patches that are to be encoded, about.
    size
        Bytes the database will grow by, about.
    free
        Bytes free where it will be.
    quarantined
        Slides that earlier builds could not encode.
    encoder
        Id of the encoder the database has; empty for a new one.
    unreadable
        How many of the slides looked at could not be read.
    unread
        How many images of formats that are not read were passed over, by ending.
    """

    found: tuple[Candidate, ...]
    done: int
    patches: int
    size: int
    free: int
    quarantined: tuple[Quarantined, ...] = ()
    encoder: str = ""
    unreadable: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)

    @property
    def to_do(self) -> int:
        """Slides that are new, changed or were quarantined."""
        return len(self.found) - self.done


def outlook(
    slides: str | Path,
    database: str | Path,
    params: BuildParams | None = None,
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Outlook:
    """Say what a build would do, in seconds; parameters as for :func:`~napari_fish.database.build`."""
    params, target = params or BuildParams(), expanded(database)
    there = survey(slides, target, params.artefacts)
    mosaic, images, encoder = preset(params.preset or "default"), bool(params.patches), ""
    quarantined: tuple[Quarantined, ...] = ()
    if is_database(target):
        catalogue = open_catalogue(target)
        try:
            facts, quarantined = catalogue.facts, tuple(catalogue.quarantined)
            encoder, images = facts.encoder, facts.patches
            mosaic = MosaicParams.from_dict(dict(facts.mosaic)) if facts.mosaic else mosaic
        finally:
            catalogue.close()
    to_do = there.to_do
    if images:
        patches, unreadable = len(to_do), 0
    else:
        patches, unreadable = _expected(to_do, mosaic, params.mpp, progress, should_stop)
    picture = BYTES_A_PICTURE_PX * params.thumbnail_px**2
    codes = 4096 if params.store_codes else 0
    size = len(to_do) * BYTES_A_SLIDE + round(patches * (BYTES_A_PATCH + picture + codes))
    return Outlook(
        found=there.found,
        done=len(there.unchanged),
        patches=patches,
        size=size,
        free=_free(target),
        quarantined=quarantined,
        encoder=encoder,
        unreadable=unreadable,
        unread=there.unread,
    )


def _expected(
    to_do: Sequence[Candidate],
    params: MosaicParams,
    mpp: float | None,
    progress: Progress | None,
    should_stop: ShouldStop | None,
) -> tuple[int, int]:
    """Return about how many patches slides have, and how many of those looked at cannot be read."""
    step = max(1, len(to_do) // ENOUGH_SLIDES)
    sample = to_do[step // 2 :: step][:ENOUGH_SLIDES]
    end = time.monotonic() + ENOUGH_SECONDS
    patches, size, unreadable, looked = 0, 0, 0, 0
    for one in sample:
        stop_if_asked(should_stop, "looking at slides was stopped.")
        if looked and time.monotonic() > end:
            break
        looked += 1
        size += one.size
        try:
            patches += expected_patches(_patches(one, params, mpp, should_stop), params)
        except (FishError, OSError):
            unreadable += 1
        if progress:
            progress(looked, len(sample))
    if not looked:
        return 0, 0
    # Large files have more tissue, so bytes scale better than the number of slides.
    all_bytes = sum(one.size for one in to_do)
    factor = all_bytes / size if size else len(to_do) / looked
    return round(patches * factor), unreadable


def _patches(one: Candidate, params: MosaicParams, mpp: float | None, should_stop: ShouldStop | None) -> int:
    """Return how many patches lie on the tissue of a slide."""
    with open_slide(one.path, mpp=mpp) as slide:
        tissue = segment(slide, params.tissue, threads=1, should_stop=should_stop)
        corners = patch_corners(slide, tissue, patch_size(known_mpp(slide), params), params)
        return max(1, sum(map(len, corners)))


def expected_patches(patches: int, params: MosaicParams) -> int:
    """Return about how many of a slide's patches will stand for it."""
    clusters = [share * patches for share in CLUSTER_SHARES]
    return max(1, round(sum(int(params.share * n) or n for n in clusters)))


def _free(folder: Path) -> int:
    """Return the bytes free where a folder is or will be."""
    for place in (folder, *folder.absolute().parents):
        if place.exists():
            return shutil.disk_usage(place).free
    return 0
