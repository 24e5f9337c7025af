"""The experiments of the paper on any database."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from napari_fish.errors import FishError
from napari_fish.evaluate.asking.answers import Answers, Questions
from napari_fish.evaluate.asking.kept import default_cache
from napari_fish.evaluate.asking.questions import choose_questions
from napari_fish.evaluate.examples import Picture, choose_examples
from napari_fish.evaluate.metrics import Resamples
from napari_fish.evaluate.params import EvaluateParams, released_at
from napari_fish.evaluate.scoring import chance_level, labels_of_slides, score_way
from napari_fish.evaluate.speed import storage_of
from napari_fish.evaluate.steps import Run
from napari_fish.evaluate.values import Evaluation, Times
from napari_fish.names import Level
from napari_fish.search.calibrate import threshold_of
from napari_fish.store.opening import pictures_of
from napari_fish.store.protocol import Store
from napari_fish.work import Progress, ShouldStop


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
    run = Run(
        store, source, questions, p, level, cache=cache or default_cache() if keep else None,
        progress=progress, should_stop=should_stop,
    )  # fmt: skip
    ways, ablations = p.ways(level), p.ablations(level)
    answers = run.answers([*ways, *ablations])
    resamples = Resamples(questions.truth, questions.patient_numbers, seed=p.seed)
    of_slide = labels_of_slides(store, p.target)
    thresholds = {way.mode: threshold_of(store, p.threshold, way.mode)[0] for way in (*ways, *ablations)}
    latency, recall = run.latencies(ways), run.recalls(ways)
    judged = partial(
        score_way, questions=questions, of_slide=of_slide, k=p.k, resamples=resamples, definition=p.definition,
        released=released_at(level),
    )  # fmt: skip
    lines = [
        judged(way, found, threshold=thresholds[way.mode], latency=times, recall=share)
        for way, found, times, share in zip(ways, answers, latency, recall, strict=False)
    ]
    ablation = [
        judged(way, found, threshold=thresholds[way.mode])
        for way, found in zip(ablations, answers[len(ways) :], strict=True)
    ]
    speed = run.speed()
    with _pictures(source) as mine, _pictures(store) as theirs:
        examples = choose_examples(
            store, source, questions, answers[0], of_slide=of_slide, k=p.k, pictures=(mine, theirs),
            seed=p.seed, definition=p.definition,
        )  # fmt: skip
    notes += _notes(answers[0], ways[0].name, questions, p)
    alive = store.slides.alive
    run.finish()
    patients = int(questions.patient_numbers.max(initial=-1)) + 1
    patches = int(store.patches_per_slide.sum())
    return Evaluation(
        database=_name(store),
        queries="" if queries is None else _name(source),
        level=level,
        target=p.target,
        k=p.k,
        n_queries=len(questions),
        n_slides=int(alive.sum()),
        n_patients=patients,
        threshold=thresholds[ways[0].mode],
        labels=tuple(questions.labels[label] for label in resamples.labels.tolist()),
        chance=chance_level(questions),
        within=p.within,
        definition=p.definition,
        ways=tuple(lines),
        ablation=tuple(ablation),
        storage=None
        if store.catalogue is None
        else storage_of(store.catalogue.location, int(alive.sum()), patches),
        speed=tuple(speed),
        encode_ms=Times.of(list(encode_ms)) if len(encode_ms) else None,
        examples=examples,
        notes=tuple(notes),
        about=_about(store, source, p, command),
    )


def _level_of(store: Store) -> Level:
    """Return what a database holds: slides, or images that are one patch each."""
    if store.catalogue is not None:
        return "patch" if store.catalogue.facts.patches else "slide"
    return "slide" if (store.patches_per_slide > 1).any() else "patch"


def _check_encoders(store: Store, source: Store) -> None:
    if store.words != source.words:
        raise FishError("The two databases have barcodes of different length: they must share one encoder.")
    if store.catalogue is not None and source.catalogue is not None:
        ours, theirs = store.catalogue.facts, source.catalogue.facts
        if ours.weights_hash != theirs.weights_hash:
            raise FishError(
                f"{source.catalogue.location} was built with encoder {theirs.encoder!r}, {store.catalogue.location} with {ours.encoder!r}: "
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
    kept = pictures_of(store.catalogue.location) if store.catalogue is not None else None
    if kept is None:
        yield lambda slide, box: None
        return
    try:
        yield kept.patch
    finally:
        kept.close()


def _name(store: Store) -> str:
    return PurePath(store.catalogue.location).name if store.catalogue is not None else "in memory"


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
    if store.catalogue is not None:
        facts = store.catalogue.facts
        about["encoder"] = f"{facts.encoder} ({facts.weights_hash[:12]})"
    return about
