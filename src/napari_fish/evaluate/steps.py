"""The steps of an evaluation: what is kept from earlier runs is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_fish.errors import FishError
from napari_fish.evaluate.asking.answers import Answers, Questions
from napari_fish.evaluate.asking.kept import Cache, content_of
from napari_fish.evaluate.asking.questions import queries_of
from napari_fish.evaluate.asking.running import ask_all
from napari_fish.evaluate.params import EvaluateParams, Way
from napari_fish.evaluate.speed import TIMED, augmented, growing, sample_of, time_searches
from napari_fish.evaluate.values import SpeedRow, Times
from napari_fish.names import MODES, Level
from napari_fish.search.calibrate import threshold_of
from napari_fish.search.recall import Recall, measure_recall
from napari_fish.store.protocol import Store
from napari_fish.work import Progress, ShouldStop, stop_if_asked

# Shares of the progress bar: asking, timing and recall, and what is only done on request.
_ASK, _TIME = 700, 150


class Run:
    """One evaluation: what is kept is not asked again."""

    def __init__(
        self,
        store: Store,
        source: Store,
        questions: Questions,
        params: EvaluateParams,
        level: Level,
        *,
        cache: Path | None,
        progress: Progress | None,
        should_stop: ShouldStop | None,
    ) -> None:
        self.store, self.source, self.questions = store, source, questions
        self.params, self.level, self.should_stop = params, level, should_stop
        self._progress = progress or (lambda done, total: None)
        p = asdict(params)
        asked = {
            name: p[name]
            for name in ("target", "within", "where", "query_where", "sample", "threshold", "fill", "seed")
        }
        contents = [content_of(one) for one in (store, source)] if cache is not None else []
        thresholds = [threshold_of(store, params.threshold, mode)[0] for mode in MODES]
        self.cache = Cache(cache, {**asked, "level": level, "contents": contents, "bits": thresholds})
        extra = params.speed + params.augment
        self._total = _ASK + _TIME + extra * _ASK
        self._done = 0

    def _report(self, done: int) -> None:
        self._progress(done, self._total)

    def answers(self, ways: Sequence[Way]) -> list[Answers]:
        """Ask in all ways that were not asked before."""
        found: dict[Way, Answers] = {}
        for way in ways:
            kept = self.cache.load(
                what="answers", depth=self.params.depth, mode=way.mode, ranking=way.ranking
            )
            if kept is not None:
                found[way] = Answers(**kept)
        # Two lines may be the same search under two names.
        same = {(way.mode, way.ranking): way for way in ways if way not in found}
        missing = list(same.values())
        made = (
            ask_all(
                self.store,
                self.source,
                self.questions,
                [self.params.search(way) for way in missing],
                self.level,
                jobs=self.params.jobs,
                progress=lambda done, total: self._report(_ASK * done // total),
                should_stop=self.should_stop,
            )
            if missing
            else []
        )
        for way, answers in zip(missing, made, strict=True):
            what = {"mode": way.mode, "ranking": way.ranking, "depth": self.params.depth}
            self.cache.save(answers.arrays(), what="answers", **what)
        by_search = {(way.mode, way.ranking): answers for way, answers in zip(missing, made, strict=True)}
        self._done = _ASK
        self._report(_ASK)
        return [found[way] if way in found else by_search[way.mode, way.ranking] for way in ways]

    def latencies(self, ways: Sequence[Way]) -> list[Times]:
        """Time single searches as users make them; k hardly matters."""

        def timed() -> list[Times]:
            queries = queries_of(self.source, sample_of(self.questions, TIMED, self.params.seed))
            searches = [self.params.as_users_search(way) for way in ways]
            return time_searches(self.store, queries, searches, self.should_stop)

        told = self._once(timed, what="latency", ways=[(way.mode, way.ranking) for way in ways])
        self._done += _TIME // 2
        self._report(self._done)
        return [Times(**one) for one in told]

    def _once(self, measure: Callable[[], Iterable[Any]], **about: Any) -> list[dict[str, Any]]:
        """Return what is measured, dataclasses, as plain values; it is measured once."""
        kept = self.cache.load(**about)
        if kept is not None:
            return list(json.loads(str(kept["measured"])))
        found = [asdict(one) for one in measure()]
        self.cache.save({"measured": np.array(json.dumps(found))}, **about)
        return found

    def recalls(self, ways: Sequence[Way]) -> list[Recall]:
        """Measure how many of the true neighbours each mode finds."""
        measured: dict[str, Recall] = {}
        for way in ways:
            stop_if_asked(self.should_stop, "the evaluation was stopped.")
            if way.mode not in measured:
                measured[way.mode] = self._recall(way)
        self._done = _ASK + _TIME
        self._report(self._done)
        return [measured[way.mode] for way in ways]

    def _recall(self, way: Way) -> Recall:
        search = self.params.as_users_search(way)
        (told,) = self._once(
            lambda: [measure_recall(self.store, search, within=self.params.within)],
            what="recall",
            mode=way.mode,
        )
        return Recall(**told)

    def speed(self) -> list[SpeedRow]:
        """Time searches over growing databases, where that is wanted."""
        p, rows = self.params, list[SpeedRow]()
        search = replace(p.as_users_search(Way("", "exact", "auto")), where=())
        common: dict[str, Any] = {"seed": p.seed, "should_stop": self.should_stop}
        if p.speed:
            made = growing(self.store, self.questions, self.source, search, **common)
            rows += self._timed("speed", made, 25)
        if p.augment:
            if self.store.catalogue is None:
                raise FishError("Copies with noise need a database on disk that keeps its latent codes.")
            made = augmented(
                self.store, self.store.catalogue.location, self.questions, self.source, search, **common
            )
            rows += self._timed("augment", made, 15)
        return rows

    def _timed(self, what: str, rows: Iterator[SpeedRow], expected: int) -> list[SpeedRow]:
        def watched() -> Iterator[SpeedRow]:
            for number, row in enumerate(rows, 1):
                yield row
                self._report(self._done + _ASK * min(number, expected) // expected)

        found = [SpeedRow.read(row) for row in self._once(watched, what=what)]
        self._done += _ASK
        self._report(self._done)
        return found

    def finish(self) -> None:
        """Say that all is done."""
        self._progress(self._total, self._total)
