"""The latent codes of mosaics, where they are kept: keys can be computed again without encoding."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import DatabaseError

FOLDER = "codes.zarr"


def save_codes(database: Path, slide: str, codes: NDArray[np.uint8]) -> None:
    """Keep the codes of a slide, shape (n_mosaics, 64, 64), instead of those it had."""
    shape = codes.shape
    try:
        array = _group(database, "a").create_array(
            _name(slide), shape=shape, dtype=np.uint8, chunks=(max(1, len(codes)), *shape[1:]), overwrite=True,
            attributes={"slide": slide},
        )  # fmt: skip
        array[...] = codes
    except OSError as error:
        raise DatabaseError(
            f"{database / FOLDER}: cannot be written to ({error.strerror}); make room, or build without --store-codes."
        ) from error


def read_codes(database: Path, slide: str) -> NDArray[np.uint8]:
    """Return the codes of a slide, shape (n_mosaics, 64, 64), in the order of its mosaics."""
    if not has_codes(database, slide):
        raise DatabaseError(
            f"{database}: the codes of {slide} were not kept; build with --store-codes to keep them."
        )
    return np.asarray(_group(database, "r")[_name(slide)][...], np.uint8)


def has_codes(database: Path, slide: str) -> bool:
    """Whether the codes of a slide were kept."""
    return (database / FOLDER / _name(slide)).is_dir()


def remove_codes(database: Path, slide: str) -> None:
    """Forget the codes of a slide."""
    shutil.rmtree(database / FOLDER / _name(slide), ignore_errors=True)


def _name(slide: str) -> str:
    """Ids have characters that folders may not have."""
    return hashlib.blake2b(slide.encode(), digest_size=16).hexdigest()


def _group(database: Path, mode: Any) -> Any:
    import zarr

    return zarr.open_group(database / FOLDER, mode=mode, zarr_format=3)
