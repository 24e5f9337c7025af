"""Which queries are asked, and asking them by the same way as users do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from napari_fish.errors import FishError
from napari_fish.evaluate.asking.answers import Answers, Questions
from napari_fish.evaluate.params import PATCHES, EvaluateParams
from napari_fish.index.arrays import Mask, NeighbourLists
from napari_fish.names import Level
from napari_fish.search.calibrate import threshold_of
from napari_fish.search.engine import allowed_slides, search_many
from napari_fish.search.filters import Condition, check_values, slide_mask
from napari_fish.search.neighbours import allowed_rows, find_neighbours, nearest_of_all
from napari_fish.search.params import SearchParams
from napari_fish.search.values import Query, Results
from napari_fish.store.protocol import Store


def choose_questions(
    store: Store, source: Store, params: EvaluateParams, level: Level
) -> tuple[Questions, list[str]]:
    """Choose the queries: every slide or patch with a label, or a sample.

    Parameters
    ----------
    store
        The database that is searched.
    source
        The database the queries come from; the same for leave-one-patient-out.
    params
        Target, filters, sample.
    level
        Slides or single patches.

    Returns
    -------
    questions, notes
        With what the reader must know.
    """
    for column in (params.target, *([params.within] if params.within else [])):
        for one in (store, source):
            if column.lower() not in one.slides.columns:
                known = ", ".join(one.slides.columns)
                raise FishError(f"No column {column!r} in this database; there are: {known}.")
    check_values(store.slides, params.where)
    check_values(source.slides, params.query_where)
    codes, values = source.slides.numbered(params.target)
    labels = list(store.slides.numbered(params.target)[1])
    numbers = {label.casefold(): i for i, label in enumerate(labels)}
    for value in values:
        if value.casefold() not in numbers:
            numbers[value.casefold()] = len(labels)
            labels.append(value)
    to_label = np.array([numbers[value.casefold()] for value in values] or [0], np.int64)
    wanted = slide_mask(source.slides, params.query_where) & (source.patches_per_slide > 0)
    unlabelled = int((wanted & (codes < 0)).sum())
    chosen = np.flatnonzero(wanted & (codes >= 0))
    if not len(chosen):
        raise FishError(
            f"No slide has a {params.target}, so nothing can be said about answers. Give labels with "
            "'napari-fish labels NAME.fish FILE', or name another column with --target."
        )
    notes = [f"{unlabelled} slides without {params.target} are not asked for."] if unlabelled else []
    rows = np.full(len(chosen), -1, np.int64)
    if level == "patch":
        rows = source.rows_of(chosen)
        chosen = source.slides_of(rows).astype(np.int64)
    most = params.sample or (PATCHES if level == "patch" else None)
    if most is not None and most < len(chosen):
        notes.append(f"A random sample of {most} of {len(chosen)} queries.")
        at = np.sort(np.random.default_rng(params.seed).choice(len(chosen), most, replace=False))
        chosen, rows = chosen[at], rows[at]
    records = list(source.slides)
    own = _own_slides(store, source)
    mine = [records[i] for i in chosen.tolist()]
    within = [f"{params.within}={record.column(params.within)}" if params.within else "" for record in mine]
    return Questions(
        slides=chosen.astype(np.int64),
        rows=rows,
        names=tuple(record.name or record.slide for record in mine),
        own=tuple(own.get(i, "") for i in chosen.tolist()),
        patients=tuple(record.patient for record in mine),
        truth=to_label[codes[chosen]],
        labels=tuple(labels),
        within=tuple(within),
    ), notes


def _own_slides(store: Store, source: Store) -> dict[int, str]:
    """Return which slide of the database each slide of the source is: itself, or the one of the same content."""
    if store is source:
        return {i: record.slide for i, record in enumerate(source.slides)}
    hashes = {record.content_hash: record.slide for record in store.slides if record.content_hash}
    return {
        i: hashes[r.content_hash] for i, r in enumerate(source.slides) if r.slide and r.content_hash in hashes
    }


def queries_of(source: Store, questions: Questions) -> list[Query]:
    """Take queries from the database they are in."""
    found = []
    for i in range(len(questions)):
        row = int(questions.rows[i])
        rows = np.array([row]) if row >= 0 else source.patch_rows(int(questions.slides[i]))
        keys, barcodes = source.encoded(rows)
        nowhere = np.zeros((len(rows), 4), np.int32)
        found.append(
            Query(
                questions.names[i],
                keys,
                barcodes,
                nowhere,
                slide=questions.own[i],
                patient=questions.patients[i],
            )
        )
    return found


class Asker:
    """Asks questions of one database.

    Parameters
    ----------
    store
        The database that is searched.
    source
        The database the queries come from.
    """

    def __init__(self, store: Store, source: Store) -> None:
        self.store, self.source = store, source
        self._numbers = {record.slide: i for i, record in enumerate(store.slides) if record.slide}

    def ask(self, questions: Questions, params: SearchParams, level: Level) -> Answers:
        """Return the answers to some questions; those with the same filters share passes.

        Parameters
        ----------
        questions
            What is asked.
        params
            How to search.
        level
            Whether slides are ranked, or patches returned as they are found.
        """
        answers: list[Answers] = []
        order: list[int] = []
        for within in dict.fromkeys(questions.within):
            at = [i for i, other in enumerate(questions.within) if other == within]
            part = questions.take(at)
            order += at
            where = _and_within(params.where, within) if within else params.where
            p = replace(params, where=where)
            queries = queries_of(self.source, part)
            ask = self._ask_slides if level == "slide" else self._ask_patches
            answers.append(ask(part, queries, p))
        back = np.argsort(order)
        joined = Answers.joined(answers)
        return Answers(**{name: array[back] for name, array in joined.arrays().items()})

    def _ask_slides(self, questions: Questions, queries: Sequence[Query], p: SearchParams) -> Answers:
        found = search_many(self.store, queries, p)
        masks = [self._mask(query, p) for query in queries]
        given = self.store.patches_per_slide > 0
        n, depth = len(queries), p.k
        slides, rows, asked = (np.full((n, depth), -1, np.int64) for _ in range(3))
        distances = np.full((n, depth), np.nan)
        for i, results in enumerate(found):
            for j, hit in enumerate(results.hits[:depth]):
                slides[i, j], distances[i, j] = self._numbers[hit.slide], hit.distance
                if hit.matches:
                    rows[i, j], asked[i, j] = hit.matches[0].row, hit.matches[0].query_index
        return Answers(
            slides=slides,
            distances=distances,
            rows=rows,
            asked=asked,
            ranked=np.array([sum(not hit.filled for hit in results.hits) for results in found], np.int64),
            allowed=np.array([int((mask & given).sum()) for mask in masks], np.int64),
            relevant=self._relevant(questions, masks, p, given.astype(np.int64)),
            near=np.array([_near(results) for results in found], np.int64),
        )

    def _ask_patches(self, questions: Questions, queries: Sequence[Query], p: SearchParams) -> Answers:
        """Find the patches nearest to each patch: one list a query, nothing to rank."""
        threshold, _ = threshold_of(self.store, p.threshold, p.mode)
        masks = [self._mask(query, p) for query in queries]
        found = find_neighbours(self.store, queries, p, threshold, masks)
        n, depth = len(queries), p.k
        rows, distances = np.full((n, depth), -1, np.int64), np.full((n, depth), np.nan)
        ranked = np.zeros(n, np.int64)
        for i, one in enumerate(found):
            lists = self._as_ranked(one.lists)
            ranked[i] = len(lists.rows)
            take = min(depth, len(lists.rows))
            rows[i, :take], distances[i, :take] = lists.rows[:take], lists.distances[:take]
        short = np.flatnonzero(ranked < depth) if p.fills else np.empty(0, np.int64)
        if len(short):
            at_short = short.tolist()
            asked, allowed = [queries[i] for i in at_short], [masks[i] for i in at_short]
            most = max(p.neighbours, 2 * depth)
            more = nearest_of_all(self.store, asked, allowed, k=most, threads=p.threads)
            for i, lists in zip(at_short, map(self._as_ranked, more), strict=True):
                new = ~np.isin(lists.rows, rows[i])
                take = min(depth - int(ranked[i]), int(new.sum()))
                at = slice(int(ranked[i]), int(ranked[i]) + take)
                rows[i, at], distances[i, at] = lists.rows[new][:take], lists.distances[new][:take]
        there = rows >= 0
        slides = np.full((n, depth), -1, np.int64)
        slides[there] = self.store.slides_of(rows[there])
        return Answers(
            slides=slides,
            distances=distances,
            rows=rows,
            asked=np.where(there, 0, -1),
            ranked=ranked,
            allowed=np.array([allowed_rows(self.store, mask) for mask in masks], np.int64),
            relevant=self._relevant(questions, masks, p, self.store.patches_per_slide),
            near=(ranked > 0).astype(np.int64),
        )

    def _as_ranked(self, lists: NeighbourLists) -> NeighbourLists:
        """Order the list of one patch as a search does: what is equally near by the number of its slide."""
        order = np.lexsort([lists.slides, lists.distances])
        return replace(
            lists, rows=lists.rows[order], distances=lists.distances[order], slides=lists.slides[order]
        )

    def _mask(self, query: Query, p: SearchParams) -> Mask:
        mask = allowed_slides(self.store, query, p)
        return self.store.slides.alive if mask is None else mask

    def _relevant(
        self, questions: Questions, masks: Sequence[Mask], p: SearchParams, size: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        codes, _ = self.store.slides.numbered(p.target)
        return np.array(
            [
                int(size[mask & (codes == own)].sum())
                for mask, own in zip(masks, questions.truth, strict=True)
            ],
            np.int64,
        )


def _and_within(where: Sequence[str], within: str) -> tuple[str, ...]:
    """Add the query's own filter: both must hold, whereas several ``=`` on one column mean any of their values."""
    own = Condition.parse(within)
    given = {text: Condition.parse(text) for text in where}
    same = {text: c for text, c in given.items() if c.column == own.column and c.wanted}
    if not same or any(c.value == own.value for c in same.values()):
        return (*(text for text in where if text not in same), within)
    return (*where, within, f"{own.column}!={own.value}")


def _near(results: Results) -> int:
    """Count the query's patches with neighbours within the threshold."""
    return sum(fate.length > 0 for fate in results.explanation.lists)
