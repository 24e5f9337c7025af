"""Which squares of the slide lie on tissue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_fish.mosaic.params import MosaicParams
from napari_fish.mosaic.tissue.find import Tissue

BETWEEN_20X_AND_40X = 0.375
"""µm per px that tells a 40x slide (0.25) from a 20x slide (0.5)."""


@dataclass(frozen=True)
class Block:
    """Neighbouring patches that are read at once.

    Attributes
    ----------
    x, y : int
        Top left corner in level-0 px.
    columns, rows : int
        Size in patches.
    members : tuple of (int, int, int)
        Number of each patch wanted, and its column and row in the block.
    """

    x: int
    y: int
    columns: int
    rows: int
    members: tuple[tuple[int, int, int], ...]


def patch_size(mpp: float, params: MosaicParams) -> int:
    """Return the side of a patch in level-0 px, for a slide of ``mpp`` µm per level-0 px."""
    if params.patch_rule == "objective":
        return params.patch * (2 if mpp < BETWEEN_20X_AND_40X else 1)
    return max(1, round(params.patch * params.mpp / mpp))


def patches_on(tissue: Tissue, size: int) -> list[NDArray[np.int64]]:
    """Return the corners of the patches on each piece of tissue.

    A patch is in when any of its centre ± a quarter of its side lies in the piece, and its centre in
    none of the piece's holes.

    Parameters
    ----------
    tissue : Tissue
        Where there is tissue.
    size : int
        Side of a patch in level-0 px.

    Returns
    -------
    list of ndarray of int64, each of shape (n, 2)
        Corners x, y in level-0 px, row by row, on a grid that starts at the piece's bounding box.
    """
    result = []
    quarter = size / 4
    for label, box in enumerate(ndimage.find_objects(tissue.labels), start=1):
        rows, columns = box
        left, top = int(columns.start * tissue.scale[0]), int(rows.start * tissue.scale[1])
        right, bottom = columns.stop * tissue.scale[0], rows.stop * tissue.scale[1]
        x, y = (a.ravel() for a in np.meshgrid(np.arange(left, right, size), np.arange(top, bottom, size)))
        centre_x, centre_y = x + size / 2, y + size / 2
        inside = np.zeros(len(x), bool)
        for shift_x in (-quarter, quarter):
            for shift_y in (-quarter, quarter):
                inside |= _at(tissue.labels, tissue, centre_x + shift_x, centre_y + shift_y) == label
        inside &= _at(tissue.holes, tissue, centre_x, centre_y) != label
        result.append(np.stack([x[inside], y[inside]], axis=1).astype(np.int64))
    return result


def centred_patch(tissue: Tissue, size: int) -> NDArray[np.int64]:
    """Return the corner, shape (1, 2), of the patch around the middle of the largest piece of tissue."""
    largest = int(np.argmax([contour.area_um2 for contour in tissue.contours])) + 1
    rows, columns = ndimage.find_objects(tissue.labels)[largest - 1]
    x = (columns.start + columns.stop) / 2 * tissue.scale[0] - size / 2
    y = (rows.start + rows.stop) / 2 * tissue.scale[1] - size / 2
    return np.array([[max(0, round(x)), max(0, round(y))]], np.int64)


def blocks(corners: list[NDArray[np.int64]], size: int, side: int) -> Iterator[Block]:
    """Group patches into blocks of at most ``side`` by ``side`` that are read at once.

    Parameters
    ----------
    corners : list of ndarray, each of shape (n, 2)
        Corners of patches in level-0 px, one array per grid; numbered through in this order.
    size : int
        Side of a patch in level-0 px.
    side : int
        Side of a block in patches.
    """
    number = 0
    for grid in corners:
        if len(grid) == 0:
            continue
        cell = (grid - grid.min(axis=0)) // size
        block = cell // side
        order = np.lexsort((block[:, 0], block[:, 1]))
        changes = np.nonzero(np.any(np.diff(block[order], axis=0), axis=1))[0] + 1
        for members in np.split(order, changes):
            first, last = cell[members].min(axis=0), cell[members].max(axis=0)
            x, y = grid.min(axis=0) + first * size
            columns, rows = last - first + 1
            places = tuple(
                (int(number + m), int(cell[m, 0] - first[0]), int(cell[m, 1] - first[1])) for m in members
            )
            yield Block(int(x), int(y), int(columns), int(rows), places)
        number += len(grid)


def _at(
    image: NDArray[np.int32], tissue: Tissue, x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.int32]:
    """Look up points given in level-0 px; 0 outside the image."""
    column = np.floor(x / tissue.scale[0]).astype(np.int64)
    row = np.floor(y / tissue.scale[1]).astype(np.int64)
    inside = (row >= 0) & (row < image.shape[0]) & (column >= 0) & (column < image.shape[1])
    result = np.zeros(len(x), np.int32)
    result[inside] = image[row[inside], column[inside]]
    return result
