"""A copy of a database to give away: whole, or without anything that names a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_fish.database.codes import FOLDER as CODES
from napari_fish.database.codes import read_codes, save_codes
from napari_fish.database.places import place_of, recorded_path
from napari_fish.database.records import EncodedSlide, SlideRecord
from napari_fish.database.store import DiskStore
from napari_fish.database.thumbnails import Thumbnails
from napari_fish.database.truth import Truth
from napari_fish.errors import Cancelled, DatabaseError

#: Parameters that may hold names of people or folders.
_PRIVATE_PARAMETERS = ("patient", "source")
_KEPT_COLUMNS = ("stain",)


def export(
    source: Path,
    target: Path,
    *,
    deidentify: bool = False,
    keep: Iterable[str] = (),
    progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> None:
    """Copy a database.

    Parameters
    ----------
    source, target
        The folders; the target must not hold a database.
    deidentify
        Leave out patient ids, names of files, paths, times, content hashes, pictures of whole slides (a pen may have
        written on the glass) and every further column but ``stain``; slides and patients get pseudonyms, in random
        order, that are the same throughout the copy.
    keep
        Further columns to keep all the same.
    progress, should_stop
        Called with slides copied and all slides; asked before each slide.
    """
    if target.resolve() == source.resolve():
        raise DatabaseError(f"{target}: is the database itself; choose another name.")
    old = Truth.open(source, read_only=True)
    pictures = Thumbnails.open_to_read(source)
    try:
        kept = {
            name: value
            for name, value in old.parameters.items()
            if not (deidentify and name in _PRIVATE_PARAMETERS)
        }
        slides = old.slides()
        if deidentify:
            slides = [slides[i] for i in np.random.default_rng().permutation(len(slides))]
        rename = _Pseudonyms((*_KEPT_COLUMNS, *keep)) if deidentify else _moved(source, target)
        new = Truth.create(
            target, words=old.words, encoder=old.encoder, weights_hash=old.weights_hash, parameters=kept
        )
        copies = Thumbnails.open_to_write(target) if pictures else None
        try:
            new.begin_build()
            for done, (number, record) in enumerate(slides):
                if should_stop and should_stop():
                    raise Cancelled("the export was stopped.")
                mosaics, copy = old.mosaics_of(number), rename(record)
                if pictures and copies:
                    found = pictures.mosaics(record.slide)
                    overview = b"" if deidentify else pictures.overview(record.slide) or b""
                    copies.save(copy.slide, overview, [box for box, _ in found], [jpeg for _, jpeg in found])
                if (source / CODES).is_dir():
                    save_codes(target, copy.slide, read_codes(source, record.slide))
                new.commit(EncodedSlide(copy, mosaics.keys, mosaics.barcodes, mosaics.boxes))
                if progress:
                    progress(done + 1, len(slides))
            if old.calibration is not None:
                new.calibration = old.calibration
            new.end_build()
        finally:
            new.close()
            if copies:
                copies.close()
    finally:
        old.close()
        if pictures:
            pictures.close()
    DiskStore(target, writer=True).close()


class _Pseudonyms:
    """Names slides and patients anew, in the order in which they are seen."""

    def __init__(self, keep: Iterable[str]) -> None:
        self._keep = {name.lower() for name in keep}
        self._patients: dict[str, str] = {"": ""}
        self._slides = 0

    def __call__(self, record: SlideRecord) -> SlideRecord:
        self._slides += 1
        name = f"slide-{self._slides:06d}"
        patient = self._patients.setdefault(record.patient.casefold(), f"patient-{len(self._patients):06d}")
        labels = {k: v for k, v in record.labels.items() if k.lower() in self._keep}
        return replace(
            record, slide=name, name=name, patient=patient, labels=labels, path="", content_hash="", size=0, mtime=0
        )  # fmt: skip


def _moved(source: Path, target: Path) -> Callable[[SlideRecord], SlideRecord]:
    """Return records with paths relative to where the copy is."""
    return lambda record: replace(record, path=recorded_path(place_of(record.path, source), target))
