"""The experiments of the paper on any database."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from napari_fish.database import DiskStore
from napari_fish.database.protocol import Store
from napari_fish.database.thumbnails import Thumbnails
from napari_fish.errors import Cancelled, FishError
from napari_fish.evaluate.answers import Answers, Questions
from napari_fish.evaluate.asking import choose_questions, queries_of
from napari_fish.evaluate.cache import Cache, default_cache
from napari_fish.evaluate.examples import Picture, choose_examples
from napari_fish.evaluate.metrics import Resamples
from napari_fish.evaluate.params import EvaluateParams, Level, Way
from napari_fish.evaluate.running import ask_all
from napari_fish.evaluate.scoring import labels_of_slides, score_way
from napari_fish.evaluate.speed import TIMED, augmented, growing, sample_of, storage_of, time_searches
from napari_fish.evaluate.values import Evaluation, SpeedRow, Times
from napari_fish.search.calibrate import threshold_of
from napari_fish.search.recall import measure_recall

Progress = Callable[[int, int], None]
ShouldStop = Callable[[], bool]
# Shares of the progress bar: asking, timing and recall, and what is only done on request.
_ASK, _TIME = 700, 150


def evaluate(
    store: Store,
    queries: Store | None = None,
    params: EvaluateParams | None = None,
    *,
    command: str = "",
    cache: Path | None = None,
    keep: bool = True,
    encode_ms: Sequence[float] = (),
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Evaluation:
    """Ask every slide of a database, or of another cohort, and say how good the answers are.

    Parameters
    ----------
    store
        The database that is searched.
    queries
        The database whose slides are asked for; None for leave-one-patient-out within the one searched.
    params
        What to evaluate.
    command
        How the evaluation was started, for the record.
    cache
        Where answers are kept; None for the user's cache.
    keep
        Whether they are kept at all.
    encode_ms
        Time to read and encode slides, measured elsewhere.
    progress, should_stop
        Called with work done and all the work; asked often, a yes ends it with
        :class:`~napari_fish.errors.Cancelled`.
    """
    p = params or EvaluateParams()
    source = store if queries is None else queries
    _check_encoders(store, source)
    level = p.level or _level_of(store)
    questions, notes = choose_questions(store, source, p, level)
    run = _Run(
        store, source, questions, p, level, cache or default_cache() if keep else None, progress, should_stop
    )
    ways, ablations = p.ways(level), p.ablations(level)
    answers = run.answers([*ways, *ablations])
    resamples = Resamples(questions.truth, questions.patient_numbers, seed=p.seed)
    of_slide, threshold = labels_of_slides(store, p.target), threshold_of(store, p.threshold)[0]
    latency, recall = run.latencies(ways), run.recalls(ways)
    lines = [
        score_way(way, found, questions, of_slide, p.k, threshold, resamples, times, share)
        for way, found, times, share in zip(ways, answers, latency, recall, strict=False)
    ]
    ablation = [
        score_way(way, found, questions, of_slide, p.k, threshold, resamples)
        for way, found in zip(ablations, answers[len(ways) :], strict=True)
    ]
    speed = run.speed()
    with _pictures(source) as mine, _pictures(store) as theirs:
        examples = choose_examples(
            store, source, questions, answers[0], of_slide, p.k, (mine, theirs), p.seed
        )
    notes += _notes(answers[0], ways[0].name, questions, p)
    alive = store.slides.alive
    run.finish()
    return Evaluation(
        _name(store),
        "" if queries is None else _name(source),
        level,
        p.target,
        p.k,
        len(questions),
        int(alive.sum()),
        int(questions.patient_numbers.max(initial=-1)) + 1,
        threshold,
        tuple(questions.labels[label] for label in resamples.labels.tolist()),
        tuple(lines),
        tuple(ablation),
        storage_of(store.folder, int(alive.sum()), int(store.mosaics_per_slide.sum()))
        if isinstance(store, DiskStore)
        else None,
        tuple(speed),
        Times.of(list(encode_ms)) if len(encode_ms) else None,
        examples,
        tuple(notes),
        _about(store, source, p, command),
    )


class _Run:
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
        digests = [store.digest(), source.digest()] if cache is not None else []
        threshold = threshold_of(store, params.threshold)[0]
        self.cache = Cache(cache, {**asked, "level": level, "digests": digests, "bits": threshold})
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

    def recalls(self, ways: Sequence[Way]) -> list[float]:
        """Measure how many of the true neighbours each mode finds."""
        found: list[float] = []
        measured: dict[str, float] = {}
        for way in ways:
            if self.should_stop is not None and self.should_stop():
                raise Cancelled("the evaluation was stopped.")
            if way.mode not in measured:
                kept = self.cache.load(what="recall", mode=way.mode)
                if kept is None:
                    recall = measure_recall(self.store, self.params.as_users_search(way)).recall
                    kept = {"recall": np.array(recall)}
                    self.cache.save(kept, what="recall", mode=way.mode)
                measured[way.mode] = float(kept["recall"])
            found.append(measured[way.mode])
        self._done = _ASK + _TIME
        self._report(self._done)
        return found

    def speed(self) -> list[SpeedRow]:
        """Time searches over growing databases, where that is wanted."""
        p, rows = self.params, list[SpeedRow]()
        search = replace(p.as_users_search(Way("", "exact", "auto")), where=())
        common: dict[str, Any] = {"seed": p.seed, "should_stop": self.should_stop}
        if p.speed:
            rows += self._timed(growing(self.store, self.questions, self.source, search, **common), 20)
        if p.augment:
            if not isinstance(self.store, DiskStore):
                raise FishError("Copies with noise need a database on disk that keeps its latent codes.")
            made = augmented(self.store, self.store.folder, self.questions, self.source, search, **common)
            rows += self._timed(made, 12)
        return rows

    def _timed(self, rows: Any, expected: int) -> list[SpeedRow]:
        found = []
        for row in rows:
            found.append(row)
            self._report(self._done + _ASK * min(len(found), expected) // expected)
        self._done += _ASK
        return found

    def finish(self) -> None:
        """Say that all is done."""
        self._progress(self._total, self._total)


def _level_of(store: Store) -> Level:
    """Return what a database holds: slides, or images that are one mosaic each."""
    if isinstance(store, DiskStore):
        return "patch" if store.truth.parameters.get("patches") else "slide"
    return "slide" if (store.mosaics_per_slide > 1).any() else "patch"


def _check_encoders(store: Store, source: Store) -> None:
    if store.words != source.words:
        raise FishError("The two databases have barcodes of different length: they must share one encoder.")
    if isinstance(store, DiskStore) and isinstance(source, DiskStore):
        ours, theirs = store.truth, source.truth
        if ours.weights_hash != theirs.weights_hash:
            raise FishError(
                f"{source.folder} was built with encoder {theirs.encoder!r}, {store.folder} with {ours.encoder!r}: "
                "build both with the same encoder."
            )


def _notes(answers: Answers, first: str, questions: Questions, p: EvaluateParams) -> list[str]:
    notes = []
    alone = answers.relevant == 0
    if alone.any():
        which = sorted({questions.labels[i] for i in questions.truth[alone].tolist()})
        notes.append(
            f"{int(alone.sum())} queries cannot be answered: no slide that may be returned has their {p.target} "
            f"({', '.join(which[:5])}{', …' if len(which) > 5 else ''}). They count as wrong."
        )
    completed = float((answers.ranked < answers.found(p.k)).mean())
    if completed > 0.5:
        notes.append(
            f"{100 * completed:.0f} % of the answers in mode {first} were completed with the nearest slides beyond the "
            "threshold: their accuracy is that of plain nearest neighbours."
        )
    if not any(questions.patients):
        notes.append("No patient is known: only the query's own slide was left out. Answers may be too good.")
    return notes


@contextmanager
def _pictures(store: Store) -> Iterator[Picture]:
    """Open the pictures a database keeps, where it keeps any."""
    kept = Thumbnails.open_to_read(store.folder) if isinstance(store, DiskStore) else None
    if kept is None:
        yield lambda slide, box: None
        return
    try:
        yield kept.mosaic
    finally:
        kept.close()


def _name(store: Store) -> str:
    return store.folder.name if isinstance(store, DiskStore) else "in memory"


def _about(store: Store, source: Store, p: EvaluateParams, command: str) -> dict[str, Any]:
    import numba

    from napari_fish import __version__

    about: dict[str, Any] = {
        "command": command,
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "napari-fish": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": platform.platform(),
        "parameters": asdict(p),
    }
    if isinstance(store, DiskStore):
        about["encoder"] = f"{store.truth.encoder} ({store.truth.weights_hash[:12]})"
    return about
