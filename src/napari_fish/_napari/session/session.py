"""What the widgets of one viewer share: the open database, the search under way, the answers so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from qtpy.QtCore import QObject, Signal

from napari_fish._napari.jobs.one_job import OneJob
from napari_fish._napari.layers.queries import FileQuestion
from napari_fish._napari.session import session_jobs
from napari_fish._napari.session.session_jobs import Found
from napari_fish.building.slide_task import Region
from napari_fish.database import Asked, Database
from napari_fish.search import Feedback, Results, SearchParams, SlideHit
from napari_fish.slides import Slide

HISTORY = 50
"""Answers that are kept to go back to."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One search of the history.

    Attributes
    ----------
    asked
        What was asked, encoded: it can be asked again with other parameters at once.
    params
        How it was searched.
    results
        The answer.
    feedback
        What the user said of hits, of this answer and those it came from.
    layer
        Name of the layer the query was taken from; empty for an image or a slide of the database.
    box
        The box that was searched, in level-0 px; None for all of the slide.
    when
        Seconds since the epoch.
    """

    asked: Asked
    params: SearchParams
    results: Results
    feedback: Feedback = field(default_factory=Feedback)
    layer: str = ""
    box: Region | None = None
    when: float = field(default_factory=time.time)


class Session(QObject):
    """The state of our widgets in one viewer; see :func:`session_of`."""

    database_changed = Signal(object)
    """The database that is open now, or None."""
    started = Signal(str)
    """What is going on, in words."""
    progressed = Signal(int, int)
    """Work done and all the work."""
    answered = Signal(object)
    """The :class:`Answer` to show."""
    history_changed = Signal()
    """Answers were added to the history or forgotten."""
    judged = Signal(object)
    """The :class:`Feedback` after a judgement or an undo, not searched with yet."""
    failed = Signal(str)
    """What went wrong, in words."""
    ended = Signal()
    """Nothing is going on any more."""

    def __init__(self) -> None:
        super().__init__()
        self.database: Database | None = None
        self.history: list[Answer] = []
        self.current: Answer | None = None
        self.feedback = Feedback()
        self._job, self._reading = OneJob(self), OneJob(self)
        self._opening = ""
        self._job.progressed.connect(self.progressed)
        self._job.ended.connect(self.ended)
        for job in (self._job, self._reading):
            job.failed.connect(self.failed)

    @property
    def busy(self) -> bool:
        """Whether something is going on."""
        return self._job.busy

    @property
    def opening(self) -> bool:
        """Whether a database is being opened."""
        return self.busy and bool(self._opening)

    def open(self, path: str | Path, device: str = "auto") -> None:
        """Open a database and make ready to search it, in the background.

        Parameters
        ----------
        path, device
            As for :func:`~napari_fish.database.open_database`.
        """
        name = Path(path).name
        self._run(
            f"Opening {name} …",
            self._opened,
            session_jobs.open_to_search,
            path,
            device,
            opening=name,
        )

    def refresh(self) -> None:
        """Show what was written to the open database since, and tell all widgets; answers so far are kept.

        Beside everything else: a search under way goes on.
        """
        if self.database is not None:
            self._reading.start(self._refreshed, session_jobs.refresh, self.database)

    def close(self) -> None:
        """Close the database."""
        self.cancel()
        if self.database is not None:
            self.database.close()
        self.database, self.history, self.current, self.feedback = None, [], None, Feedback()
        self.database_changed.emit(None)
        self.history_changed.emit()

    def search(
        self,
        question: Any,
        box: Region | None = None,
        params: SearchParams | None = None,
        *,
        layer: str = "",
        mpp: float | None = None,
    ) -> None:
        """Search for a slide, a box in it or an image; a search under way gives way.

        Parameters
        ----------
        question, box, mpp
            As for :meth:`~napari_fish.database.Database.search`; an open slide is closed when done. The
            question may also be a function that returns a slide and a box: it is called in the background,
            where opening a slide keeps nobody waiting.
        params
            How to search.
        layer
            Name of the layer the question was taken from.
        """
        if self.database is None:
            self.failed.emit("Open a database first.")
            return
        name = question.path.name if isinstance(question, Slide | FileQuestion) else layer or "the image"
        if isinstance(question, str | Path):
            name = str(question).removeprefix("id:")
        done = partial(self._answered, layer, Feedback())
        params = params or SearchParams()
        self._run(
            f"Searching for {name} …", done, session_jobs.search_in, self.database, question, box, mpp, params
        )

    def search_again(self, params: SearchParams) -> None:
        """Answer the current question with other parameters, without encoding it again."""
        if self.current is not None:
            self._ask_again(self.current, params, self.current.feedback)

    def judge(self, hit: SlideHit, relevant: bool) -> None:
        """Note what the user thinks of a hit; :meth:`refine` searches with it."""
        self.feedback = self.feedback.judge(hit, relevant)
        self.judged.emit(self.feedback)

    def withdraw(self, hit: SlideHit) -> None:
        """Take back what the user said of a hit."""
        self.feedback = self.feedback.withdraw(hit.slide)
        self.judged.emit(self.feedback)

    def undo(self) -> None:
        """Take the last judgement back; where an answer was refined with it, show the one before."""
        current = self.current
        self.feedback = self.feedback.undo()
        self.judged.emit(self.feedback)
        if current is not None and len(self.feedback.judgements) < len(current.feedback.judgements):
            self._ask_again(current, current.params, self.feedback)

    def refine(self) -> None:
        """Search with what the user said of hits."""
        if self.current is not None:
            self._ask_again(self.current, self.current.params, self.feedback)

    def show(self, answer: Answer) -> None:
        """Show an answer of the history again."""
        self.current, self.feedback = answer, answer.feedback
        self.answered.emit(answer)
        self.judged.emit(self.feedback)

    def cancel(self) -> None:
        """Stop what is going on; returns at once."""
        self._job.cancel()
        if self.opening:
            name, self._opening = self._opening, ""
            self.failed.emit(f"{name} was not opened.")

    def _ask_again(self, answer: Answer, params: SearchParams, feedback: Feedback) -> None:
        if self.database is None:
            return
        done = partial(self._answered, answer.layer, feedback)
        self._run(
            "Searching …",
            done,
            session_jobs.refine,
            self.database,
            answer.asked,
            answer.box,
            params,
            feedback,
        )

    def _run(
        self,
        what: str,
        done: Callable[[Any], None],
        work: Callable[..., Any],
        *args: Any,
        opening: str = "",
    ) -> None:
        if self.opening and not opening:  # the database to be asked is about to give way to another
            return
        self._opening = opening
        self._job.start(done, work, *args)
        self.started.emit(what)

    def _refreshed(self, database: Database) -> None:
        if database is self.database:
            self.database_changed.emit(database)

    def _opened(self, database: Database) -> None:
        old, self.database = self.database, database
        if old is not None:
            old.close()
        self.history, self.current, self.feedback = [], None, Feedback()
        self.database_changed.emit(database)
        self.history_changed.emit()

    def remember(self, answer: Answer) -> None:
        """Put an answer into the history, in place of one to the same question with other parameters."""
        others = (a for a in self.history if a.asked is not answer.asked or a.feedback != answer.feedback)
        self.history = [answer, *others][:HISTORY]
        self.history_changed.emit()

    def _answered(self, layer: str, feedback: Feedback, found: Found) -> None:
        asked, params, results, box = found
        answer = Answer(asked, params, results, feedback, layer=layer, box=box)
        self.remember(answer)
        self.show(answer)


_sessions: WeakKeyDictionary[Any, Session] = WeakKeyDictionary()


def session_of(viewer: Any) -> Session:
    """Return what the widgets of a viewer share; the same for the viewer and for napari's proxies of it."""
    real = getattr(viewer, "__wrapped__", viewer)
    if real not in _sessions:
        _sessions[real] = Session()
    return _sessions[real]
