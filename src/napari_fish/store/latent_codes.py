"""The latent codes of patches, where they are kept: keys can be computed again without encoding."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.bundle.keys import CODES_SIDE, CODEWORDS
from napari_fish.errors import DatabaseError
from napari_fish.store.places import Location

FOLDER = "codes.zarr"
_DIGEST = "blake2b"
_MOST_SAID = 1 << 16
#: Patches are numbered in so many bits.
_MOST_PATCHES = 1 << 24


def save_codes(database: Location, slide: str, codes: NDArray[np.uint8]) -> None:
    """Keep the latent codes of a slide, shape (n_patches, 64, 64), instead of those it had."""
    shape, part, place = codes.shape, f"{_name(slide)}.part", _codes_of(database) / _name(slide)
    try:
        array = _group(database, "a").create_array(
            part, shape=shape, dtype=np.uint8, chunks=(max(1, len(codes)), *shape[1:]), overwrite=True,
            attributes={"slide": slide, _DIGEST: _digest(codes)}, config={"write_empty_chunks": True},
        )  # fmt: skip
        array[...] = codes
        # Under its own name only when it is whole: a kill leaves no codes rather than half of them.
        remove_codes(database, slide)
        place.with_name(part).rename(place)
    except OSError as error:
        raise DatabaseError(
            f"{_codes_of(database)}: cannot be written to ({error.strerror}); make room, or build without --store-codes."
        ) from error


def read_codes(database: Location, slide: str) -> NDArray[np.uint8]:
    """Return the latent codes of a slide, shape (n_patches, 64, 64), in the order of its patches."""
    if not has_codes(database, slide):
        raise DatabaseError(
            f"{database}: the codes of {slide} were not kept; build with --store-codes to keep them."
        )
    try:
        return _read(_codes_of(database) / _name(slide))
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        RuntimeError,
    ) as error:
        raise DatabaseError(
            f"{_codes_of(database) / _name(slide)}: the codes of {slide} are damaged ({error}); restore this folder from a copy, or "
            f"delete {FOLDER}: searches do not need it."
        ) from error


def _read(folder: Path) -> NDArray[np.uint8]:
    """Read an array as :func:`save_codes` writes it, one chunk, and nothing else.

    Not by way of zarr: it takes what the file says for true, however much memory that asks for, and a chunk that is
    missing for zeros.
    """
    from imagecodecs import zstd_decode

    said = json.loads(_content(folder / "zarr.json", _MOST_SAID))
    if said["zarr_format"] != 3 or said["data_type"] != "uint8":
        raise ValueError("its description is not that of codes")
    if [codec["name"] for codec in said["codecs"]] != ["bytes", "zstd"]:
        raise ValueError("packed in another way than codes are")
    n, *sides = said["shape"]
    if type(n) is not int or not 0 <= n <= _MOST_PATCHES or sides != [CODES_SIDE, CODES_SIDE]:
        raise ValueError(f"of shape {said['shape']}")
    if said["chunk_grid"]["configuration"]["chunk_shape"] != [max(1, n), *sides]:
        raise ValueError("in other pieces than codes are")
    codes = np.zeros((n, *sides), np.uint8)
    if n:
        packed = _content(folder / "c" / "0" / "0" / "0", 2 * codes.nbytes + _MOST_SAID)
        unpacked = zstd_decode(packed, out=bytearray(codes.nbytes))
        if len(unpacked) != codes.nbytes:
            raise ValueError("not as many as there should be")
        codes = np.frombuffer(unpacked, np.uint8).reshape(codes.shape)
    # Those of databases built before have no digest.
    if said["attributes"].get(_DIGEST, _digest(codes)) != _digest(codes):
        raise ValueError("the content is not what was written")
    if codes.max(initial=0) >= CODEWORDS:
        raise ValueError("numbers that are no codes")
    return codes


def _content(path: Path, most: int) -> bytes:
    """Return what a file holds; anything else, or more than there can be, is not read."""
    if not path.is_file():
        raise ValueError(f"{path.name} is missing")
    if path.stat().st_size > most:
        raise ValueError(f"{path.name} is too large")
    return path.read_bytes()


def _digest(codes: NDArray[np.uint8]) -> str:
    return hashlib.blake2b(codes.tobytes(), digest_size=16).hexdigest()


def damaged_codes(database: Location, patches: Mapping[str, int]) -> list[str]:
    """Read all codes that were kept and return what is wrong, in words.

    Parameters
    ----------
    database
        Where it is.
    patches
        How many each slide has.
    """
    wrong = []
    for slide, n in patches.items():
        if not has_codes(database, slide):
            continue
        try:
            found = len(read_codes(database, slide))
            if found != n:
                wrong.append(
                    f"{_codes_of(database)}: codes of {found} patches for the {n} of {slide}; build it again, or delete {FOLDER}."
                )
        except DatabaseError as error:
            wrong.append(str(error))
    return wrong


def keeps_codes(database: Location) -> bool:
    """Whether latent codes are kept at all."""
    return _codes_of(database).exists()


def has_codes(database: Location, slide: str) -> bool:
    """Whether the codes of a slide were kept."""
    return (_codes_of(database) / _name(slide)).is_dir()


def remove_codes(database: Location, slide: str) -> None:
    """Forget the codes of a slide."""
    shutil.rmtree(_codes_of(database) / _name(slide), ignore_errors=True)


def _codes_of(database: Location) -> Path:
    return Path(database) / FOLDER


def _name(slide: str) -> str:
    """Ids have characters that folders may not have."""
    return hashlib.blake2b(slide.encode(), digest_size=16).hexdigest()


def _group(database: Location, mode: Any) -> Any:
    import zarr

    return zarr.open_group(_codes_of(database), mode=mode, zarr_format=3)
