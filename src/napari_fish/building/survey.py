"""What there is to do: slides found, and which of them the database has already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from napari_fish.building.strictness import could_differ
from napari_fish.errors import SlideError
from napari_fish.slides.finding import find_slides, told_unread
from napari_fish.slides.identity import stamp
from napari_fish.slides.opening import expanded
from napari_fish.store.opening import is_database, may_be_database, open_catalogue
from napari_fish.store.places import place_of
from napari_fish.store.protocol import Catalogue
from napari_fish.store.records import SlideRecord


@dataclass(frozen=True)
class Candidate:
    """A file that looks like a slide.

    Attributes
    ----------
    slide
        The id it will have: its path relative to the folder of slides.
    path
        Where it is.
    size, mtime
        Bytes of its files, and the time of their last change in ns.
    """

    slide: str
    path: Path
    size: int
    mtime: int


@dataclass(frozen=True)
class Survey:
    """What a build would do.

    Attributes
    ----------
    found
        All slides, in the order in which they are encoded.
    unchanged
        Those the database has as they are now.
    unread
        How many images of formats that are not read were passed over, by ending.
    """

    found: tuple[Candidate, ...]
    unchanged: tuple[Candidate, ...]
    unread: Mapping[str, int] = field(default_factory=dict)

    @property
    def to_do(self) -> tuple[Candidate, ...]:
        """Those that are new, changed or were quarantined."""
        known = set(self.unchanged)
        return tuple(one for one in self.found if one not in known)


def survey(slides: str | Path, database: str | Path, artefacts: str | None = None) -> Survey:
    """Look what there is to do, without opening any slide.

    Parameters
    ----------
    slides
        A folder, searched with its subfolders, or one slide.
    database
        The database, which may not be there yet.
    artefacts
        How strictly artefacts are to be left out; None as they were.
    """
    folder, target = expanded(slides), expanded(database)
    unread: Counter[str] = Counter()
    found = candidates(folder, unread)
    known: dict[Path, SlideRecord] = {}
    if is_database(target):
        catalogue = open_catalogue(target)
        found = without_dismissed(found, catalogue)
        known = by_place(by_id(catalogue).values(), target)
        catalogue.close()
    records = {one: known.get(one.path.resolve()) for one in found}
    unchanged = tuple(one for one in found if is_unchanged(one, records[one], artefacts=artefacts))
    return Survey(found, unchanged, unread)


def without_dismissed(found: Sequence[Candidate], catalogue: Catalogue) -> tuple[Candidate, ...]:
    """Leave out what was dismissed and is as it was."""
    kept = catalogue.facts.dismissed
    if not kept:
        return tuple(found)
    places = {place_of(path, catalogue.location): said for path, said in kept.items()}
    return tuple(one for one in found if places.get(one.path.resolve()) != (one.size, one.mtime))


def by_id(catalogue: Catalogue) -> dict[str, SlideRecord]:
    """Return all slides of a database by id."""
    return {record.slide: record for _, record in catalogue.slides()}


def by_place(records: Iterable[SlideRecord], database: Path) -> dict[Path, SlideRecord]:
    """Return slides by where they were last seen."""
    places = {place_of(record.path, database): record for record in records}
    return {place: record for place, record in places.items() if place is not None}


def is_unchanged(
    one: Candidate, record: SlideRecord | None, mpp: float | None = None, artefacts: str | None = None
) -> bool:
    """Whether a file is still what a record at its place says, as far as size and time of its files tell."""
    return (
        record is not None
        and mpp in (None, record.mpp)
        and not could_differ(record.choice, artefacts)
        and (record.size, record.mtime) == (one.size, one.mtime)
    )


def _of_database(path: Path, source: Path) -> bool:
    """Whether a file belongs to a database that lies among the slides."""
    inside = [source.joinpath(*parts) for parts in _beginnings(path.relative_to(source).parts)]
    return any(map(may_be_database, inside))


def _beginnings(parts: Sequence[str]) -> list[Sequence[str]]:
    return [parts[:i] for i in range(1, len(parts))]


def candidates(source: Path, unread: Counter[str] | None = None) -> tuple[Candidate, ...]:
    """Return what looks like a slide in a folder, or the one file that is named.

    Parameters
    ----------
    source
        The folder or file.
    unread
        Where to count images of formats that are not read, by ending.
    """
    from napari_fish.slides.omezarr import is_zarr_folder

    if not source.exists():
        raise SlideError(
            f"{source}: there is no such file or folder. Check its name and that its disk is there."
        )
    alone = not source.is_dir() or is_zarr_folder(source)
    unread = Counter() if unread is None else unread
    found = () if alone else find_slides(source, unread)
    paths = [source] if alone else [path for path in found if not _of_database(path, source)]
    if not paths:
        raise SlideError(
            f"{source}: no slides in this folder or below it. Known are svs, ndpi, mrxs, scn, vms, bif, svslide, "
            f"DICOM, TIFF, OME-TIFF, OME-Zarr, PNG and JPEG. {told_unread(unread)}".rstrip()
        )
    result = []
    for path in paths:
        try:
            size, mtime = stamp(path)
        except OSError:
            size, mtime = 0, 0  # opening it will say what is wrong
        name = path.name if alone or path == source else path.relative_to(source).as_posix()
        result.append(Candidate(name.encode("utf-8", "backslashreplace").decode(), path, size, mtime))
    return tuple(result)
