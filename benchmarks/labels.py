"""Whether the labels of a list decide its vote, with any number of labels in the archive.

Each query patch has a list of neighbours, whose labels vote, weighed by rarity and position. In the paper's setting, one
database a site with two to five diagnoses, the label that most of a list carries mostly wins. This asks whether it still does in an
archive of more sites and labels, by the rule as it was (weights over the whole archive that sum to 10, counts below 1
raised to 1) and as it is (weights of the slides a search may return, 3.3 for each label). Where every count is raised to 1 the first
hit wins, and rarity, position and frequency count for nothing: the last columns say how often a list was *void* so.

Labels are synthetic, over barcodes of real tissue (``realbarcodes.py``; drawn from the model fitted to them, see ``archives.py``;
where there are none, and none are kept for ``--quick``, from a synthetic model). A site is a neighbourhood of tissue, a label a
smaller one in it, from which 60 % of the patches of its slides come; the others come from anywhere in the site. Sites
have two, three, four and five labels in turn, some up to eight times as frequent as others. Lists are those of exact search, each
query's own slide left out, at one threshold for all archives, so that they are alike. Counted are lists of several labels
of which one has more than half of the hits: others have no choice, or no majority.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from archives import BarcodeModel, recall_model
from common import Row, options, report
from numpy.typing import NDArray
from realbarcodes import CACHE, real_barcodes

from napari_fish.index.arrays import Mask, NeighbourLists
from napari_fish.search import Query, SearchParams
from napari_fish.search.calibrate import calibrate
from napari_fish.search.engine import allowed_slides
from napari_fish.search.neighbours import find_neighbours
from napari_fish.search.params import PAPER_WEIGHTS
from napari_fish.search.ranking import VARIANTS, Votes, count_votes, label_weights
from napari_fish.store import EncodedSlide, MemoryStore, SlideRecord

#: Labels of the archives; the smaller hold the first sites of the largest.
LABELS = (5, 10, 29, 56)
#: Labels of the sites, in turn: those of the paper's databases.
OF_A_SITE = (2, 3, 4, 5)
#: Centres that make up a site and a label, and which share of a slide is of its label.
SITE, LABEL, PURE = 60, 15, 0.6
PATCHES = 20
#: Slides of a label: on average so many, some labels having so many times as many as others.
SLIDES, RATIO = 20, 8


@dataclass
class Tally:
    """What became of lists by one rule: how many votes went to the majority, to the query's label, and were void."""

    majority: int = 0
    right: int = 0
    void: int = 0

    def add(self, votes: Votes, majority: NDArray[np.int64], own: int, counted: NDArray[np.bool_]) -> None:
        """Count the lists of one query."""
        self.majority += int((votes.best == majority)[counted].sum())
        self.right += int((votes.best == own)[counted].sum())
        self.void += int((votes.counts.max(axis=1) <= 1)[counted].sum())


def nearest(places: NDArray[np.float32], to: int, n: int) -> NDArray[np.int64]:
    """Return the n places nearest to one of them."""
    return np.argsort(((places - places[to]) ** 2).sum(axis=1), kind="stable")[:n]


def slides_of(model: BarcodeModel, seed: int) -> list[EncodedSlide]:
    """Make the slides of the largest archive, label by label, one a patient."""
    dice = np.random.default_rng(seed)
    slides: list[EncodedSlide] = []
    left = np.arange(len(model.centres))
    label = 0
    for site in range(max(LABELS) * len(OF_A_SITE) // sum(OF_A_SITE)):
        land = left[nearest(model.centres[left], int(dice.integers(len(left))), SITE)]
        left = np.setdiff1d(left, land)
        for _ in range(OF_A_SITE[(site + seed) % len(OF_A_SITE)]):
            owned = land[nearest(model.centres[land], int(dice.integers(len(land))), LABEL)]
            share = np.exp(dice.uniform(0, np.log(RATIO))) * np.log(RATIO) / (RATIO - 1)
            for _ in range(max(3, round(SLIDES * share))):
                own = dice.random(PATCHES) < PURE
                family = np.where(own, dice.choice(owned, PATCHES), dice.choice(land, PATCHES))
                name = f"s{len(slides)}"
                slides.append(
                    EncodedSlide(
                        SlideRecord(name, patient=name, site=f"site {site}", diagnosis=f"label {label}"),
                        np.sort(dice.integers(2 * 10**14, 6 * 10**14, PATCHES)),
                        model.draw(PATCHES, 10_000 * seed + len(slides) + 1, family),
                        np.zeros((PATCHES, 4), np.int32),
                    )
                )
            label += 1
    return slides


def lists_of(
    store: MemoryStore, queries: int, within: bool, threshold: int, seed: int
) -> Iterator[tuple[int, NeighbourLists, Mask | None]]:
    """Give the lists of some slides' patches, with the slide and what it may find."""
    dice = np.random.default_rng(seed)
    for number in dice.permutation(len(store.slides))[:queries].tolist():
        record = store.slides[number]
        rows = store.patch_rows(number)
        query = Query(record.slide, *store.encoded(rows), np.zeros((len(rows), 4), np.int32), record.slide)
        params = SearchParams(mode="exact", where=(f"site={record.site}",) if within else ())
        mask = allowed_slides(store, query, params)
        yield number, find_neighbours(store, [query], params, threshold, [mask])[0].lists, mask


def measured(store: MemoryStore, within: bool, queries: int, threshold: int, seed: int) -> Row:
    """Ask some slides and count how their lists vote by both rules."""
    codes, names = store.slides.numbered("diagnosis")
    everywhere = np.bincount(codes, minlength=len(names))
    before, now, n, hits_counted = Tally(), Tally(), 0, 0
    fish, naive = VARIANTS["fish"], VARIANTS["fish-naive"]
    for number, lists, mask in lists_of(store, queries, within, threshold, seed):
        hits = codes[lists.slides].astype(np.int64)
        frequency = count_votes(lists, hits, np.ones(len(names)), naive)
        # A list of one label has no choice, one without a label that most of it carries no majority.
        several = (frequency.counts > 0).sum(axis=1) > 1
        counted = several & (2 * frequency.counts.max(axis=1) > lists.lengths)
        n, hits_counted = n + int(counted.sum()), hits_counted + int(lists.lengths[counted].sum())
        there = np.bincount(codes if mask is None else codes[mask], minlength=len(names))
        total = SearchParams().label_weight_sum(int((there > 0).sum()))
        for tally, weights in (
            (before, label_weights(everywhere, PAPER_WEIGHTS)),
            (now, label_weights(there, total)),
        ):
            tally.add(count_votes(lists, hits, weights, fish), frequency.best, int(codes[number]), counted)
    shares = {
        f"{what}, {when}": getattr(tally, name) / max(1, n)
        for what, name in (("majority wins", "majority"), ("right", "right"), ("void", "void"))
        for when, tally in (("before", before), ("now", now))
    }
    return {"slides": len(store.slides), "lists": n, "hits a list": hits_counted / max(1, n), **shares}


def rows_of(model: BarcodeModel, queries: int, seed: int) -> Iterator[Row]:
    """Measure the paper's setting, each site a database of its own, and archives of ever more labels."""
    slides = slides_of(model, seed)
    words = model.projection.shape[1] // 64
    threshold = calibrate(MemoryStore(words, slides)).threshold
    for site in dict.fromkeys(slide.record.site for slide in slides):
        alone = MemoryStore(words, (slide for slide in slides if slide.record.site == site))
        yield {
            "labels": "2 to 5",
            "searched": "a database a site",
            **measured(alone, False, queries // 8, threshold, seed),
        }
    for labels in LABELS:
        first = {f"label {i}" for i in range(labels)}
        store = MemoryStore(words, (slide for slide in slides if slide.record.diagnosis in first))
        for within in (False, True):
            searched = "its site" if within else "all"
            yield {
                "labels": labels,
                "searched": searched,
                **measured(store, within, queries, threshold, seed),
            }


def main() -> None:
    given = options(__doc__ or "")
    known = (CACHE / "real-barcodes.npy").is_file() or not given.quick
    real = real_barcodes() if known else None
    model = BarcodeModel.synthetic(centres=2000) if real is None else recall_model(real)
    print("barcodes:", "synthetic" if real is None else f"drawn from a model of {len(real)} of real tissue")
    queries, seeds = (40, 1) if given.quick else (200, 12)
    groups: dict[tuple[object, object], list[Row]] = {}
    for seed in range(seeds):
        for row in rows_of(model, queries, seed):
            groups.setdefault((row["labels"], row["searched"]), []).append(row)
    report([_mean(parts) for parts in groups.values()], given.json)


def _mean(parts: list[Row]) -> Row:
    """Join the rows of several archives; shares are weighed by the lists they are of."""
    lists = sum(part["lists"] for part in parts)
    joined = dict(parts[0])
    for name, value in parts[0].items():
        if name in ("slides", "lists"):
            joined[name] = sum(part[name] for part in parts)
        elif isinstance(value, float):
            joined[name] = sum(part[name] * part["lists"] for part in parts) / max(1, lists)
    return joined


if __name__ == "__main__":
    main()
