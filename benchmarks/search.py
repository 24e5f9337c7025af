"""How fast search is, and how much of the truth it finds.

Guided search against the paper's algorithms in plain Python and against reading alone; slide queries with
ranking; exact search against faiss.IndexBinaryFlat; clustered search against faiss.IndexBinaryIVF, recall for
latency; and a database on disk: opened, asked, filtered, added to. Archives are described in ``archives.py``, what is
compared in the module of each part. One thread unless said. Times are of the thread or process that did the work
where one thread works, so that other programs on the machine disturb less; alternatives take turns.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import faiss
import numpy as np
from archives import (
    SLIDE,
    BarcodeModel,
    as_in_a_database,
    distances_of,
    latency_archive,
    recall_archive,
    recall_model,
)
from common import Row, report, write_markdown
from realbarcodes import real_barcodes
from search_clustered import clustered_part
from search_exact import exact_part
from search_guided import guided_part, recall_part, slide_part
from search_store import store_part

from napari_fish.index import Segment

PARTS = ("guided", "exact", "clustered", "store")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="100k patches only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table's rows as JSON")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the tables for the documentation"
    )
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="patches, multiples of 100 000")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--faiss-train", action="store_true", help="let faiss make its own clusters (slow)")
    return parser.parse_args()


def model_and_rows() -> tuple[BarcodeModel, list[Row]]:
    """Return where recall archives come from, and how near it is to the real."""
    real = real_barcodes()
    if real is None:
        what = "NOT FITTED: ../shared/data is not beside this checkout; a synthetic model was used"
        return BarcodeModel.synthetic(), [{"part": "model", "patches": 0, "what": what}]
    model = recall_model(real)
    drawn = distances_of(model.draw(len(real), 4))
    rows = [
        {"part": "model", "patches": len(real), "what": f"{name}, bits", "real": value, "model": drawn[name]}
        for name, value in distances_of(real).items()
    ]
    return model, rows


def main() -> None:
    chosen = options()
    faiss.omp_set_num_threads(1)
    sizes = chosen.sizes or ([100_000] if chosen.quick else [100_000, 1_000_000, 10_000_000])
    rows: list[Row] = []
    if {"exact", "clustered"} & set(chosen.parts):
        model, about = model_and_rows()
        rows += about
    for n in sizes:
        load = os.getloadavg()[0]
        if {"guided", "store"} & set(chosen.parts):
            archive = latency_archive(n)
            if "guided" in chosen.parts:
                rows += (
                    guided_part(archive, n, chosen.quick) + recall_part(archive, n) + slide_part(archive, n)
                )
            if "store" in chosen.parts:
                rows += store_part(archive, n)
            del archive
        if {"exact", "clustered"} & set(chosen.parts):
            codes, queries = recall_archive(n, model), model.draw(100, 2)
            keys = np.arange(n, dtype=np.int64)
            segment = Segment(keys, np.arange(n + 1, dtype=np.int32), codes, (keys // SLIDE).astype(np.int32))
            index, made = as_in_a_database(segment, f"recall-{n}-{model.fingerprint:08x}")
            if "exact" in chosen.parts:
                rows += exact_part(index, codes, queries, n)
            if "clustered" in chosen.parts:
                rows += clustered_part(index, codes, queries, n, made, chosen.faiss_train)
            del segment, codes, index
        rows.append({"part": "machine", "patches": n, "what": f"load {load:.1f} to {os.getloadavg()[0]:.1f}"})
    report(rows, chosen.json)
    if chosen.markdown:
        write_markdown(rows, chosen.markdown)


if __name__ == "__main__":
    main()
