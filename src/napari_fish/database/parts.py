"""The main part of a snapshot: all mosaics up to a generation, in key order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from napari_fish.database.snapshot import PartWriter, SnapshotError, StaleSnapshot, open_part
from napari_fish.database.truth import IDENTITY, Truth
from napari_fish.index.arrays import Rows
from napari_fish.index.cells import CellPart
from napari_fish.index.clustered import ClusteredIndex
from napari_fish.index.codes import Codes, half, in_memory
from napari_fish.index.segment import Segment

MAIN = "main"
_CHUNK = 1 << 16
_CODES = ("head", "tail", "place")
_CELLS = ("centres", "cell_starts", "cell_rows", "cell_far")
_ROWS = ("keys", "offsets", "slides", "corners", "sizes", "by_slide")
_MAIN = (*_ROWS, *_CODES, "numbers", "counts", *_CELLS)


class Arrays(Protocol):
    """Where the arrays of a part come to lie: in files, or in memory."""

    def new(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array to be filled."""
        ...

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Take an array as it is."""
        ...

    def scratch(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array to be filled that is no part of it."""
        ...


class InMemory(dict[str, NDArray[Any]]):
    """Arrays in memory, for a folder that cannot be written to."""

    def new(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array to be filled."""
        self[name] = in_memory(name, shape, dtype)
        return self[name]

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Take an array as it is."""
        self[name] = array

    def scratch(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array to be filled that is no part of it."""
        return np.empty(shape, dtype)


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
        codes = Codes(*(arrays[name] for name in _CODES))
        segment = Segment(arrays["keys"], arrays["offsets"], codes, arrays["slides"])
        cells = CellPart(arrays["cell_starts"], arrays["cell_rows"], arrays["cell_far"])
        clusters = ClusteredIndex(arrays["centres"], segment, cells)
        return cls(
            segment, arrays["corners"], arrays["sizes"], arrays["by_slide"], arrays["numbers"], arrays["counts"],
            clusters, generation,
        )  # fmt: skip

    @classmethod
    def open(cls, folder: Path, truth: Truth) -> MainPart:
        """Map the main part of a snapshot, if it is of this truth."""
        part = open_part(folder / MAIN, _MAIN)
        if part.facts.get(IDENTITY, "") != truth.identity:
            raise StaleSnapshot(f"{folder}: of another database than {truth.path}.")
        if part.generation > truth.generation:
            raise StaleSnapshot(f"{folder}: of a later state than {truth.path}.")
        try:
            found = cls.from_arrays(part.arrays, part.generation)
        except Exception as error:
            # Whatever it is, the part has to be made again.
            raise SnapshotError(f"{folder}: the arrays do not fit each other ({error}).") from error
        if found.segment.words != truth.words or not found._fits():
            raise SnapshotError(f"{folder}: the arrays do not fit each other.")
        return found

    def _fits(self) -> bool:
        """Whether lengths and sums agree."""
        rows, cells = len(self.segment), self.clusters.cells
        counted = len(self.counts) == len(self.numbers) and int(self.counts.sum()) == rows
        sized = len(self.corners) == len(self.by_slide) == rows and len(self.sizes) in (
            len(self.numbers),
            rows,
        )
        celled = len(cells.starts) == len(self.clusters.centres) + 1 and int(cells.starts[-1]) == rows
        return (
            counted
            and sized
            and celled
            and len(cells.rows) == len(cells.far) == len(self.segment.codes.tail) == rows
        )

    def damage(self) -> str:
        """Say what would make a search read where nothing is: numbers of rows and slides that are not there.

        This reads the large arrays of numbers, 40 MB each at ten million rows, and so is no part of opening.
        """
        rows = len(self.segment)
        for name, array, end in (
            ("slides", self.segment.slides, len(self.numbers)),
            ("by_slide", self.by_slide, rows),
            ("cell_rows", self.clusters.cells.rows, rows),
            ("place", self.segment.codes.place, rows),
        ):
            # Seen without a sign, a number below zero is a large one.
            if len(array) and int(array.view(np.uint32).max()) >= end:
                return f"{name}: numbers of what is not there."
        offsets = self.segment.offsets
        for start in range(0, len(offsets) - 1, _CHUNK):
            some = offsets[start : start + _CHUNK + 1]
            if (some[1:] < some[:-1]).any():
                return "offsets: not in order."
        return "" if offsets[0] == 0 else "offsets: not in order."

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
    head = arrays.new("head", (n, half(truth.words)), np.uint64)
    tail = arrays.scratch((n, truth.words - half(truth.words)), np.uint64)
    slides = arrays.new("slides", (n,), np.int32)
    corners = arrays.new("corners", (n, 2), np.int32)
    sizes = np.empty((n, 2), np.int32)
    done = 0
    for some in truth.mosaics_by_key():
        at = slice(done, done + len(some))
        if at.stop > n:
            raise SnapshotError(f"{truth.folder}: slides and mosaics do not fit each other.")
        row_keys[at], corners[at], sizes[at] = some.keys, some.boxes[:, :2], some.boxes[:, 2:]
        head[at], tail[at] = np.split(some.barcodes, [head.shape[1]], axis=1)
        slides[at] = np.searchsorted(numbers, some.numbers)
        done = at.stop
    if done != n or not np.array_equal(np.bincount(slides, minlength=len(numbers)), counts):
        raise SnapshotError(f"{truth.folder}: slides and mosaics do not fit each other.")
    keys, first = np.unique(row_keys, return_index=True)
    offsets = np.append(first, n).astype(np.int32)
    segment = Segment(keys, offsets, Codes(head, tail, np.arange(n, dtype=np.int32)), slides)
    clusters = ClusteredIndex.train(segment, threads=threads, room=arrays.new)
    for name, array in (
        ("keys", keys), ("offsets", offsets), ("numbers", numbers), ("counts", counts),
        ("by_slide", np.argsort(slides, kind="stable").astype(np.int32)),
        ("sizes", _shared_sizes(sizes, np.asarray(slides), len(numbers))),
        ("centres", clusters.centres), ("cell_starts", clusters.cells.starts), ("cell_rows", clusters.cells.rows),
        ("cell_far", clusters.cells.far),
    ):  # fmt: skip
        arrays.save(name, array)


def _shared_sizes(sizes: NDArray[np.int32], slides: NDArray[np.int32], n_slides: int) -> NDArray[np.int32]:
    """Return one size a slide where all its mosaics are alike, as they are unless cut by hand."""
    shared = np.zeros((n_slides, 2), np.int32)
    shared[slides] = sizes
    alike = n_slides != len(sizes) and np.array_equal(shared[slides], sizes)
    return shared if alike else sizes
