"""Texture features become bits, and bits become 64-bit words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WORD = 64


def words_for(bits: int) -> int:
    """Return how many 64-bit words hold ``bits`` bits."""
    return -(-bits // WORD)


def neighbour_bits(features: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Binarise as the paper does: each feature against the one before it.

    Parameters
    ----------
    features : ndarray, shape (n, length)
        Texture features.

    Returns
    -------
    ndarray of bool, shape (n, length)
        Bit 0 is 0; bit i is ``features[i] >= features[i - 1]``.
    """
    bits = np.zeros(features.shape, np.bool_)
    bits[:, 1:] = features[:, 1:] >= features[:, :-1]
    return bits


def projection_bits(
    features: NDArray[np.floating],
    projection: NDArray[np.floating],
    thresholds: NDArray[np.floating],
) -> NDArray[np.bool_]:
    """Binarise by which side of each of many planes a feature vector lies on.

    Parameters
    ----------
    features : ndarray, shape (n, dimension)
        Texture features.
    projection : ndarray, shape (dimension, length)
        Normals of the planes, one a column.
    thresholds : ndarray, shape (length,)
        Offset of each plane.

    Returns
    -------
    ndarray of bool, shape (n, length)
        Bit i is ``features @ projection[:, i] >= thresholds[i]``.
    """
    # Row by row in double precision: a matrix product may sum in another order for another batch. Not by BLAS:
    # its threads go on spinning for a while, and the networks' threads have to share the cores with them.
    wide = np.asarray(projection, np.float64)
    rows = [np.einsum("i,ij->j", np.asarray(row, np.float64), wide) for row in features]
    values = np.stack(rows) if rows else np.empty((0, wide.shape[1]))
    result: NDArray[np.bool_] = values >= np.asarray(thresholds, np.float64)
    return result


def pack(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack bits into words.

    Parameters
    ----------
    bits : ndarray of bool, shape (n, length)
        One barcode a row.

    Returns
    -------
    ndarray of uint64, shape (n, words)
        Bit i is bit ``i % 64`` of word ``i // 64``; bits that pad the last word are 0.
    """
    n, length = bits.shape
    padded = np.zeros((n, words_for(length) * WORD), np.bool_)
    padded[:, :length] = bits
    octets = np.packbits(padded, axis=1, bitorder="little")
    return octets.view(np.dtype("<u8")).astype(np.uint64, copy=False)


def unpack(barcodes: NDArray[np.uint64], length: int) -> NDArray[np.bool_]:
    """Undo :func:`pack`.

    Parameters
    ----------
    barcodes : ndarray of uint64, shape (n, words)
        Packed barcodes.
    length : int
        Bits of each barcode.

    Returns
    -------
    ndarray of bool, shape (n, length)
        The bits.
    """
    octets = np.ascontiguousarray(barcodes, dtype=np.dtype("<u8")).view(np.uint8)
    bits = np.unpackbits(octets, axis=1, bitorder="little")
    return bits[:, :length].astype(np.bool_)
