"""Search in the nearest cells: an ordered key and a fixed budget of contiguous reads, as in guided search.

The key is the cell of a clustering of the barcodes, so near in key means near in Hamming distance. Barcodes are
kept once, in key order; in cell order lies a sketch of each, one bit in four, plane by plane, so that many rows
are compared with one instruction. Rows are compared in full as long as their sketches leave them a chance to be
nearer than what was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log2

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import (
    Barcodes,
    Mask,
    Masks,
    NeighbourLists,
    Segment,
    as_barcodes,
    frozen,
    in_threads,
)
from napari_fish.index.cells import CellFinder, binary_kmeans
from napari_fish.index.hamming import pair_distances, unpack_bits
from napari_fish.index.probing import search_many
from napari_fish.index.sketches import choose_bits, reaches, sketches_of

# Rows that are compared with the centre of their cell, to choose the bits of sketches, and to learn what these say.
PAIRS, FEW_PAIRS = 8192, 256


@dataclass(frozen=True)
class ClusterParams:
    """How cells are made and searched.

    Attributes
    ----------
    cells
        Number of cells; None for 4 times the square root of the number of mosaics.
    sample
        Barcodes per cell that the clustering is trained on.
    rounds
        Rounds of k-means.
    seed
        Where k-means begins.
    probes
        Cells searched for a query, the nearest first.
    margin
        Rows are compared in full unless their sketch says, by more than so many standard deviations, that they are
        too far; infinite for all rows of the cells searched. For up to 16 probes: those who look into more cells
        want more of the neighbours, so each doubling adds a quarter.
    sketch
        One bit in so many is in the sketch.
    """

    cells: int | None = None
    sample: int = 40
    rounds: int = 8
    seed: int = 0
    probes: int = 32
    margin: float = 1.75
    sketch: int = 4


@dataclass(frozen=True, eq=False)
class CellPart:
    """One segment's rows in cell order.

    Attributes
    ----------
    starts : int32, shape (n_cells + 1,)
        Entries ``starts[c]:starts[c + 1]`` lie in cell ``c``.
    rows : int32, shape (n_rows,)
        The row of the segment each entry stands for.
    sketches : uint64, shape (sketch_words, n_rows)
        Sketches, one word of all entries after the other.
    """

    starts: NDArray[np.int32]
    rows: NDArray[np.int32]
    sketches: NDArray[np.uint64]

    def __post_init__(self) -> None:
        for name, dtype, ndim in (("starts", np.int32, 1), ("rows", np.int32, 1), ("sketches", np.uint64, 2)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, ndim))


class ClusteredIndex:
    """Cells over a main segment and a small later one.

    Parameters
    ----------
    centres : uint64, shape (n_cells, words)
        Cell centres.
    bits : int32, shape (n_sketch_bits,)
        The bits of a barcode that make its sketch.
    main, delta
        Segments in key order.
    main_cells, delta_cells
        The same rows in cell order; made here where not given.
    finder, centre_sketches
        Finds cells, and the sketches of their centres; made here where not given.
    """

    def __init__(
        self,
        centres: ArrayLike,
        bits: ArrayLike,
        main: Segment,
        delta: Segment | None = None,
        *,
        main_cells: CellPart | None = None,
        delta_cells: CellPart | None = None,
        finder: CellFinder | None = None,
        centre_sketches: NDArray[np.uint64] | None = None,
        threads: int = 1,
    ) -> None:
        self.centres: Barcodes = frozen(centres, np.uint64, 2)
        self.bits: NDArray[np.int32] = frozen(bits, np.int32)
        self.main, self.delta = main, delta if delta is not None else Segment.empty(main.words)
        self.finder = finder or CellFinder(self.centres)
        if centre_sketches is not None:
            self.centre_sketches = centre_sketches
        self.main_cells = main_cells or self._ordered(self.main, self.finder(self.main.barcodes, threads)[0])
        self.delta_cells = delta_cells or self._ordered(
            self.delta, self.finder(self.delta.barcodes, threads)[0]
        )
        self._parts = tuple(
            (cells.starts, cells.rows, cells.sketches, part.barcodes, part.slides)
            for part, cells in ((self.main, self.main_cells), (self.delta, self.delta_cells))
        )

    @classmethod
    def train(cls, main: Segment, params: ClusterParams | None = None, *, threads: int = 1) -> ClusteredIndex:
        """Make cells for a segment; the same segment gives the same cells."""
        p = params or ClusterParams()
        n_cells = p.cells or max(1, round(4 * len(main) ** 0.5))
        dice = np.random.default_rng(p.seed)
        size = min(len(main), p.sample * n_cells)
        sample = (
            main.barcodes[np.sort(dice.choice(len(main), size, replace=False))] if size else main.barcodes
        )
        centres = binary_kmeans(sample, n_cells, seed=p.seed, rounds=p.rounds, threads=threads) if size else (
            np.zeros((1, main.words), np.uint64)
        )  # fmt: skip
        some = sample[:: max(1, size // PAIRS)]
        finder = CellFinder(centres)
        flips = unpack_bits(some ^ finder.centres[finder(some, threads)[0]])
        return cls(centres, choose_bits(flips, p.sketch), main, finder=finder, threads=threads)

    def with_delta(self, delta: Segment, cell: NDArray[np.int32]) -> ClusteredIndex:
        """Return the same index with another later segment, the cells of whose rows are known, shape (n,)."""
        return ClusteredIndex(
            self.centres, self.bits, self.main, delta, main_cells=self.main_cells,
            delta_cells=self._ordered(delta, cell), finder=self.finder, centre_sketches=self.centre_sketches,
        )  # fmt: skip

    def _ordered(self, part: Segment, cell: NDArray[np.int32]) -> CellPart:
        rows = np.argsort(cell, kind="stable").astype(np.int32)
        starts = np.searchsorted(cell[rows], np.arange(len(self.centres) + 1)).astype(np.int32)
        return CellPart(starts, rows, sketches_of(part.barcodes, rows, self.bits))

    @cached_property
    def centre_sketches(self) -> NDArray[np.uint64]:
        """Sketches of the cells' centres, shape (sketch_words, n_cells)."""
        return sketches_of(self.centres, np.arange(len(self.centres), dtype=np.int32), self.bits)

    @cached_property
    def _ratio(self) -> float:
        """Bits in which near barcodes differ, for each bit of their sketches."""
        part = self.main_cells
        some = np.linspace(0, len(part.rows) - 1, min(FEW_PAIRS, len(part.rows))).astype(np.int64)
        cell = np.searchsorted(part.starts, some, "right") - 1
        far = pair_distances(self.main.barcodes[part.rows[some]], self.centres[cell]).sum()
        sketched = pair_distances(part.sketches[:, some].T, self.centre_sketches[:, cell].T).sum()
        return float(far / sketched) if sketched else 64 * self.main.words / len(self.bits)

    def search(
        self,
        barcodes: ArrayLike,
        *,
        k: int = 50,
        radius: int | None = None,
        probes: int = 32,
        margin: float = 1.75,
        mask: Mask | None = None,
        which: ArrayLike | None = None,
        threads: int = 1,
    ) -> NeighbourLists:
        """Find neighbours of each barcode in the nearest cells.

        Parameters
        ----------
        barcodes : uint64, shape (n_queries, words)
            Query barcodes.
        k, radius
            At most this many neighbours, at most this far (bits, included; None for any distance).
        probes, margin
            As in :class:`ClusterParams`.
        mask, which, threads
            As in :func:`~napari_fish.index.exact.exact_neighbours`.
        """
        codes = as_barcodes(barcodes, self.main.words)
        masks = Masks.over(mask, len(codes), which)
        most = 64 * self.main.words
        reach = most if radius is None else min(int(radius), most)
        wide = margin + 0.25 * max(0.0, log2(max(probes, 1) / 16))
        tables = reaches(most, len(self.bits), self._ratio, wide), reaches(most, most // 2, 2.0, wide)
        main, delta = self._parts

        def work(a: int, b: int) -> NeighbourLists:
            rows, near, counts = search_many(
                self.centres, self.centre_sketches, self.bits, main, delta, codes[a:b], masks.allowed,
                masks.which[a:b], probes, *tables, reach, k,
            )  # fmt: skip
            return NeighbourLists.from_table(rows, near, counts)

        return NeighbourLists.joined(in_threads(work, len(codes), threads))
