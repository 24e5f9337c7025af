"""SqliteCatalogue and snapshot side by side: SQLite itself does not notice a barcode in which a bit has flipped."""

from __future__ import annotations

import numpy as np

from napari_fish.store.records import slide_digest
from napari_fish.store.snapshot.view import View
from napari_fish.store.sqlite.catalogue import SqliteCatalogue


def differences(catalogue: SqliteCatalogue, view: View) -> list[str]:
    """Return, in words, the first slide whose keys, barcodes or boxes are not the same in catalogue and snapshot."""
    for number, expected in catalogue.slide_digests().items():
        at = int(np.searchsorted(view.numbers, number))
        is_there = at < len(view.numbers) and view.numbers[at] == number
        patches = view.rows
        rows = patches.rows_of([at] if is_there else np.empty(0, np.int64))
        record = catalogue.record(number)
        shown = slide_digest(record, patches.keys(rows), patches.barcodes(rows), patches.boxes(rows))
        if not is_there or shown != expected:
            text = (
                f"{catalogue.path}: does not agree with the snapshot about {record.slide}, though neither looks damaged. If you "
                "have just restored this file from a copy, compact the database; else restore it."
            )
            return [text]
    return []
