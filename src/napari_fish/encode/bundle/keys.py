"""Latent codes become one integer: the key by which patches are ordered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CODES_SIDE = 64
"""Latent codes along one side of a patch."""
CODEWORDS = 128
"""Codewords in the codebook."""
UNIVERSE = 2**50
"""Every key is smaller than this."""
MAX_KEY = 812_832_512_130_048
"""The key of a patch whose every code is 127."""

_SHIFTS = (1, 10**6, 10**11)


def semantic_order(codebook: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Rank codewords along the codebook's first principal component.

    Parameters
    ----------
    codebook : ndarray, shape (n_codewords, dimension)
        The codewords.

    Returns
    -------
    ndarray of uint8, shape (n_codewords,)
        ``order[old] = new``. The component's sign is fixed so that its largest loading is positive,
        because a principal component has no sign of its own.
    """
    centred = np.asarray(codebook, np.float64)
    centred = centred - centred.mean(axis=0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    first = components[0]
    first = first * np.sign(first[np.argmax(np.abs(first))])
    ranks = np.empty(len(centred), np.uint8)
    ranks[np.argsort(centred @ first, kind="stable")] = np.arange(len(centred))
    return ranks


def keys_from_codes(codes: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Turn semantic codes into keys.

    Parameters
    ----------
    codes : ndarray of int, shape (n, 64, 64)
        Latent codes in semantic order, 0 to 127.

    Returns
    -------
    ndarray of uint64, shape (n,)
        ``S1 + S2 * 10**6 + S3 * 10**11``, where S1, S2 and S3 are the sums of the codes pooled
        2 x 2 once, twice and three times, with integer floor at every level.
    """
    level = np.asarray(codes)
    if level.ndim != 3 or level.shape[1:] != (CODES_SIDE, CODES_SIDE):
        raise ValueError(f"codes must have shape (n, {CODES_SIDE}, {CODES_SIDE}), not {level.shape}")
    if level.size and (level.min() < 0 or level.max() >= CODEWORDS):
        raise ValueError(f"codes must lie in 0..{CODEWORDS - 1}")
    level = level.astype(np.uint16)
    keys = np.zeros(len(level), np.uint64)
    for shift in _SHIFTS:
        level = (
            level[:, 0::2, 0::2] + level[:, 0::2, 1::2] + level[:, 1::2, 0::2] + level[:, 1::2, 1::2]
        ) // 4
        keys += level.sum(axis=(1, 2), dtype=np.uint64) * np.uint64(shift)
    return keys
