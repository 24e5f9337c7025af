"""Deltas of a snapshot: what came after its main part, a little at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.store.records import Patches
from napari_fish.store.snapshot.files import Part, PartWriter, SnapshotError, open_part
from napari_fish.store.snapshot.fitting import delta_misfit
from napari_fish.store.snapshot.main_part import MAIN
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from napari_fish.store.sqlite.state import IDENTITY

_DELTA = ("keys", "barcodes", "numbers", "boxes", "slides")


@dataclass(frozen=True, eq=False)
class Delta:
    """The slides that came after one generation, up to another.

    Attributes
    ----------
    patches
        By slide.
    slides : int64, shape (n,)
        Numbers of the slides, those without patches included.
    after, generation
        The generations it lies between; the first is not part of it.
    identity
        Of the database it belongs to.
    """

    patches: Patches
    slides: NDArray[np.int64]
    after: int
    generation: int
    identity: str

    @classmethod
    def from_truth(cls, catalogue: SqliteCatalogue, after: int) -> Delta:
        """Read what came after a generation."""
        generation = catalogue.generation
        slides = np.fromiter(catalogue.numbers(after), np.int64)
        return cls(catalogue.patches(after), slides, after, generation, catalogue.identity)

    @classmethod
    def joined(cls, deltas: Sequence[Delta]) -> Delta:
        """Put consecutive deltas together."""
        parts = [delta.patches for delta in deltas]
        columns = ("keys", "barcodes", "numbers", "boxes")
        patches = Patches(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))
        slides = np.concatenate([delta.slides for delta in deltas])
        return cls(patches, slides, deltas[0].after, deltas[-1].generation, deltas[0].identity)

    def without(self, numbers: Sequence[int]) -> Delta:
        """Return it without some slides."""
        if not len(numbers):
            return self
        keep, m = ~np.isin(self.patches.numbers, numbers), self.patches
        patches = Patches(m.keys[keep], m.barcodes[keep], m.numbers[keep], m.boxes[keep])
        return replace(self, patches=patches, slides=np.setdiff1d(self.slides, numbers))

    def __len__(self) -> int:
        return len(self.patches)

    def _place(self, folder: Path) -> Path:
        return folder / f"delta-{self.after}-{self.generation}"

    def write(self, folder: Path) -> None:
        """Write it; nothing waits for the disk, since it is checked whenever it is opened."""
        facts = {"after": self.after, IDENTITY: self.identity}
        with PartWriter(self._place(folder), self.generation, facts, durable=False) as writer:
            for name in _DELTA[:-1]:
                writer.save(name, getattr(self.patches, name))
            writer.save("slides", self.slides)

    def delete(self, folder: Path) -> None:
        """Remove it from a snapshot."""
        shutil.rmtree(self._place(folder), ignore_errors=True)


def part_folders(folder: Path) -> list[tuple[int, int, Path]]:
    """Return the parts of a snapshot: the generations each lies between, and its folder; the main part is after -1."""
    found = [(-1, -1, folder / MAIN)] if (folder / MAIN).exists() else []
    for path in sorted(folder.glob("delta-*-*")):
        first, _, last = path.name.removeprefix("delta-").partition("-")
        if first.isdecimal() and last.isdecimal():
            found.append((int(first), int(last), path))
    return found


def open_deltas(folder: Path, catalogue: SqliteCatalogue, after: int, highest: int = -1) -> list[Delta]:
    """Open the deltas that follow one another without a gap from one generation, at most until the catalogue's.

    Parameters
    ----------
    folder
        The snapshot.
    catalogue
        Whose it is.
    after
        The generation of the main part.
    highest
        The highest number of a slide in the main part.
    """
    found: dict[int, list[tuple[int, Path]]] = {}
    for first, last, path in part_folders(folder):
        if first < last <= catalogue.generation:
            found.setdefault(first, []).append((last, path))
    chain: list[Delta] = []
    while paths := found.pop(after, []):
        # The longest one first: a shorter one may be left from a crash.
        for last, path in sorted(paths, reverse=True):
            try:
                part = open_part(path, _DELTA, checked=True)
                if part.facts.get(IDENTITY, "") != catalogue.identity or part.generation != last:
                    continue
                if part.facts.get("after") != after or delta_misfit(part.arrays, catalogue.words, highest):
                    continue
            except SnapshotError:
                continue
            mine = max([highest, *part.arrays["slides"].tolist()])
            later = catalogue.first_number(last)
            if later is not None and later <= mine:
                continue
            chain.append(_delta(part))
            highest, after = mine, last
            break
    return chain


def delete_later(folder: Path, generation: int) -> None:
    """Remove deltas of a later state: the catalogue was restored from a copy, and will have another one under its number."""
    for _, last, path in part_folders(folder):
        if last > generation:
            shutil.rmtree(path, ignore_errors=True)


def _delta(part: Part) -> Delta:
    patches = Patches(*(part.arrays[name] for name in _DELTA[:-1]))
    identity = str(part.facts.get(IDENTITY, ""))
    return Delta(patches, part.arrays["slides"], int(part.facts["after"]), part.generation, identity)


def delete_others(folder: Path, kept: Iterable[Delta]) -> None:
    """Remove deltas that are not used any more, and what crashes left."""
    names = {delta._place(folder).name for delta in kept} | {MAIN}
    for path in folder.iterdir():
        if path.is_dir() and path.name not in names:
            shutil.rmtree(path, ignore_errors=True)
