"""The two kinds of parts a snapshot has: one main part in key order, and deltas with what came later."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from napari_fish.database.records import Mosaics
from napari_fish.database.snapshot import Part, PartWriter, SnapshotError, open_part
from napari_fish.database.truth import IDENTITY, Truth
from napari_fish.index.arrays import Rows, Segment
from napari_fish.index.clustered import CellPart, ClusteredIndex

MAIN = "main"
_SEGMENT = ("keys", "offsets", "barcodes", "slides")
_CELLS = ("centres", "bits", "cell_starts", "cell_rows", "sketches")
_MAIN = (*_SEGMENT, "corners", "sizes", "by_slide", "numbers", "counts", *_CELLS)
_DELTA = ("keys", "barcodes", "numbers", "boxes", "slides")


class Arrays(Protocol):
    """Where the arrays of a part come to lie: in files, or in memory."""

    def new(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array to be filled."""
        ...

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Take an array as it is."""
        ...


class InMemory(dict[str, NDArray[Any]]):
    """Arrays in memory, for a folder that cannot be written to."""

    def new(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array to be filled."""
        self[name] = np.empty(shape, dtype)
        return self[name]

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Take an array as it is."""
        self[name] = array


@dataclass(frozen=True, eq=False)
class MainPart:
    """All slides up to a generation.

    Attributes
    ----------
    segment
        Mosaics in key order; slides are positions in ``numbers``.
    corners : int32, shape (n_rows, 2)
        x and y in level-0 px.
    sizes : int32, shape (n_slides, 2) or (n_rows, 2)
        Width and height: of all mosaics of a slide where they are alike, else of each.
    by_slide : int32, shape (n_rows,)
        Rows ordered by slide.
    numbers, counts : int64, shape (n_slides,)
        Number of each slide in the truth, ascending, and its mosaics.
    clusters
        The same rows in cell order.
    generation
        Of the truth it was made from.
    """

    segment: Segment
    corners: NDArray[np.int32]
    sizes: NDArray[np.int32]
    by_slide: NDArray[np.int32]
    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]
    clusters: ClusteredIndex
    generation: int

    @classmethod
    def from_arrays(cls, arrays: Any, generation: int) -> MainPart:
        """Put arrays, by name, together."""
        segment = Segment(*(arrays[name] for name in _SEGMENT))
        cells = CellPart(arrays["cell_starts"], arrays["cell_rows"], arrays["sketches"])
        clusters = ClusteredIndex(arrays["centres"], arrays["bits"], segment, main_cells=cells)
        return cls(
            segment, arrays["corners"], arrays["sizes"], arrays["by_slide"], arrays["numbers"], arrays["counts"],
            clusters, generation,
        )  # fmt: skip

    @classmethod
    def open(cls, folder: Path, truth: Truth) -> MainPart:
        """Map the main part of a snapshot, if it is of this truth."""
        part = open_part(folder / MAIN, _MAIN)
        if part.facts.get(IDENTITY, "") != truth.identity:
            raise SnapshotError(f"{folder}: of another database than {truth.path}.")
        if part.generation > truth.generation:
            raise SnapshotError(f"{folder}: of a later state than {truth.path}.")
        return cls.from_arrays(part.arrays, part.generation)

    @classmethod
    def make(cls, truth: Truth, folder: Path | None, threads: int = 1) -> MainPart:
        """Read the truth and write a main part; into memory where no folder is given."""
        with truth.reading():
            generation = truth.generation
            if folder is None:
                arrays = InMemory()
                _fill(arrays, truth, threads)
                return cls.from_arrays(arrays, generation)
            with PartWriter(folder / MAIN, generation, {IDENTITY: truth.identity}) as writer:
                _fill(writer, truth, threads)
            return cls.open(folder, truth)

    def boxes(self, rows: Rows) -> NDArray[np.int32]:
        """Return x, y, width, height of rows in level-0 px, shape (n, 4)."""
        at = rows if len(self.sizes) == len(self.corners) else self.segment.slides[rows]
        return np.hstack([self.corners[rows], self.sizes[at]])

    def rows_of(self, slide: int, first: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the rows of a slide; ``first`` is the running sum of :attr:`counts`."""
        return self.by_slide[first[slide] : first[slide + 1]]


def _fill(arrays: Arrays, truth: Truth, threads: int) -> None:
    """Read the truth, in key order, into the arrays of a main part."""
    per_slide = truth.numbers()
    numbers = np.fromiter(per_slide, np.int64, len(per_slide))
    counts = np.fromiter(per_slide.values(), np.int64, len(per_slide))
    n = int(counts.sum())
    row_keys = np.empty(n, np.int64)
    barcodes = arrays.new("barcodes", (n, truth.words), np.uint64)
    slides = arrays.new("slides", (n,), np.int32)
    corners = arrays.new("corners", (n, 2), np.int32)
    sizes = np.empty((n, 2), np.int32)
    done = 0
    for some in truth.mosaics_by_key():
        at = slice(done, done + len(some))
        if at.stop > n:
            raise SnapshotError(f"{truth.folder}: slides and mosaics do not fit each other.")
        row_keys[at], barcodes[at], corners[at], sizes[at] = (
            some.keys,
            some.barcodes,
            some.boxes[:, :2],
            some.boxes[:, 2:],
        )
        slides[at] = np.searchsorted(numbers, some.numbers)
        done = at.stop
    if done != n:
        raise SnapshotError(f"{truth.folder}: slides and mosaics do not fit each other.")
    keys, first = np.unique(row_keys, return_index=True)
    offsets = np.append(first, n).astype(np.int32)
    segment = Segment(keys, offsets, barcodes, slides)
    clusters = ClusteredIndex.train(segment, threads=threads)
    cells = clusters.main_cells
    for name, array in (
        ("keys", keys), ("offsets", offsets), ("numbers", numbers), ("counts", counts),
        ("by_slide", np.argsort(slides, kind="stable").astype(np.int32)),
        ("sizes", _shared_sizes(sizes, np.asarray(slides), len(numbers))),
        ("centres", clusters.centres), ("bits", clusters.bits), ("cell_starts", cells.starts),
        ("cell_rows", cells.rows), ("sketches", cells.sketches),
    ):  # fmt: skip
        arrays.save(name, array)


def _shared_sizes(sizes: NDArray[np.int32], slides: NDArray[np.int32], n_slides: int) -> NDArray[np.int32]:
    """Return one size a slide where all its mosaics are alike, as they are unless cut by hand."""
    shared = np.zeros((n_slides, 2), np.int32)
    shared[slides] = sizes
    alike = n_slides != len(sizes) and np.array_equal(shared[slides], sizes)
    return shared if alike else sizes


@dataclass(frozen=True, eq=False)
class Delta:
    """The slides that came after one generation, up to another.

    Attributes
    ----------
    mosaics
        By slide.
    slides : int64, shape (n,)
        Numbers of the slides, those without mosaics included.
    after, generation
        The generations it lies between; the first is not part of it.
    identity
        Of the database it belongs to.
    """

    mosaics: Mosaics
    slides: NDArray[np.int64]
    after: int
    generation: int
    identity: str

    @classmethod
    def from_truth(cls, truth: Truth, after: int) -> Delta:
        """Read what came after a generation."""
        generation = truth.generation
        slides = np.fromiter(truth.numbers(after), np.int64)
        return cls(truth.mosaics(after), slides, after, generation, truth.identity)

    @classmethod
    def joined(cls, deltas: Sequence[Delta]) -> Delta:
        """Put consecutive deltas together."""
        parts = [delta.mosaics for delta in deltas]
        columns = ("keys", "barcodes", "numbers", "boxes")
        mosaics = Mosaics(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))
        slides = np.concatenate([delta.slides for delta in deltas])
        return cls(mosaics, slides, deltas[0].after, deltas[-1].generation, deltas[0].identity)

    def without(self, numbers: Sequence[int]) -> Delta:
        """Return it without some slides."""
        if not len(numbers):
            return self
        keep, m = ~np.isin(self.mosaics.numbers, numbers), self.mosaics
        mosaics = Mosaics(m.keys[keep], m.barcodes[keep], m.numbers[keep], m.boxes[keep])
        return replace(self, mosaics=mosaics, slides=np.setdiff1d(self.slides, numbers))

    def __len__(self) -> int:
        return len(self.mosaics)

    def _place(self, folder: Path) -> Path:
        return folder / f"delta-{self.after}-{self.generation}"

    def write(self, folder: Path) -> None:
        """Write it; nothing waits for the disk, since it is checked whenever it is opened."""
        facts = {"after": self.after, IDENTITY: self.identity}
        with PartWriter(self._place(folder), self.generation, facts, durable=False) as writer:
            for name in _DELTA[:-1]:
                writer.save(name, getattr(self.mosaics, name))
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


def open_deltas(folder: Path, truth: Truth, after: int) -> list[Delta]:
    """Open the deltas that follow one another without a gap from one generation, at most until the truth's."""
    found: dict[int, list[tuple[int, Path]]] = {}
    for first, last, path in part_folders(folder):
        if last <= truth.generation:
            found.setdefault(first, []).append((last, path))
    chain: list[Delta] = []
    while paths := found.pop(after, []):
        # The longest one first: a shorter one may be left from a crash.
        for _, path in sorted(paths, reverse=True):
            try:
                part = open_part(path, _DELTA, checked=True)
                if part.facts.get(IDENTITY, "") != truth.identity:
                    continue
            except SnapshotError:
                continue
            chain.append(_delta(part))
            after = part.generation
            break
    return chain


def delete_later(folder: Path, generation: int) -> None:
    """Remove deltas of a later state: the truth was restored from a copy, and will have another one under its number."""
    for _, last, path in part_folders(folder):
        if last > generation:
            shutil.rmtree(path, ignore_errors=True)


def _delta(part: Part) -> Delta:
    mosaics = Mosaics(*(part.arrays[name] for name in _DELTA[:-1]))
    identity = str(part.facts.get(IDENTITY, ""))
    return Delta(mosaics, part.arrays["slides"], int(part.facts["after"]), part.generation, identity)


def delete_others(folder: Path, kept: Iterable[Delta]) -> None:
    """Remove deltas that are not used any more, and what crashes left."""
    names = {delta._place(folder).name for delta in kept} | {MAIN}
    for path in folder.iterdir():
        if path.is_dir() and path.name not in names:
            shutil.rmtree(path, ignore_errors=True)
