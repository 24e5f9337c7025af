"""Seconds and peak memory of a mosaic over slide size, against reading every patch at full resolution.

    python benchmarks/mosaic.py [--quick] [--json FILE]

The slides are all tissue, the worst case. "plain" finds the tissue in the same way, then takes one patch
after the other: read at full resolution, shrink to 256 px, measure; and clusters in the same way. "paper" is the preset of
that name, with small pieces allowed: tissue by saturation, patches on a grid.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from common import Row, options, report, write_big_slide

MPP = 0.25
PLAIN_UP_TO = 50_000
"""Larger slides would keep the plain loop busy for a quarter of an hour."""


def ours(path: Path) -> int:
    from napari_fish.mosaic import make_mosaic, preset
    from napari_fish.slides import open_slide

    with open_slide(path, mpp=MPP) as slide:
        # Nothing is dropped, so that both cluster the same patches.
        return len(make_mosaic(slide, replace(preset(), artefacts="off")).candidates)


def paper(path: Path) -> int:
    from napari_fish.mosaic import make_mosaic, preset
    from napari_fish.slides import open_slide

    params = preset("paper")
    params = replace(params, artefacts="off", tissue=replace(params.tissue, min_tissue=2.0))
    with open_slide(path, mpp=MPP) as slide:
        return len(make_mosaic(slide, params).candidates)


def plain(path: Path) -> int:
    from napari_fish.mosaic import preset, segment
    from napari_fish.mosaic.artefacts.filters import Measurer, shrunk
    from napari_fish.mosaic.grid import patch_size
    from napari_fish.mosaic.mosaic import patch_corners
    from napari_fish.mosaic.select import colour_clusters, representatives
    from napari_fish.slides import open_slide

    params = replace(preset(), artefacts="off")
    measurer = Measurer(params)
    with open_slide(path, mpp=MPP) as slide:
        size = patch_size(MPP, params)
        corners = np.concatenate(patch_corners(slide, segment(slide), size, params))
        values = [
            measurer(shrunk(slide.read_level(0, x, y, size, size), size // 256)) for x, y in corners.tolist()
        ]
    clusters = colour_clusters(np.stack([v.histogram for v in values]), params.clusters, params.n_init, 0)
    for cluster in np.unique(clusters):
        representatives(corners[clusters == cluster], params.share, params.n_init, 0)
    return len(corners)


def _child(method: str, path: Path, warm: Path, answer: Connection) -> None:
    globals()[method](warm)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    patches = globals()[method](path)
    seconds = time.perf_counter() - start
    answer.send((patches, seconds, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


def measure(method: str, path: Path, warm: Path) -> tuple[int, float, float, float]:
    """Run in a process of its own; patches, seconds, MiB before and at most."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_child, args=(method, path, warm, there))
    process.start()
    patches, seconds, before, most = here.recv()
    process.join()
    return patches, seconds, before / 1024, most / 1024


def main() -> None:
    chosen = options(__doc__ or "")
    sizes = (5_000, 10_000) if chosen.quick else (5_000, 10_000, 25_000, 50_000, 100_000)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        warm = write_big_slide(Path(folder) / "warm.tif", 3_000, MPP)
        for side in sizes:
            path = write_big_slide(Path(folder) / "slide.tif", side, MPP)
            patches, seconds, before, most = measure("ours", path, warm)
            row: Row = {
                "side px": side,
                "patches": patches,
                "ours s": seconds,
                "ours MiB": most,
                "of these before": before,
            }
            _, paper_seconds, _, _ = measure("paper", path, warm)
            row |= {"paper s": paper_seconds, "of paper": seconds / paper_seconds}
            if side <= PLAIN_UP_TO:
                _, plain_seconds, _, plain_most = measure("plain", path, warm)
                row |= {
                    "plain s": plain_seconds,
                    "plain MiB": plain_most,
                    "times faster": plain_seconds / seconds,
                }
            rows.append(row)
            path.unlink()
    report(rows, chosen.json)


if __name__ == "__main__":
    main()
