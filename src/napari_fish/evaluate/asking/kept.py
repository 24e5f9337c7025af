"""Answers are kept, so that the same evaluation with another k needs no other search; the folder may be deleted."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from napari_fish.store.protocol import Store

log = logging.getLogger(__name__)

#: Raised when answers mean something else than before.
FORMAT = 4
#: Older entries make room for new ones.
MOST_BYTES = 500_000_000


def default_cache() -> Path:
    """Return where answers are kept unless another place is named."""
    return user_cache_path("napari-fish") / "evaluate"


def content_of(store: Store) -> list[str | int]:
    """Return what changes whenever a database does, without reading all of it.

    A database built anew in its place has another identity, every change another generation. Copies of a folder share
    both and may go different ways from there; the file that was written last tells them apart.
    """
    told = store.catalogue.fingerprint() if store.catalogue is not None else []
    return told or [store.digest()]


class Cache:
    """Arrays by what they depend on.

    Parameters
    ----------
    folder
        Where they are kept; None keeps nothing.
    depends_on
        What all of them depend on: the content of the databases, the version.
    """

    def __init__(self, folder: Path | None, depends_on: Mapping[str, Any]) -> None:
        from napari_fish import __version__

        self.folder = folder
        self._depends_on = {"format": FORMAT, "version": __version__, **depends_on}

    def _path(self, about: Mapping[str, Any]) -> Path | None:
        if self.folder is None:
            return None
        text = json.dumps({**self._depends_on, **about}, sort_keys=True, default=str)
        return self.folder / f"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.npz"

    def load(self, **about: Any) -> dict[str, NDArray[Any]] | None:
        """Return what is kept; None where nothing, or nothing readable, is."""
        path = self._path(about)
        if path is None or not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as kept:
                found = {name: kept[name] for name in kept.files}
            os.utime(path)
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            log.info("%s: not readable (%s), it is made again.", path, error)
            return None
        return found

    def save(self, arrays: Mapping[str, NDArray[Any]], **about: Any) -> None:
        """Keep arrays; a place that cannot be written to is no reason to fail."""
        path = self._path(about)
        if path is None:
            return
        new = path.with_name(f"{path.stem}.{os.getpid()}.new.npz")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(new, **arrays)  # type: ignore[arg-type]
            new.replace(path)
            self._make_room()
        except OSError as error:
            log.info("%s: the answers are not kept (%s).", path, error)

    def _make_room(self) -> None:
        assert self.folder is not None
        kept = sorted(self.folder.glob("*.npz"), key=lambda path: path.stat().st_mtime, reverse=True)
        total = 0
        for path in kept:
            total += path.stat().st_size
            if total > MOST_BYTES:
                path.unlink(missing_ok=True)
