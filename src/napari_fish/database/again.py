"""Slides of a database are encoded again from where they are, with more or less of them left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from napari_fish.building.build import build
from napari_fish.building.masks import mask_again
from napari_fish.building.params import BuildParams
from napari_fish.building.summary import Summary, Watch
from napari_fish.building.survey import Candidate, by_id
from napari_fish.errors import DatabaseError
from napari_fish.slides.identity import stamp
from napari_fish.slides.opening import expanded
from napari_fish.store.latent_codes import keeps_codes
from napari_fish.store.opening import open_catalogue
from napari_fish.store.places import is_there, place_of
from napari_fish.texts import enumerated, noted
from napari_fish.work import Progress, ShouldStop


def encode_again(
    database: str | Path,
    slides: Iterable[str],
    params: BuildParams,
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
    watch: Watch | None = None,
) -> Summary:
    """Encode slides of a database again where other parameters make a difference to them.

    Parameters
    ----------
    database
        ``NAME.fish``.
    slides
        Ids of slides in it; the others stay as they are, and so does what the database says of slides to come.
    params
        What is asked for, such as ``BuildParams(artefacts="off")``.
    progress, should_stop, watch
        As for :func:`~napari_fish.building.build.build`.
    """
    folder = expanded(database)
    found, notes = [], []
    away, masked = [], []
    catalogue = open_catalogue(folder)
    try:
        known = by_id(catalogue)
        for slide in dict.fromkeys(slides):
            record = known.get(slide)
            place = None if record is None else place_of(record.path, folder)
            if record is None or place is None or not is_there(place):
                away.append(slide)
            elif record.choice.mask and mask_again(place, record, catalogue) is None:
                masked.append(slide)
            else:
                found.append(Candidate(slide, place, *stamp(place)))
    finally:
        catalogue.close()
    if away:
        notes.append(f"Not where they were, so find them with relocate first: {enumerated(away)}.")
    if masked:
        notes.append(
            "Their masks are not where they were or were changed, so put them beside the slides, or build again with "
            f"--mask and artefacts {params.artefacts}: {enumerated(masked)}."
        )
    if not found:
        raise DatabaseError(f"{folder}: no slide can be encoded again. {' '.join(notes)}")
    params = replace(params, store_codes=keeps_codes(folder))
    summary = build(
        found,
        folder,
        params=params,
        progress=progress,
        should_stop=should_stop,
        watch=watch,
        only={one.slide for one in found},
    )
    return replace(summary, notes=(*noted("files", notes), *summary.notes))
