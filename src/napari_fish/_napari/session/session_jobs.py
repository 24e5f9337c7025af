"""What the session of a viewer does beside it: plain functions for workers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from napari_fish._napari.jobs.notify import as_in_widgets
from napari_fish.building.slide_task import Region
from napari_fish.database import Asked, Database, open_database
from napari_fish.encode.bundle.device import load_torch_libraries
from napari_fish.errors import Cancelled, FishError
from napari_fish.index.warm import warm_up
from napari_fish.search import Feedback, Results, SearchParams
from napari_fish.slides import Slide

Found = tuple[Asked, SearchParams, Results, Region | None]
"""What a search brings back."""


def open_to_search(path: str | Path, device: str, progress: Any, should_stop: Any) -> Database:
    """Open a database and load what the first search would have to wait for."""
    load_torch_libraries()
    database = open_database(path, device)
    try:
        warm_up()
        database.encoder  # noqa: B018 - loads it now, so that the first search need not wait
        if should_stop():
            raise Cancelled(f"{database.path} is not wanted any more.")
        # Searches need not wait for this, but are faster once it is done.
        Thread(target=database.store.read_through, daemon=True).start()
    except (FishError, Cancelled):
        database.close()
        raise
    return database


def refresh(database: Database, progress: Any, should_stop: Any) -> Database:
    """Show what was written to a database since."""
    database.refresh()
    return database


def search_in(
    database: Database,
    question: Any,
    box: Region | None,
    mpp: float | None,
    params: SearchParams,
    progress: Any,
    should_stop: Any,
) -> Found:
    """Ask a database a question, as :meth:`~napari_fish._napari.session.session.Session.search` takes it."""
    if callable(question):
        question, box = question()
    try:
        asked = database.ask(question, box, mpp=mpp, progress=progress, should_stop=should_stop)
    finally:
        if isinstance(question, Slide):
            question.close()
    return asked, params, _told(database.answer([asked], params)[0]), box


def _told(results: Results) -> Results:
    notes = (replace(note, text=as_in_widgets(note.text)) for note in results.notes)
    return replace(results, notes=tuple(notes))


def refine(
    database: Database,
    asked: Asked,
    box: Region | None,
    params: SearchParams,
    feedback: Feedback,
    progress: Any,
    should_stop: Any,
) -> Found:
    """Ask a question again with other parameters, and with what the user said of hits."""
    query = feedback.apply(database.store, asked.query)
    # A slide that was removed since needs no filter, and would be refused as one that nobody knows.
    there = (slide for slide in feedback.unwanted if database.record(slide) is not None)
    results = database.answer(
        [replace(asked, query=query, added=feedback.added)],
        replace(params, where=(*params.where, *(f"slide!={slide}" for slide in there))),
    )[0]
    return asked, params, _told(results), box
