"""How many of the true neighbours a mode finds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from napari_fish.search.calibrate import threshold_of
from napari_fish.search.filters import exclusion_mask, slide_mask
from napari_fish.search.neighbours import batches, find_neighbours, nearest_of_all
from napari_fish.search.params import SearchParams
from napari_fish.search.values import Query
from napari_fish.store.protocol import Store


@dataclass(frozen=True)
class Recall:
    """Recall of a mode on a sample of the database.

    Attributes
    ----------
    mode
        The mode that was measured.
    k
        Neighbours looked at.
    recall
        Share of hits at most as far as the k-th true neighbour; None where no patch had any, so that nothing was measured.
    queries
        Patches that had something to find.
    """

    mode: str
    k: int
    recall: float | None
    queries: int

    def __str__(self) -> str:
        return f"{'-' if self.recall is None else f'{self.recall:.3f}'} (n={self.queries})"


def measure_recall(
    store: Store, params: SearchParams, *, within: str = "", k: int = 10, queries: int = 100, seed: int = 0
) -> Recall:  # fmt: skip
    """Compare a mode with exact search on patches of the database, their own patients left out.

    Only neighbours within the threshold, and on slides that the filters allow, count: no mode looks elsewhere.

    Parameters
    ----------
    store, params
        The database and the mode to measure.
    within
        A column: neighbours of a patch are on slides that share its slide's value; empty for anywhere.
    k
        Neighbours looked at.
    queries
        Patches drawn.
    seed
        The same seed draws the same patches.
    """
    threshold, _ = threshold_of(store, params.threshold, params.mode)
    guided = params.mode in ("guided", "released")
    most = params.walks(threshold).largest_accepted if guided else threshold
    living = store.rows_of(np.flatnonzero(store.slides.alive))
    dice = np.random.default_rng(seed)
    rows = np.sort(living[dice.choice(len(living), min(queries, len(living)), replace=False)])
    keys, barcodes = store.encoded(rows)
    slides = store.slides_of(rows)
    sample = []
    for slide in np.unique(slides).tolist():
        mine, record = slides == slide, store.slides[slide]
        nowhere = np.zeros((int(mine.sum()), 4), np.int32)
        sample.append(
            Query(
                record.name, keys[mine], barcodes[mine], nowhere, slide=record.slide, patient=record.patient
            )
        )
    allowed = slide_mask(store.slides, params.where)
    groups = store.slides.numbered(within)[0] if within else np.zeros(len(store.slides), np.int32)
    found = wanted = asked = 0
    mode: str = params.mode
    deep = replace(params, neighbours=max(k, params.neighbours))
    for batch in batches(sample, len(store.slides)):
        masks = [
            allowed
            & (groups == groups[store.slides.number(query.slide)])
            & exclusion_mask(store.slides, query.slide, query.patient)
            for query in batch
        ]
        truths = nearest_of_all(store, batch, masks, k=k, radius=most, threads=params.threads)
        answers = find_neighbours(store, batch, deep, threshold, masks)
        for answer, truth in zip(answers, truths, strict=True):
            mode = answer.mode
            for (_, near), (_, true) in zip(answer.lists, truth, strict=True):
                if len(true):
                    asked += 1
                    wanted += len(true)
                    found += int((near[: len(true)] <= true[-1]).sum())
    return Recall(mode, k, found / wanted if wanted else None, asked)
