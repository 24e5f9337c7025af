"""The steps of an evaluation: what is kept from earlier runs is not done again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_fish.errors import Cancelled, FishError
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
from napari_fish.work import Progress, ShouldStop

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
        about = {"what": "latency", "ways": [(way.mode, way.ranking) for way in ways]}
        kept = self.cache.load(**about)
        if kept is None:
            queries = queries_of(self.source, sample_of(self.questions, TIMED, self.params.seed))
            searches = [self.params.as_users_search(way) for way in ways]
            times = time_searches(self.store, queries, searches, self.should_stop)
            table = np.array([(t.median, t.p5, t.p95, t.n) for t in times], np.float64)
            self.cache.save({"times": table}, **about)
        else:
            table = kept["times"]
        self._done += _TIME // 2
        self._report(self._done)
        return [Times(middle, low, high, int(n)) for middle, low, high, n in table.tolist()]

    def recalls(self, ways: Sequence[Way]) -> list[Recall]:
        """Measure how many of the true neighbours each mode finds."""
        found: list[Recall] = []
        measured: dict[str, Recall] = {}
        for way in ways:
            if self.should_stop is not None and self.should_stop():
                raise Cancelled("the evaluation was stopped.")
            if way.mode not in measured:
                measured[way.mode] = self._recall(way)
            found.append(measured[way.mode])
        self._done = _ASK + _TIME
        self._report(self._done)
        return found

    def _recall(self, way: Way) -> Recall:
        about = {"what": "recall", "mode": way.mode}
        kept = self.cache.load(**about)
        if kept is None:
            search = self.params.as_users_search(way)
            measured = measure_recall(self.store, search, within=self.params.within)
            kept = {
                name: np.array(np.nan if value is None else value) for name, value in asdict(measured).items()
            }
            self.cache.save(kept, **about)
        share = float(kept["recall"])
        return Recall(
            str(kept["mode"]), int(kept["k"]), None if np.isnan(share) else share, int(kept["queries"])
        )

    def speed(self) -> list[SpeedRow]:
        """Time searches over growing databases, where that is wanted."""
        p, rows = self.params, list[SpeedRow]()
        search = replace(p.as_users_search(Way("", "exact", "auto")), where=())
        common: dict[str, Any] = {"seed": p.seed, "should_stop": self.should_stop}
        if p.speed:
            made = growing(self.store, self.questions, self.source, search, **common)
            rows += self._timed("speed", made, 20)
        if p.augment:
            if self.store.catalogue is None:
                raise FishError("Copies with noise need a database on disk that keeps its latent codes.")
            made = augmented(
                self.store, self.store.catalogue.folder, self.questions, self.source, search, **common
            )
            rows += self._timed("augment", made, 12)
        return rows

    def _timed(self, what: str, rows: Iterator[SpeedRow], expected: int) -> list[SpeedRow]:
        kept = self.cache.load(what=what)
        found: list[SpeedRow] = []
        if kept is not None:
            found = [SpeedRow.read(row) for row in json.loads(str(kept["rows"]))]
        else:
            for row in rows:
                found.append(row)
                self._report(self._done + _ASK * min(len(found), expected) // expected)
            text = json.dumps([asdict(row) for row in found])
            self.cache.save({"rows": np.array(text)}, what=what)
        self._done += _ASK
        self._report(self._done)
        return found

    def finish(self) -> None:
        """Say that all is done."""
        self._progress(self._total, self._total)
