"""The *Build* page of the Database widget: choose, see what it will take, build, watch."""

from __future__ import annotations

from pathlib import Path

from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_fish._napari import preferences
from napari_fish._napari.controls.common import named
from napari_fish._napari.database.build_form import OWNER, BuildForm
from napari_fish._napari.database.build_job import Brake, BuildNews, Choices, run_again, run_build
from napari_fish._napari.database.build_progress import QUARANTINED, BuildProgress
from napari_fish._napari.database.build_survey import Prospect, look
from napari_fish._napari.jobs.notify import as_in_widgets, as_sentence
from napari_fish._napari.jobs.one_job import OneJob
from napari_fish.building.params import BuildParams
from napari_fish.building.summary import Summary
from napari_fish.mosaic.left_out import told
from napari_fish.names import Strictness
from napari_fish.slides.opening import expanded
from napari_fish.texts import count, duration

PAUSE_MS = 300
"""Slides are looked at when nothing has been changed for so long."""
NEWS_MS = 250
EMPTY = "Choose a folder of slides, or drop one here."
LOOKING = "Looking at the slides …"


class BuildPanel(QWidget):
    """Builds, resumes and extends databases beside the viewer."""

    said = Signal(str, bool)
    """What is going on, and whether it is something wrong."""
    progressed = Signal(int, int)
    """Slides done and all slides; 0, 0 where that is not known."""
    running = Signal(bool)
    """A build began or ended."""
    built = Signal(object)
    """The :class:`~napari_fish.building.summary.Summary` of a build that came to its end."""
    altered = Signal(object)
    """The database of a build that was stopped or failed, which has the slides finished until then."""
    look_at = Signal(str, str)
    """The database of the last build, and a slide to show with what was left out of it."""

    def __init__(self) -> None:
        super().__init__()
        self.prospect: Prospect | None = None
        self._news, self._brake = BuildNews(), Brake()
        self._done = self._total = self._finished = 0
        self._target = ""
        self._make()
        self._survey, self._build = OneJob(self), OneJob(self)
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._clock = QTimer(self, interval=NEWS_MS)
        self._pause.timeout.connect(self.look)
        self._clock.timeout.connect(self._show_news)
        self._survey.failed.connect(self._cannot)
        self._survey.progressed.connect(self._looking)
        self._build.progressed.connect(self._progress)
        self._build.failed.connect(self._failed)
        self._build.cancelled.connect(self._stopped)
        self._build.ended.connect(self._ended)
        self.form.changed.connect(self._changed)
        self._changed()

    @property
    def building(self) -> bool:
        """Whether a build is under way, paused or not."""
        return self._build.busy

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self.building and self._brake.paused

    def look(self) -> None:
        """Find out what a build would do; a look under way gives way."""
        self._pause.stop()
        choices = self.form.choices
        if self.building or not choices.slides:
            return
        if not choices.database:
            self._cannot("Choose where the database will be.")
            return
        self.outlook.setText(LOOKING)
        self.said.emit(LOOKING, False)
        self._survey.start(self._seen, look, choices)

    def start(self, only: list[str] | None = None) -> None:
        """Build what is chosen; ``only`` some slides to try them again."""
        choices = self.form.choices
        if self.building:
            return
        if not choices.slides or not choices.database:
            self.said.emit(EMPTY if not choices.slides else "Choose where the database will be.", True)
            return
        self._remember(choices)
        params = choices.params
        device = params.device if self.prospect is None else self.prospect.device
        where = "the fastest device" if device == "auto" else device.upper()
        self._begin(
            choices.database,
            f"{Path(choices.slides).name} → {Path(choices.database).name}, with {params.encoder} on {where}",
            only,
        )
        wanted = None if only is None else frozenset(only)
        self._build.start(self._finish, run_build, choices, self._news, self._brake, wanted)
        self._begun()

    def encode_again(self, database: Path, slides: list[str], artefacts: Strictness) -> None:
        """Encode slides of a database again, leaving artefacts out as strictly as is said."""
        if self.building:
            return
        params = BuildParams(
            artefacts=artefacts,
            device=preferences.preferred_device(),
            thumbnail_px=preferences.kept_picture_px(),
            batch=preferences.batch_size(),
        )
        self._begin(
            str(database), f"{count(len(slides), 'slide')} of {database.name} again, artefacts {artefacts}"
        )
        self._build.start(self._finish, run_again, str(database), slides, params, self._news, self._brake)
        self._begun()

    def _begin(self, database: str, doing: str, only: list[str] | None = None) -> None:
        """Make room for a build."""
        self._pause.stop()
        self._survey.cancel()
        self._target = database
        self.doing.setText(doing)
        self._news, self._brake = BuildNews(), Brake()
        self._done = self._total = self._finished = 0
        self.progress.begin(only)
        self.said.emit("Loading the encoder …", False)
        self.progressed.emit(0, 0)

    def _begun(self) -> None:
        self._clock.start()
        self._enable()
        self.running.emit(True)

    def pause(self) -> None:
        """Hold the build, or let it go on."""
        if not self.building:
            return
        if self._brake.paused:
            self._brake.go_on()
        else:
            self._brake.pause()
            self.said.emit("Paused. Resume goes on where it was; Cancel keeps every finished slide.", False)

    def cancel(self) -> None:
        """Stop looking or building; finished slides are kept."""
        self._pause.stop()
        self._survey.cancel()
        if self.building:
            self.said.emit("Stopping after the patch in progress …", False)
            self._build.cancel()

    def forget(self) -> None:
        """Stop, and do not even look at slides any more."""
        self.cancel()
        self._build.ended.disconnect(self._ended)
        self._clock.stop()

    def reset(self) -> None:
        """Go back to the beginning."""
        if self.building:
            return
        self.form.reset()
        self.progress.clear()
        self.said.emit(EMPTY, False)

    def _changed(self) -> None:
        choices = self.form.choices
        self.prospect = None
        self._survey.cancel()
        self._pause.stop()
        if choices.slides:
            self._pause.start()
        else:
            self.outlook.setText(EMPTY)
            self.said.emit(EMPTY, False)
            self.form.show_prospect(None)
        self._enable()

    def _looking(self, done: int, total: int) -> None:
        self.outlook.setText(f"{LOOKING} {done} of {total}")

    def _show_prospect(self, prospect: Prospect) -> None:
        self.prospect = prospect
        self.outlook.setText(str(prospect))
        self.form.show_prospect(prospect)
        self._enable()

    def _seen(self, prospect: Prospect) -> None:
        self._show_prospect(prospect)
        self.progress.show_quarantined(prospect.outlook.quarantined)
        if prospect.labels is not None and prospect.labels.problem:
            self.said.emit(prospect.labels.problem, True)
        else:
            self.said.emit(
                "Ready to build." if prospect.outlook.to_do else "All slides are in the database.", False
            )

    def _cannot(self, text: str) -> None:
        """Say why there is nothing to build."""
        self.outlook.setText(text)
        self._enable()
        self.said.emit(text, True)

    def _progress(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        self.progressed.emit(done, total)

    def _show_news(self) -> None:
        """Show what the build told since; called by a clock, so that a fast build does not flood the viewer."""
        news = self._news.take()
        self.progress.show_news(news)
        self._finished += sum(one.fate in ("added", "replaced", QUARANTINED) for one in news.done)
        expected = None if self.prospect is None else self.prospect.seconds
        self.progress.show_speed(
            self._brake.seconds, self._finished, max(0, self._total - self._done), expected
        )
        quiet = self._brake.paused or self._build.stopping
        if self.building and not quiet and self._total:
            self.said.emit(f"Building: {self._done} of {count(self._total, 'slide')} done.", False)

    def _finish(self, summary: Summary) -> None:
        self._show_news()
        bad = len(summary.quarantined)
        text = f"Done in {duration(self._brake.seconds)}: {count(summary.slides, 'slide')}, "
        text += f"{count(summary.patches, 'patch')} in {summary.database.name}."
        if bad:
            text += f" {count(bad, 'slide')} could not be read; the list says why."
        if any(summary.judged):
            text += f" On tissue: {told(*summary.judged)}."
        # What the labels say is shown where they are chosen.
        notes = [as_sentence(text) for text in summary.warnings]
        notes += [as_in_widgets(note.text) for note in summary.notes if note.kind != "labels"]
        self.said.emit(" ".join([text, *notes]), False)
        self.built.emit(summary)

    def _failed(self, text: str) -> None:
        self._show_news()
        self.said.emit(text, True)
        self.altered.emit(expanded(self._target))

    def _stopped(self) -> None:
        self._show_news()
        kept = self.progress.counts["added"] + self.progress.counts["replaced"]
        self.said.emit(f"Stopped. {count(kept, 'new slide')} kept; Resume goes on from there.", False)
        self.altered.emit(expanded(self._target))

    def _ended(self) -> None:
        self._clock.stop()
        self.progress.end()
        self.running.emit(False)
        self._enable()
        # What is left to do has changed.
        if self.form.choices.slides:
            self._survey.start(self._show_prospect, look, self.form.choices)

    def _remember(self, choices: Choices) -> None:
        preferences.remember_recent("slides folders", choices.slides)
        preferences.remember_recent("databases", choices.database)
        self.form.keep()

    def _enable(self) -> None:
        """Let the controls fit what can be done now."""
        seen = None if self.prospect is None else self.prospect.outlook
        label = "Build"
        if seen is not None and seen.done:
            label = "Resume" if seen.to_do > len(seen.quarantined) else "Update"
        self.go.setText(label)
        self.go.setEnabled(bool(self.form.choices.slides))
        for part in (self.form, self.outlook, self.go, self.back):
            part.setVisible(not self.building)
        self.doing.setVisible(self.building)
        self.progress.set_usable(not self.building)

    def _make(self) -> None:
        self.form = BuildForm()
        self.outlook = named(
            OWNER, QLabel(), "outlook", "Slides found and done; time and disk space the build will take."
        )
        self.outlook.setWordWrap(True)
        self.go = named(
            OWNER, QPushButton("Build"), "build", "Build the database, or go on where it was stopped."
        )
        self.back = named(
            OWNER, QPushButton("Reset"), "reset", "Forget what is chosen here; nothing is deleted."
        )
        self.doing = named(OWNER, QLabel(), "doing", "What is being built, from what, and how.")
        self.doing.setWordWrap(True)
        self.progress = BuildProgress()
        buttons = QHBoxLayout()
        buttons.addWidget(self.go, 2)
        buttons.addWidget(self.back, 1)
        layout = QVBoxLayout(self)
        for part in (self.form, self.outlook, self.doing):
            layout.addWidget(part)
        layout.addLayout(buttons)
        layout.addWidget(self.progress)
        layout.addStretch()
        self.go.clicked.connect(lambda: self.start())
        self.back.clicked.connect(self.reset)
        self.progress.retry.connect(self.start)
        self.progress.look.connect(lambda slide: self.look_at.emit(self._target, slide))
