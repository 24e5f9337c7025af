"""The patches in a catalogue: read by slide, by generation, or in the order of keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_fish.index.arrays import UNIVERSE
from napari_fish.store.records import Patches
from napari_fish.store.sqlite.state import StateTables

_CHUNK = 20_000
#: Of a box, in level-0 px.
LARGEST = 2**31 - 1


class PatchTable(StateTables):
    """The part of a catalogue that is about patches."""

    def count(self) -> int:
        """Return how many patches there are."""
        return int(self.rows("SELECT count(*) FROM mosaics")[0][0])

    def patches(self, after: int = -1) -> Patches:
        """Return the patches of slides that came after a generation, by slide and then as they came."""
        rows = self.rows(
            "SELECT m.key, m.slide, m.x, m.y, m.width, m.height, m.barcode FROM slides s "
            "JOIN mosaics m ON m.slide = s.number WHERE s.generation > ? ORDER BY m.id",
            (after,),
        )
        return self._patches(rows)

    def patches_of(self, number: int) -> Patches:
        """Return the patches of one slide, as they came."""
        return self._patches(
            self.rows(
                "SELECT key, slide, x, y, width, height, barcode FROM mosaics WHERE slide = ? ORDER BY id",
                (number,),
            )
        )

    def keys_of(self, number: int) -> NDArray[np.int64]:
        """Return the keys of one slide, as they came."""
        rows = self.rows("SELECT key FROM mosaics WHERE slide = ? ORDER BY id", (number,))
        with self.making_sense():
            return np.array(rows, np.int64).reshape(len(rows))

    def patches_by_key(self) -> Iterator[Patches]:
        """Give all patches in the order of keys, some at a time."""
        with self.clear_errors():
            found = self._connection.execute(
                "SELECT key, slide, x, y, width, height, barcode FROM mosaics ORDER BY key, id"
            )
            while rows := found.fetchmany(_CHUNK):
                yield self._patches(rows)

    def _patches(self, rows: list[Any]) -> Patches:
        with self.making_sense():
            table = np.array([row[:6] for row in rows], np.int64).reshape(len(rows), 6)
            codes = b"".join(row[6] for row in rows)
            if len(codes) != 8 * self.words * len(rows):
                raise ValueError("barcodes of the wrong length")
            keys, boxes = table[:, 0], table[:, 2:]
            # Kernels look for no key outside these bounds, and boxes are kept in 32 bits.
            if len(rows) and not (
                0 <= keys.min() <= keys.max() < UNIVERSE and -LARGEST <= boxes.min() <= boxes.max() <= LARGEST
            ):
                raise ValueError("keys or boxes that no patch has")
        return Patches(
            table[:, 0].copy(),
            np.frombuffer(codes, np.uint64).reshape(len(rows), self.words),
            table[:, 1].copy(),
            table[:, 2:].astype(np.int32),
        )
