"""Relevant, not relevant: regions of what was liked join the query, and its own patches count more or less; no training.

The query stays what it was: its barcodes are never changed, since a query moved towards a slide would find that slide
because it was liked. A judged query is a pure function of the first query and of the judgements, so the same judgements give the same
answer in whatever order they were made, and taking one back gives the answer from before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from napari_fish.search.values import Query, SlideHit
from napari_fish.store.protocol import Store
from napari_fish.store.records import Box


@dataclass(frozen=True)
class FeedbackParams:
    """How much judgements change.

    Attributes
    ----------
    expand
        Most regions of each relevant slide that become query patches of their own.
    share
        Weight of all these together, as a share of the query's.
    least, most
        Bounds of a patch's weight.
    """

    expand: int = 3
    share: float = 0.75
    least: float = 0.25
    most: float = 4.0


@dataclass(frozen=True)
class Judgement:
    """One slide of an answer, judged.

    Attributes
    ----------
    hit
        The slide with its matching regions.
    relevant
        What the user said.
    """

    hit: SlideHit
    relevant: bool


@dataclass(frozen=True)
class Feedback:
    """Judgements so far; the latest on a slide counts.

    Attributes
    ----------
    judgements
        In the order in which they were made.
    params
        How much they change.
    """

    judgements: tuple[Judgement, ...] = ()
    params: FeedbackParams = FeedbackParams()

    def judge(self, hit: SlideHit, relevant: bool) -> Feedback:
        """Return feedback with one more judgement."""
        return replace(self, judgements=(*self.judgements, Judgement(hit, relevant)))

    def undo(self) -> Feedback:
        """Return feedback without the last judgement."""
        return replace(self, judgements=self.judgements[:-1])

    def withdraw(self, slide: str) -> Feedback:
        """Return feedback without any judgement on a slide."""
        return replace(self, judgements=tuple(j for j in self.judgements if j.hit.slide != slide))

    @property
    def in_force(self) -> tuple[Judgement, ...]:
        """The judgements that count, by slide."""
        latest = {j.hit.slide: j for j in self.judgements}
        return tuple(latest[slide] for slide in sorted(latest))

    @property
    def where(self) -> tuple[str, ...]:
        """Filters that keep slides judged not relevant out of the answer."""
        return tuple(f"slide!={slide}" for slide in self.unwanted)

    @property
    def unwanted(self) -> tuple[str, ...]:
        """Slides judged not relevant."""
        return tuple(j.hit.slide for j in self.in_force if not j.relevant)

    def apply(self, store: Store, query: Query) -> Query:
        """Return the query as the judgements change it.

        Patches that led to relevant slides count more, those that led to others less; the best regions of relevant
        slides join the query, and find whatever is like them but their own slides.

        Parameters
        ----------
        store
            The database the answer came from.
        query
            The first query, before any judgement.
        """
        judged = self.in_force
        if not judged:
            return query
        p = self.params
        weights = np.ones(len(query)) if query.weights is None else query.weights.astype(np.float64)
        votes = np.zeros(len(query))
        for relevant in (True, False):
            led = {
                m.query_index for j in judged if j.relevant is relevant for m in j.hit.matches if not m.liked
            }
            votes[sorted(led)] += 1 if relevant else -1
        changed = replace(query, weights=np.clip(weights * 2.0**votes, p.least, p.most))
        return self._expanded(store, changed)

    @property
    def added(self) -> tuple[tuple[str, Box], ...]:
        """The regions that join the query behind its own, in order: slide and box."""
        return tuple(self._added().values())

    def _added(self) -> dict[int, tuple[str, Box]]:
        liked = (j.hit for j in self.in_force if j.relevant)
        found = {
            match.row: (hit.slide, match.hit_box)
            for hit in liked
            for match in hit.matches[: self.params.expand]
        }
        return dict(sorted(found.items()))

    def _expanded(self, store: Store, query: Query) -> Query:
        rows = list(self._added())
        if not rows or query.weights is None:
            return query
        keys, barcodes = store.encoded(rows)
        each = self.params.share * float(query.weights.sum()) / len(rows)
        # They are regions of other slides: an empty box says that there is nothing to show in the query.
        boxes = np.zeros((len(rows), 4), np.int32)
        return replace(
            query,
            keys=np.concatenate([query.keys, keys]),
            barcodes=np.concatenate([query.barcodes, barcodes]),
            boxes=np.concatenate([query.boxes, boxes]),
            weights=np.concatenate([query.weights, np.full(len(rows), each)]),
            liked=tuple(slide for slide, _ in self.added),
        )
