"""A slide becomes its mosaic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_fish.mosaic.artefacts.filters import Measured, Measurer
from napari_fish.mosaic.artefacts.judge import doubtful, judged, patch_of
from napari_fish.mosaic.covering import covering_patches
from napari_fish.mosaic.grid import Block, blocks, centred_patch, patch_size, patches_on
from napari_fish.mosaic.masks.given import MaskLike, tissue_from_mask
from napari_fish.mosaic.params import MosaicParams
from napari_fish.mosaic.reading import known_mpp, overlapped
from napari_fish.mosaic.released import by_columns, without_single_patches
from napari_fish.mosaic.select import colour_clusters, representatives
from napari_fish.mosaic.tissue.contours import within
from napari_fish.mosaic.tissue.find import Tissue, segment
from napari_fish.mosaic.tissue.represented import brought_back, tissue_after_all
from napari_fish.mosaic.values import Mosaic, Patch
from napari_fish.slides import Slide
from napari_fish.slides.bicubic import read_bicubic, resized_bicubic
from napari_fish.work import Progress, ShouldStop

BLOCK_PX = 1024
"""Side of a block read at once, in px as read: wide enough that few tiles are decoded twice."""


def make_mosaic(
    slide: Slide,
    params: MosaicParams | None = None,
    mask: MaskLike | None = None,
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
    threads: int | None = None,
) -> Mosaic:
    """Choose the patches that stand for a slide.

    Parameters
    ----------
    slide : Slide
        A slide whose mpp is known.
    params : MosaicParams, optional
        The parameters, such as ``preset("paper")``.
    mask : array, path or polygons, optional
        Where the tissue is, instead of finding it; see :func:`~napari_fish.mosaic.masks.tissue_from_mask`.
    progress : callable, optional
        Called with the work done and all the work.
    should_stop : callable, optional
        Asked now and then; when it says yes, :class:`~napari_fish.errors.Cancelled` is raised.
    threads : int, optional
        How many threads read and measure; never changes the result.

    Returns
    -------
    Mosaic
        At least one patch.

    Raises
    ------
    NoTissue
        When there is no tissue on the slide, with the reason.
    SlideError
        When the slide's mpp is unknown, or when it is a label or macro image.
    """
    params = params or MosaicParams()
    mpp = known_mpp(slide)
    report = progress or (lambda done, total: None)
    report(0, 100)
    size = patch_size(mpp, params)
    if mask is None:
        tissue = segment(slide, params.tissue, threads=threads, should_stop=should_stop)
    else:
        tissue = tissue_from_mask(slide, mask, params.tissue, size)
    report(20, 100)
    corners = patch_corners(slide, tissue, size, params, mask is not None)
    places = np.concatenate(corners)
    reader = _Reader(slide, Measurer(params), size)
    measured = reader.measure(corners, report, should_stop, threads)
    patches, rescued = judged(slide.path, places, measured, params)
    patches = brought_back(tissue, patches, size)
    kept = np.array([i for i, patch in enumerate(patches) if not patch.reason])
    histograms = np.stack([measured[i].histogram for i in kept])
    clusters = colour_clusters(histograms, params.clusters, params.n_init, params.seed)
    candidates = [replace(patches[i], cluster=int(c)) for i, c in zip(kept, clusters, strict=True)]
    chosen = _chosen(candidates, params, reader)
    report(100, 100)
    return Mosaic(
        slide=slide.path,
        dimensions=slide.dimensions,
        mpp=mpp,
        patch_size=size,
        patches=tuple(chosen),
        candidates=tuple(candidates),
        dropped=tuple(patch for patch in patches if patch.reason),
        contours=within(tissue_after_all(tissue, patches, size), slide.dimensions),
        params=replace(params, tissue=tissue.params),
        retried=tissue.retried,
        rescued=rescued,
        masked=mask is not None,
    )


def patch_corners(
    slide: Slide, tissue: Tissue, size: int, params: MosaicParams, masked: bool = False
) -> list[NDArray[np.int64]]:
    """Return the corners of the patches on tissue, one array a grid."""
    if params.placement == "covering":
        return covering_patches(tissue, size, slide.dimensions, params.least_tissue)
    corners = patches_on(tissue, size)
    if params.placement == "columns":
        corners = by_columns(corners)
        # Where a person says that there is tissue, a single patch of it is wanted.
        if not masked:
            corners = without_single_patches(slide, corners)
    # Where every piece is too small for the grid, what tissue there is must still be represented.
    return corners if any(len(grid) for grid in corners) else [centred_patch(tissue, size)]


@dataclass(frozen=True)
class _Reader:
    """Reads patches at the scale at which they are measured."""

    slide: Slide
    measurer: Measurer
    size: int

    def measure(
        self,
        corners: list[NDArray[np.int64]],
        report: Progress,
        should_stop: ShouldStop | None,
        threads: int | None,
    ) -> list[Measured]:
        """Read and measure every patch, several blocks at a time."""
        exact = self.measurer.params.reading == "bicubic"
        jobs = blocks(corners, self.size, 1 if exact else max(1, BLOCK_PX // self.measurer.side))
        count = sum(map(len, corners))
        result: dict[int, Measured] = {}
        for values in overlapped(self.block, jobs, threads=threads, should_stop=should_stop):
            result.update(values)
            report(20 + 70 * len(result) // count, 100)
        return [result[i] for i in range(count)]

    def block(self, block: Block) -> dict[int, Measured]:
        """Read a block and measure its patches, by their numbers."""
        side, params = self.measurer.side, self.measurer.params
        if params.reading == "bicubic":
            ((number, _, _),) = block.members
            patch = read_bicubic(self.slide, block.x, block.y, self.size, params.patch)
            return {number: self.measurer(resized_bicubic(patch, side))}
        mpp = known_mpp(self.slide) * self.size / side
        pixels = self.slide.read(block.x, block.y, block.columns * side, block.rows * side, mpp)
        result = {}
        for number, column, row in block.members:
            cut = pixels[row * side : (row + 1) * side, column * side : (column + 1) * side]
            result[number] = self.measurer(np.ascontiguousarray(cut))
        return result


def _chosen(candidates: Sequence[Patch], params: MosaicParams, reader: _Reader) -> list[Patch]:
    """Choose a few patches of each colour cluster."""
    members: list[Patch] = []
    centres: list[Patch] = []
    for cluster in sorted({patch.cluster for patch in candidates}):
        own = [patch for patch in candidates if patch.cluster == cluster]
        corners = np.array([(patch.x, patch.y) for patch in own], np.int64)
        doubts = np.array([doubtful(patch, params) for patch in own])
        nearest, middle = representatives(corners, params.share, params.n_init, params.seed, doubts)
        members += [own[i] for i in nearest]
        if params.representative == "centre":
            for x, y in middle.tolist():
                value = reader.block(Block(x, y, 1, 1, ((0, 0, 0),)))[0]
                if value.white <= params.white_share:
                    centres.append(patch_of(x, y, value, cluster=cluster))
    # Members were tested for white before; should every centre be white, members stand in.
    return centres or members
