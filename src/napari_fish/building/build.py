"""Build a database, resume one, extend one: the same call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from napari_fish.building.labelling import label_notes, labels_of, remember_patient_rule
from napari_fish.building.masks import masks_of, remember_folders, without_masks
from napari_fish.building.params import BuildParams
from napari_fish.building.runner import Runner, RunnerHere
from napari_fish.building.runner_cluster import RunnerCluster
from napari_fish.building.runner_processes import RunnerProcesses
from napari_fish.building.settings import ChosenEncoder, open_for_build
from napari_fish.building.strictness import params_for
from napari_fish.building.summary import Summary, Watch
from napari_fish.building.survey import Candidate, candidates, without_dismissed
from napari_fish.building.walk import Walk
from napari_fish.encode import Encoder
from napari_fish.errors import Cancelled, DatabaseError
from napari_fish.labels.patients import patient_rule
from napari_fish.labels.table import read_labels
from napari_fish.search.calibrate import calibrate
from napari_fish.slides.finding import told_unread
from napari_fish.slides.opening import expanded
from napari_fish.store.protocol import CataloguedStore
from napari_fish.texts import Note, enumerated, noted
from napari_fish.work import Progress, ShouldStop


def build(
    slides: str | Path | Sequence[Candidate],
    database: str | Path,
    labels: str | Path | None = None,
    params: BuildParams | None = None,
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
    watch: Watch | None = None,
    encoder: Encoder | None = None,
    columns: Mapping[str, str] | None = None,
    only: Container[str] | None = None,
) -> Summary:
    """Encode the slides of a folder into a database; run again, it goes on where it was.

    Parameters
    ----------
    slides
        A folder, searched with its subfolders, or one slide; or what was found before.
    database
        ``NAME.fish``; made where missing, else extended. A changed slide is encoded again, an unchanged one skipped.
    labels
        CSV, TSV or Excel file with what is known of the slides.
    params
        How to build.
    progress
        Called with slides done and all slides.
    should_stop
        Asked often; a yes ends the build with :class:`~napari_fish.errors.Cancelled`, finished slides kept.
    watch
        More to call while it runs.
    encoder
        One that is loaded already.
    columns
        Which column of the labels file is slide, patient, site, diagnosis or stain, where the guess is wrong.
    only
        Ids of slides to look at, such as those to try again; by default all that are found.

    Returns
    -------
    Summary
        What was done, and which slides could not be.
    """
    start = time.perf_counter()
    params, watch, should_stop = params or BuildParams(), watch or Watch(), should_stop or (lambda: False)
    folder = expanded(database)
    unread: Counter[str] = Counter()
    found = candidates(expanded(slides), unread) if isinstance(slides, str | Path) else tuple(slides)
    found = without_masks(found, params.mask)
    table = read_labels(expanded(labels), columns=columns) if labels is not None else None
    patient_rule(params.patient, table)
    masks = masks_of(found, params, table)
    wanted = [one for one in found if only is None or one.slide in only]

    def runner_of(chosen: ChosenEncoder) -> Runner:
        if params.cluster:
            return RunnerCluster.of(params, chosen, watch)
        if encoder is not None:
            return RunnerHere(chosen.load)
        return RunnerProcesses(chosen, params.workers, len(wanted))

    store, runner, settings = open_for_build(folder, params, runner_of, encoder, should_stop)
    with store, closing(runner):
        left = without_dismissed(wanted, store.catalogue)
        dismissed = [one.slide for one in wanted if one not in set(left)]
        matched = labels_of(found, table, params.patient, store.catalogue)
        run = Walk(store, runner, settings.mosaic, params, matched.labels, masks, watch, should_stop)
        with store.catalogue.changing():
            try:
                if table is not None or params.patient is not None:
                    run.relabel(found)
                remember_patient_rule(store.catalogue, params.patient, table)
                remember_folders(store.catalogue, masks)
                if params.artefacts and only is None and settings.mosaic is not None:
                    # For slides to come, and for queries.
                    now = params_for(None, params.artefacts, settings.mosaic)
                    store.catalogue.remember(mosaic=now.to_dict())
                run.all(left, progress or (lambda done, total: None))
            except (Cancelled, KeyboardInterrupt):
                # What there is so far can be searched.
                _settled(store)
                raise
            finally:
                run.pictures.close()
        notes = noted("labels", label_notes(table, matched)) + noted("masks", (*masks.notes, *run.notes))
        notes += noted("workers", runner.notes)
        notes += noted("threshold", _settled(store)) + noted("files", [told_unread(unread)] if unread else [])
        if dismissed:
            said = f"Dismissed, and left alone until they change: {enumerated(dismissed)}."
            notes.append(Note("files", said))
        quarantined = tuple(store.catalogue.quarantined)
        counts = int(store.slides.alive.sum()), int(store.patches_per_slide.sum())
    seconds = time.perf_counter() - start
    choices = {slide: record.choice for slide, record in run.known.records.items()}
    return Summary(folder, tuple(run.done), quarantined, *counts, seconds, tuple(notes), choices)


def _settled(store: CataloguedStore) -> list[str]:
    """Bring snapshot and calibration up to date; return what is to be said of the calibration."""
    store.settle()
    try:
        # Always: a build that was killed may have added slides after the last time.
        store.calibration = made = calibrate(store)
    except DatabaseError as error:
        return [str(error)]
    return [made.note] if made.note else []
