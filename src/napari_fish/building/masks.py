"""Which mask goes with which slide of a build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from napari_fish.building.params import BuildParams
from napari_fish.building.survey import Candidate
from napari_fish.errors import DatabaseError, FishError
from napari_fish.labels.slide_names import Found, SlideNames
from napari_fish.labels.table import LabelTable
from napari_fish.mosaic.masks.annotations import split_classes
from napari_fish.mosaic.masks.maskfile import MaskFile
from napari_fish.slides.opening import expanded
from napari_fish.store.places import place_of, recorded_path
from napari_fish.store.protocol import Catalogue
from napari_fish.store.records import SlideRecord
from napari_fish.texts import enumerated

_ENDING = re.compile(r"\.(geojson|json|png|jpe?g|tiff?|bmp|gif|webp)$", re.IGNORECASE)
_MASK = re.compile(r"[ _.-]masks?$", re.IGNORECASE)

# Hidden files, databases and slides that are folders hold no masks.
_OTHERS = re.compile(r"^\.|\.fish$|\.zarr$")


@dataclass(frozen=True)
class SlideMask:
    """The mask of a slide, as it was when the build began.

    Attributes
    ----------
    file
        What to read.
    identity
        Names its content; empty where it cannot be read, which reading it will say.
    """

    file: MaskFile
    identity: str

    @property
    def classes(self) -> str:
        """The classes that count, joined."""
        return ", ".join(self.file.classes)


@dataclass(frozen=True)
class Masks:
    """The masks of a build.

    Attributes
    ----------
    asked
        Whether anything was said of masks; if not, slides stay as they are.
    of
        The masks, by the id the slide has in this build.
    refused
        Why a slide cannot be done with what was given, by the same id.
    notes
        What the reader must know.
    """

    asked: bool = False
    of: Mapping[str, SlideMask] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def is_same(self, slide: str, record: SlideRecord) -> bool:
        """Whether a slide was encoded with the mask it has now."""
        if not self.asked:
            return True
        if slide in self.refused:
            return False
        mask, before = self.of.get(slide), record.choice
        if mask is None:
            return not before.mask
        # A mask that was renamed marks the same, and classes are the same in any case.
        content = mask.identity.rpartition("#")[2]
        same = content == before.mask.rpartition("#")[2] and bool(content)
        return same and mask.classes.casefold() == before.mask_class.casefold()


def masks_of(found: Sequence[Candidate], params: BuildParams, table: LabelTable | None) -> Masks:
    """Return the masks of slides.

    Parameters
    ----------
    found
        The slides.
    params
        Where masks are, and which classes count.
    table
        The labels file, if there is one.
    """
    classes = split_classes(params.mask_class)
    if not params.mask:
        if classes:
            raise DatabaseError(
                f"--mask-class {', '.join(classes)}: says which annotations of masks count; state these with --mask."
            )
        return Masks()
    path = expanded(params.mask)
    column = None if table is None else table.column(params.mask)
    refused: dict[str, str] = {}
    notes: list[str] = []
    if path.is_dir():
        paths = _in_folder(path, found, refused, notes)
        if column is not None:
            notes.append(
                f"“{params.mask}” is a folder and a column of the labels: the folder was used for masks."
            )
    elif column is not None and table is not None:
        paths = _in_column(column, table, found)
    elif path.exists() and len(found) == 1:
        paths = {found[0].slide: path}
    else:
        raise DatabaseError(_not_understood(path, table, len(found)))
    masks = {slide: _as_it_is(MaskFile(file, classes)) for slide, file in paths.items()}
    some = len(masks.keys() | refused.keys())
    notes.insert(0, f"{some} slide{'s' * (some != 1)} with a mask, {len(found) - some} without.")
    return Masks(True, masks, refused, tuple(notes))


def remember_folders(catalogue: Catalogue, masks: Masks) -> None:
    """Remember where masks lie, so that slides can be encoded again with them."""
    used = {
        recorded_path(mask.file.path.parent, catalogue.location)
        for mask in masks.of.values()
        if mask.identity
    }
    known = set(catalogue.facts.mask_folders)
    if used - known:
        catalogue.remember(mask_folders=sorted(used | known))


def mask_again(slide: Path, record: SlideRecord, catalogue: Catalogue) -> SlideMask | None:
    """Return the mask that a slide was encoded with, if it lies unchanged beside it or where masks lay; else None."""
    name = record.choice.mask.rpartition("#")[0]
    places = [place_of(kept, catalogue.location) for kept in catalogue.facts.mask_folders]
    for folder in (slide.parent, *places) if name else ():
        if folder is not None:
            mask = _as_it_is(MaskFile(folder / name, split_classes(record.choice.mask_class)))
            if mask.identity == record.choice.mask:
                return mask
    return None


def without_masks(found: Sequence[Candidate], mask: str | None) -> tuple[Candidate, ...]:
    """Leave out the images among the slides that are masks: what lies in the masks' own folder, or says so."""
    folder = expanded(mask) if mask else None
    if folder is None or not folder.is_dir():
        return tuple(found)
    slides = [one for one in found if not _is_in(one.path, folder)]
    inside = [one for one in found if _is_in(one.path, folder)]
    if slides:
        return tuple(slides)
    # Slides and masks lie together.
    names = SlideNames(one.slide for one in inside)
    return tuple(one for one in inside if not _of_another(one, names))


def _of_another(one: Candidate, names: SlideNames) -> bool:
    """Whether an image is called the mask of another slide."""
    stem = _ENDING.sub("", one.slide)
    shorter = _MASK.sub("", stem)
    return stem != one.slide and shorter != stem and bool(names.find(shorter).slides)


def _is_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _in_folder(
    folder: Path, found: Sequence[Candidate], refused: dict[str, str], notes: list[str]
) -> dict[str, Path]:  # fmt: skip
    """Return the masks of a folder by slide."""
    names = SlideNames(one.slide for one in found)
    own = {one.path.resolve() for one in found}
    claims: dict[str, list[tuple[int, Path]]] = {}
    strangers, ambiguous = [], []
    for path in sorted(path for path in folder.rglob("*") if _ENDING.search(path.name)):
        if path.resolve() in own or any(_OTHERS.search(part) for part in path.relative_to(folder).parts):
            continue
        name = path.relative_to(folder).as_posix()
        # What cannot be told in Unicode fits no slide.
        fits = names.find(name) if _is_unicode(name) else Found()
        for shorter in _shorter(name):
            fits = fits if fits.slides else names.find(shorter)
        if not fits.slides:
            strangers.append(name)
        elif len(fits.slides) > 1:
            ambiguous.append(f"{name} ({', '.join(fits.slides[:3])})")
        else:
            claims.setdefault(fits.slides[0], []).append((fits.looseness, path))
    result = {}
    for slide, claim in claims.items():
        least = min(looseness for looseness, _ in claim)
        best = [path for looseness, path in claim if looseness == least]
        if len(best) == 1:
            result[slide] = best[0]
        else:
            both = " and ".join(path.relative_to(folder).as_posix() for path in best)
            refused[slide] = f"{slide}: has several masks in {folder} ({both}). Keep one of them there."
    if strangers:
        notes.append(f"Masks that fit no slide: {enumerated(strangers)}.")
    if ambiguous:
        notes.append(
            f"Masks not used, as several slides fit: {enumerated(ambiguous)}. Put them in folders, too."
        )
    if not claims:
        notes.append(
            f"No mask in {folder} fits a slide. Name each like its slide ({found[0].slide}), such as "
            f"{_ENDING.sub('', found[0].path.name)}.geojson or {_ENDING.sub('', found[0].path.name)}_mask.png."
        )
    return result


def _shorter(name: str) -> Iterator[str]:
    """Give what the slide of a mask may be called."""
    if _is_unicode(name):
        stem = _ENDING.sub("", name)
        yield stem
        yield _MASK.sub("", stem)


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _in_column(column: str, table: LabelTable, found: Sequence[Candidate]) -> dict[str, Path]:
    """Return the masks that a column of the labels names, by slide."""
    labels = table.match(one.slide for one in found).labels
    said = {slide: known.others.get(column, "").strip() for slide, known in labels.items()}
    return {slide: table.path.parent / Path(name).expanduser() for slide, name in said.items() if name}


def _as_it_is(file: MaskFile) -> SlideMask:
    try:
        return SlideMask(file, file.identity())
    except FishError:
        return SlideMask(file, "")


def _not_understood(path: Path, table: LabelTable | None, slides: int) -> str:
    if path.exists():
        return f"{path}: is one mask for {slides} slides. Give a folder with a mask for each."
    columns = "there is no labels file"
    if table is not None:
        columns = f"the labels file has {', '.join(header for header, _ in table.kept_as)}"
    return f"--mask {path}: is neither a folder or file that is there nor a column of the labels ({columns}). Check its name."
