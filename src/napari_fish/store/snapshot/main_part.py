"""The main part of a snapshot: all patches up to a generation, in key order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Rows
from napari_fish.index.barcodes import SplitBarcodes, half, in_memory
from napari_fish.index.clustered.search import ClusteredIndex
from napari_fish.index.kmeans import ClusterPart
from napari_fish.index.segment import Segment
from napari_fish.store.snapshot.files import PartWriter, SnapshotError, StaleSnapshot, Unread, open_part
from napari_fish.store.snapshot.fitting import danger, disagreement, misfit
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from napari_fish.store.sqlite.state import IDENTITY

MAIN = "main"
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
        Patches in key order; slides are positions in ``numbers``.
    corners : int32, shape (n_rows, 2)
        x and y in level-0 px.
    sizes : int32, shape (n_slides, 2) or (n_rows, 2)
        Width and height: of all patches of a slide where they are alike, else of each.
    by_slide : int32, shape (n_rows,)
        Rows ordered by slide.
    numbers, counts : int64, shape (n_slides,)
        Number of each slide in the catalogue, ascending, and its patches.
    clustered
        The same rows in cluster order.
    generation
        Of the catalogue it was made from.
    arrays
        All of these by name, as they lie in files.
    unread
        Large files that opening has compared only in part.
    """

    segment: Segment
    corners: NDArray[np.int32]
    sizes: NDArray[np.int32]
    by_slide: NDArray[np.int32]
    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]
    clustered: ClusteredIndex
    generation: int
    arrays: Mapping[str, NDArray[Any]]
    unread: Unread

    @property
    def highest(self) -> int:
        """The highest number of a slide; -1 where there is none."""
        return int(self.numbers[-1]) if len(self.numbers) else -1

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], generation: int, unread: Unread | None = None
    ) -> MainPart:
        """Put arrays, by name, together."""
        codes = SplitBarcodes(*(arrays[name] for name in _CODES))
        segment = Segment(arrays["keys"], arrays["offsets"], codes, arrays["slides"])
        clusters = ClusterPart(arrays["cell_starts"], arrays["cell_rows"], arrays["cell_far"])
        clustered = ClusteredIndex(arrays["centres"], segment, clusters)
        return cls(
            segment, arrays["corners"], arrays["sizes"], arrays["by_slide"], arrays["numbers"], arrays["counts"],
            clustered, generation, arrays, unread or {},
        )  # fmt: skip

    @classmethod
    def open(cls, folder: Path, catalogue: SqliteCatalogue) -> MainPart:
        """Map the main part of a snapshot, if it is of this catalogue."""
        part = open_part(folder / MAIN, _MAIN)
        if part.facts.get(IDENTITY, "") != catalogue.identity:
            raise StaleSnapshot(f"{folder}: of another database than {catalogue.path}.")
        if part.generation > catalogue.generation:
            raise StaleSnapshot(f"{folder}: of a later state than {catalogue.path}.")
        try:
            if wrong := misfit(part.arrays, catalogue.words):
                raise SnapshotError(f"{folder / MAIN}: {wrong}")
            found = cls.from_arrays(part.arrays, part.generation, part.unread)
        except SnapshotError:
            raise
        except Exception as error:
            # Whatever it is, the part has to be made again.
            raise SnapshotError(f"{folder}: the arrays do not fit each other ({error}).") from error
        later = catalogue.first_number(part.generation)
        if later is not None and later <= found.highest:
            raise SnapshotError(f"{folder / MAIN}: slides of another state than it says.")
        return found

    def damage(self) -> str:
        """Say what would lead a search astray; this reads arrays of all rows, and so is no part of opening."""
        return danger(self.arrays, self.segment.words)

    def disagreement(self) -> str:
        """Say which array is not what the others make of it; for ``verify``."""
        return disagreement(self.arrays)

    @classmethod
    def make(cls, catalogue: SqliteCatalogue, folder: Path | None, threads: int = 1) -> MainPart:
        """Read the catalogue and write a main part; into memory where no folder is given."""
        with catalogue.reading():
            generation = catalogue.generation
            if folder is None:
                arrays = InMemory()
                _fill(arrays, catalogue, threads)
                return cls.from_arrays(arrays, generation)
            with PartWriter(folder / MAIN, generation, {IDENTITY: catalogue.identity}) as writer:
                _fill(writer, catalogue, threads)
            return cls.open(folder, catalogue)

    def boxes(self, rows: Rows) -> NDArray[np.int32]:
        """Return x, y, width, height of rows in level-0 px, shape (n, 4)."""
        at = rows if len(self.sizes) == len(self.corners) else self.segment.slides[rows]
        return np.hstack([self.corners[rows], self.sizes[at]])


def _fill(arrays: Arrays, catalogue: SqliteCatalogue, threads: int) -> None:
    """Read the catalogue, in key order, into the arrays of a main part."""
    per_slide = catalogue.numbers()
    numbers = np.fromiter(per_slide, np.int64, len(per_slide))
    counts = np.fromiter(per_slide.values(), np.int64, len(per_slide))
    n = catalogue.count()
    if int(counts.sum()) != n:
        raise _no_fit(catalogue)
    row_keys = np.empty(n, np.int64)
    head = arrays.new("head", (n, half(catalogue.words)), np.uint64)
    tail = arrays.scratch((n, catalogue.words - half(catalogue.words)), np.uint64)
    slides = arrays.new("slides", (n,), np.int32)
    corners = arrays.new("corners", (n, 2), np.int32)
    sizes = np.empty((n, 2), np.int32)
    done = 0
    for some in catalogue.patches_by_key():
        at = slice(done, done + len(some))
        if at.stop > n:
            raise _no_fit(catalogue)
        row_keys[at], corners[at], sizes[at] = some.keys, some.boxes[:, :2], some.boxes[:, 2:]
        head[at], tail[at] = np.split(some.barcodes, [head.shape[1]], axis=1)
        slides[at] = np.searchsorted(numbers, some.numbers)
        done = at.stop
    if done != n or not np.array_equal(np.bincount(slides, minlength=len(numbers)), counts):
        raise _no_fit(catalogue)
    keys, first = np.unique(row_keys, return_index=True)
    offsets = np.append(first, n).astype(np.int32)
    segment = Segment(keys, offsets, SplitBarcodes(head, tail, np.arange(n, dtype=np.int32)), slides)
    clustered = ClusteredIndex.train(segment, threads=threads, room=arrays.new)
    for name, array in (
        ("keys", keys), ("offsets", offsets), ("numbers", numbers), ("counts", counts),
        ("by_slide", np.argsort(slides, kind="stable").astype(np.int32)),
        ("sizes", _shared_sizes(sizes, np.asarray(slides), len(numbers))),
        ("centres", clustered.centres), ("cell_starts", clustered.clusters.starts), ("cell_rows", clustered.clusters.rows),
        ("cell_far", clustered.clusters.far),
    ):  # fmt: skip
        arrays.save(name, array)


def _no_fit(catalogue: SqliteCatalogue) -> DatabaseError:
    return DatabaseError(
        f"{catalogue.folder}: {catalogue.path.name} is damaged (slides and patches do not fit each other); restore it from a copy, or "
        "build it again."
    )


def _shared_sizes(sizes: NDArray[np.int32], slides: NDArray[np.int32], n_slides: int) -> NDArray[np.int32]:
    """Return one size a slide where all its patches are alike, as they are unless cut by hand."""
    shared = np.zeros((n_slides, 2), np.int32)
    shared[slides] = sizes
    alike = n_slides != len(sizes) and np.array_equal(shared[slides], sizes)
    return shared if alike else sizes
