"""The *Database* dock widget: from a folder of slides to a database that can be searched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QSize, Qt
from qtpy.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from napari_fish._napari import preferences
from napari_fish._napari.controls.common import named, state_line
from napari_fish._napari.controls.path_field import dropped_paths
from napari_fish._napari.database.build_panel import EMPTY, BuildPanel
from napari_fish._napari.database.inspect_panel import InspectPanel
from napari_fish._napari.database.left_out import LeftOutViewer
from napari_fish._napari.docks import DockedWidget
from napari_fish._napari.session.session import session_of
from napari_fish.building.summary import Summary
from napari_fish.names import Strictness
from napari_fish.slides.opening import expanded
from napari_fish.store.opening import may_be_database
from napari_fish.texts import count

if TYPE_CHECKING:
    import napari.viewer

OWNER = "database"
WIDTH = 380


class DatabaseWidget(DockedWidget):
    """Builds, opens, inspects and looks after databases; the one that is open serves all our widgets.

    Parameters
    ----------
    viewer : napari.Viewer
        Whose widgets share the database.
    """

    def __init__(self, viewer: napari.viewer.Viewer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session_of(viewer)
        self.left_out = LeftOutViewer(viewer, self)
        self._make()
        self._connect()
        self.setAcceptDrops(True)
        self._opening = ""
        self._ready: Path | None = None
        self._opened(self._session.database)
        if self._session.database is None:
            self.inspect.offer(preferences.default_database())
        self._say(EMPTY)

    @property
    def busy(self) -> bool:
        """Whether something long is going on here."""
        return self.build.building or self.inspect.busy or self.left_out.busy

    def open(self, path: str | Path) -> None:
        """Open a database for all our widgets."""
        if str(path):
            self._opening = f"Opening {Path(path).name} …"
            self.opened.setText(self._opening)
            if not self.busy:
                self._say(self._opening)
            self._session.open(path, preferences.preferred_device())

    def show_page(self, title: str) -> None:
        """Show the page *Build* or *Inspect*."""
        pages = [self.tabs.tabText(i) for i in range(self.tabs.count())]
        self.tabs.setCurrentIndex(pages.index(title))

    def choose_slides(self) -> None:
        """Ask for a folder of slides to build a database from."""
        self.show_page("Build")
        self.build.form.slides.ask()

    def cancel(self) -> None:
        """Stop what is going on; returns at once."""
        self.build.cancel()
        self.inspect.cancel()
        self.left_out.cancel()

    def show_left_out(self, slide: str, path: str = "") -> None:
        """Show a slide of the open database with what was left out of it; of another one, say what to do."""
        database = self._session.database
        if database is None or (path and not _same(database.path, expanded(path))):
            self._say(f"Open {Path(path).name or 'the database'} first, to look at its slides.", True)
        else:
            self.left_out.show(database, slide)

    def _let_go(self) -> None:
        self.build.forget()
        self.inspect.cancel()
        self.left_out.cancel()

    def dragEnterEvent(self, event: Any) -> None:
        """Take files and folders."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Open a database, or take what is dropped as slides or labels."""
        for path in dropped_paths(event):
            if may_be_database(path):
                self.open(path)
            else:
                self.show_page("Build")
                self.build.form.take(path)
        event.acceptProposedAction()

    def _opened(self, database: Any) -> None:
        self.inspect.show_database(None if database is None else database.path)
        if database is not None:
            preferences.remember("database", str(database.path))
            preferences.remember_recent("databases", str(database.path))
            self.opened.setText(f"Open: {database.path.name}, {count(len(database), 'slide')}")
            self.opened.setToolTip(str(database.path))
            if self._ready is not None and _same(self._ready, database.path):
                self._offer(None)
            if self._opening and self.state.text() == self._opening:
                self._say(f"{database.path.name} can be searched.")
        else:
            self.opened.setText("No database is open.")

    def _overrule(self, slides: list[str], artefacts: Strictness) -> None:
        """Encode slides of the open database again, on the page where builds are watched."""
        if self.inspect.inspection is not None:
            self.show_page("Build")
            self.build.encode_again(self.inspect.inspection.path, slides, artefacts)

    def _built(self, summary: Summary) -> None:
        """Show what is new in the open database, or open what was built; not in place of one that is in use."""
        database = self._session.database
        if database is not None and _same(database.path, summary.database):
            self._session.refresh()
        elif database is None and not self._session.opening:
            self.open(summary.database)
        else:
            self._offer(summary.database)
            self._say(f"{self.state.text()} {summary.database.name} is ready.")

    def _offer(self, ready: Path | None) -> None:
        """Offer to open what was built."""
        self._ready = ready
        self.ready.setVisible(ready is not None)
        if ready is not None:
            self.ready.setText(f"Open {ready.name}")

    def _open_ready(self) -> None:
        if self._ready is not None:
            self.open(self._ready)

    def _wanted(self, path: str) -> None:
        """Open a database; the one that is open is only read again."""
        database = self._session.database
        if path and database is not None and _same(database.path, expanded(path)):
            self._session.refresh()
        else:
            self.open(path)

    def _altered(self, path: Path) -> None:
        database = self._session.database
        if database is not None and _same(database.path, path):
            self._session.refresh()

    def _extend(self, path: str) -> None:
        self.build.form.extend(path)
        self.show_page("Build")
        self._say("Choose a folder of slides to add.")

    def _running(self, *_: Any) -> None:
        """Let the controls at the bottom fit what is going on."""
        self.stop.setVisible(self.busy)
        self.stop.setEnabled(self.build.building or self.inspect.stoppable or self.left_out.busy)
        self.hold.setVisible(self.build.building)
        self.hold.setText("Resume" if self.build.paused else "Pause")
        self.bar.setVisible(self.busy)
        self.inspect.set_usable(not self.build.building and not self.left_out.busy)
        if not self.busy:
            self.bar.reset()

    def _pause(self) -> None:
        self.build.pause()
        self._running()

    def _progress(self, done: int, total: int) -> None:
        # Never without a maximum: an animated bar redraws the whole window all the time.
        self.bar.setMaximum(max(1, total))
        self.bar.setValue(done)
        self.bar.setFormat(f"{done} of {total}" if total else "…")

    def _connect(self) -> None:
        for panel in (self.build, self.inspect, self.left_out):
            panel.said.connect(self._say)
            panel.progressed.connect(self._progress)
            panel.running.connect(self._running)
        self.build.built.connect(self._built)
        self.build.altered.connect(self._altered)
        self.inspect.wanted.connect(self._wanted)
        self.inspect.extend.connect(self._extend)
        self.inspect.altered.connect(self._altered)
        self.inspect.look.connect(self.show_left_out)
        self.inspect.overrule.connect(self._overrule)
        self.build.look_at.connect(lambda path, slide: self.show_left_out(slide, path))
        self.stop.clicked.connect(self.cancel)
        self.hold.clicked.connect(self._pause)
        self.ready.clicked.connect(self._open_ready)
        self._listen()
        self._running()

    def _heard(self) -> tuple[tuple[Any, Any], ...]:
        session = self._session
        return (
            (session.database_changed, self._opened),
            (session.failed, self._failed),
            (session.ended, self._session_ended),
        )

    def _failed(self, text: str) -> None:
        """Say why a database could not be opened; searches that fail are another widget's."""
        if self._opening:
            self._opened(self._session.database)
            self._say(text, True)

    def _session_ended(self) -> None:
        self._opening = ""

    def _make(self) -> None:
        self.build, self.inspect = BuildPanel(), InspectPanel()
        self.tabs = named(OWNER, QTabWidget(), "pages", "Build a database, or look at one.")
        for panel, title in ((self.build, "Build"), (self.inspect, "Inspect")):
            scroll = QScrollArea()
            scroll.setWidgetResizable(True)
            scroll.setFrameShape(QFrame.Shape.NoFrame)
            scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            scroll.setWidget(panel)
            self.tabs.addTab(scroll, title)
        self.opened = named(OWNER, QLabel(), "opened", "The database that all our widgets use.")
        self.ready = named(
            OWNER, QPushButton(), "ready", "Open what was built, in place of the database that is open."
        )
        self.ready.hide()
        self.bar = named(OWNER, QProgressBar(), "progress", "How far it is.")
        self.hold = named(OWNER, QPushButton("Pause"), "pause", "Hold the build, or let it go on.")
        self.stop = named(OWNER, QPushButton("Cancel"), "cancel", "Stop; finished slides are kept.")
        self.state = state_line(OWNER)
        self._say = self.state.say
        row = QHBoxLayout()
        row.addWidget(self.bar, 1)
        row.addWidget(self.hold)
        row.addWidget(self.stop)
        layout = QVBoxLayout(self)
        layout.addWidget(self.opened)
        layout.addWidget(self.tabs, 1)
        layout.addLayout(row)
        layout.addWidget(self.state)
        layout.addWidget(self.ready)
        self.setMinimumWidth(WIDTH)

    def sizeHint(self) -> QSize:
        """Return the size it likes in a dock."""
        return QSize(WIDTH, 760)


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
