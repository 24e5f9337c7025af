"""Care of a database: labels that come later, slides that moved, slides that must go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from napari_fish.building.labelling import remember_patient_rule, with_labels
from napari_fish.building.survey import by_id, candidates
from napari_fish.errors import DatabaseError, FishError
from napari_fish.labels.patients import label_slides
from napari_fish.labels.slide_names import SlideNames
from napari_fish.labels.table import LabelTable, Matched, read_labels
from napari_fish.search.calibrate import calibrate
from napari_fish.slides import open_slide
from napari_fish.slides.identity import stamp
from napari_fish.slides.opening import expanded
from napari_fish.store.latent_codes import remove_codes
from napari_fish.store.opening import open_store, pictures_to_write
from napari_fish.store.places import Location, is_there, place_of, recorded_path
from napari_fish.store.protocol import Catalogue, CataloguedStore
from napari_fish.store.records import Quarantined
from napari_fish.work import Progress, ShouldStop, stop_if_asked


def import_labels(
    database: str | Path,
    labels: str | Path,
    *,
    patient: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[LabelTable, Matched]:
    """Give the slides of a database what a file says of them.

    Parameters
    ----------
    database
        The folder.
    labels
        CSV, TSV or Excel file; what it does not mention stays as it was.
    patient
        A column, or a regular expression to be found in the file name.
    columns
        Which column of the file is slide, patient, site, diagnosis or stain, where the guess is wrong.
    """
    table = read_labels(expanded(labels), columns=columns)
    with open_store(expanded(database), writer=True) as store:
        records = by_id(store.catalogue)
        matched = label_slides(records, table, patient)
        changed = [with_labels(records[slide], said) for slide, said in matched.labels.items()]
        changed = [new for new in changed if new != records[new.slide]]
        if changed:
            store.catalogue.relabel(changed)
        remember_patient_rule(store.catalogue, patient, table)
        store.refresh()
        if any(new.patient != records[new.slide].patient for new in changed) and len(store) > 1:
            # Which pairs are of different patients is not what it was.
            store.calibration = calibrate(store)
    return table, matched


def remove_slides(database: str | Path, slides: Iterable[str]) -> list[str]:
    """Forget slides, given by id or by a name that fits only one; return their ids.

    A file in quarantine is dismissed: no build looks at it again before it changes.
    """
    folder = expanded(database)
    with open_store(folder, writer=True) as store:
        wanted = list(dict.fromkeys(slides))
        bad = {slide.slide for slide in store.catalogue.quarantined}
        # Before anything is done all must be found.
        known = {name: _slide_or_none(store, name, bad) for name in wanted}
        dismissed = _dismiss(store.catalogue, wanted)
        ids = list(dict.fromkeys(slide for slide in known.values() if slide is not None))
        pictures = pictures_to_write(folder)
        for slide in ids:
            # Before the catalogue forgets them, so that nothing of a slide outlives it, whatever happens.
            pictures.remove(slide)
            remove_codes(folder, slide)
        pictures.close()
        store.catalogue.remove(ids)
        store.settle()
    return list(dict.fromkeys([*ids, *dismissed.values()]))


def _dismiss(catalogue: Catalogue, names: Iterable[str]) -> dict[str, str]:
    """Take files out of quarantine for as long as they stay as they are; return their ids by the names that fit."""
    quarantined = {bad.slide: bad for bad in catalogue.quarantined}
    ids = SlideNames(quarantined)
    fitting = {name: (name,) if name in quarantined else ids.find(name).slides for name in names}
    chosen = {name: slides[0] for name, slides in fitting.items() if len(slides) == 1}
    if chosen:
        kept = dict(catalogue.facts.dismissed)
        kept |= {
            quarantined[slide].path: _stamp(quarantined[slide], catalogue.location)
            for slide in chosen.values()
        }
        catalogue.remember(dismissed=kept)
        catalogue.release(chosen.values())
    return chosen


def _stamp(bad: Quarantined, folder: Location) -> tuple[int, int]:
    place = place_of(bad.path, folder)
    try:
        return stamp(place) if place is not None else (0, 0)
    except OSError:
        return 0, 0


def _slide_or_none(store: CataloguedStore, name: str, bad: Iterable[str]) -> str | None:
    """Return the id of a slide, None for a file that is only in quarantine."""
    try:
        return find_slide(store, name)
    except DatabaseError:
        if len(SlideNames(bad).find(name).slides) != 1:
            raise
        return None


def find_slide(store: CataloguedStore, name: str) -> str:
    """Return the id of a slide, given by it or by a name that fits only one."""
    if store.catalogue.number(name) is not None:
        return name
    found = SlideNames(by_id(store.catalogue)).find(name).slides
    if len(found) == 1:
        return found[0]
    if found:
        raise DatabaseError(f"{store.location}: {name!r} may be {', '.join(found[:5])}; name one of them.")
    raise DatabaseError(f"{store.location}: no slide {name!r} in this database.")


@dataclass(frozen=True)
class Relocated:
    """Slides that were looked for: ``found`` again, in their ``place`` all along, or ``missing``."""

    found: tuple[str, ...]
    in_place: int
    missing: tuple[str, ...]


def relocate(
    database: str | Path,
    folder: str | Path,
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Relocated:
    """Find the slides of a database again after they were moved or renamed.

    Parameters
    ----------
    database
        The database.
    folder
        Where to look, subfolders included.
    progress, should_stop
        Called with files looked at and all files; asked before each.
    """
    target = expanded(database)
    with open_store(target, writer=True) as store:
        records = by_id(store.catalogue)
        missing = [record for record in records.values() if not is_there(place_of(record.path, target))]
        lost = {record.content_hash: record for record in missing if record.content_hash}
        found: list[str] = []
        names = {record.name for record in lost.values()}
        # Those that kept their name come first: with luck the others need not be opened.
        files = sorted(candidates(expanded(folder)), key=lambda one: one.path.name not in names)
        for done, one in enumerate(files):
            if not lost:
                break
            stop_if_asked(should_stop, "looking for slides was stopped.")
            try:
                with open_slide(one.path, mpp=1.0) as slide:
                    record = lost.pop(slide.content_hash, None)
            except FishError:
                record = None
            if record is not None:
                size, mtime = stamp(one.path)
                path, name = recorded_path(one.path, target), one.path.name
                store.catalogue.relabel([replace(record, name=name, path=path, size=size, mtime=mtime)])
                found.append(record.slide)
            if progress:
                progress(done + 1, len(files))
    still = sorted({record.slide for record in missing} - set(found))
    return Relocated(tuple(found), len(records) - len(missing), tuple(still))
