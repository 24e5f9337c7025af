"""A real viewer with the real widgets, and what a user does with mouse and keyboard."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytestqt.exceptions import TimeoutError
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QApplication, QWidget

from napari_fish._napari.compare.compare import comparison_of
from napari_fish._napari.layers.coordinates import to_scene
from napari_fish._napari.session.session import session_of
from napari_fish.slides.demo import SITE_OF, DemoSpec, write_demo_slide

LONG = 600_000
SIZE_UM = (900.0, 760.0)
SLIDES = (("one", "lymphoma"), ("two", "sarcoma"), ("three", "lymphoma"), ("four", "sarcoma"))


@pytest.fixture(scope="session", autouse=True)
def plugins(installed_plugins: None) -> None:
    """All readers that are installed."""


@pytest.fixture(scope="session")
def slides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with demo slides, a broken one and labels; a space and an umlaut in its name."""
    folder = tmp_path_factory.mktemp("user") / "my slidés"
    folder.mkdir()
    rows = ["slide,patient,site,diagnosis"]
    for seed, (name, diagnosis) in enumerate(SLIDES, 1):
        spec = DemoSpec(name, f"p{seed}", SITE_OF[diagnosis], diagnosis, seed, *SIZE_UM)
        write_demo_slide(spec, folder / f"{name}.tif")
        rows.append(f"{name}.tif,p{seed},{SITE_OF[diagnosis]},{diagnosis}")
    (folder / "broken.svs").write_text("no slide at all")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder


class User:
    """Somebody at the viewer, who sees widgets and uses mouse and keyboard."""

    def __init__(self, viewer: Any, qtbot: Any) -> None:
        self.viewer, self.qtbot = viewer, qtbot
        self.session, self.comparison = session_of(viewer), comparison_of(viewer)
        self.widgets: dict[str, QWidget] = {}

    def opens(self, *names: str) -> None:
        """Open widgets from the Plugins menu."""
        for name in names:
            _, self.widgets[name] = self.viewer.window.add_plugin_dock_widget(
                "napari-fish", name, tabify=True
            )

    def sees(self, name: str) -> Any:
        """Return the control of this object name."""
        found = [w.findChild(QWidget, name) for w in self.widgets.values()]
        (control,) = [one for one in found if one is not None]
        return control

    def clicks(self, name: str) -> None:
        """Click on a button."""
        button = self.sees(name)
        self.waits(button.isEnabled)
        self.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def types(self, name: str, text: object) -> None:
        """Paste into a line, for QTest cannot type letters beyond ASCII."""
        line = self.sees(name)
        line.selectAll()
        line.insert(str(text))
        self.qtbot.keyClick(line, Qt.Key.Key_Return)

    def waits(self, until: Callable[[], Any]) -> None:
        """Wait until something can be seen; what the widgets say goes into the complaint where it cannot."""
        try:
            self.qtbot.waitUntil(lambda: bool(until()), timeout=LONG)
        except TimeoutError:
            said = {name: self.sees(f"{name.lower()}.state").text() for name in self.widgets}
            raise AssertionError(f"waited in vain; the widgets say {said}") from None

    def clicks_on_slide(self, layer: Any, row: float, column: float) -> None:
        """Click on a slide at a share of its height and width."""
        canvas = self.viewer.__wrapped__.window._qt_viewer.canvas
        world = layer.extent.world[:, -2:]
        point = world[0] + (world[1] - world[0]) * (row, column)
        scene = to_scene(self.viewer, layer, [point])[0]
        camera, (height, width) = self.viewer.scene.camera, self.viewer.canvas.size
        y, x = (scene - camera.center[-2:]) * camera.zoom + np.array([height, width]) / 2
        at = QPoint(round(x), round(y))
        self.qtbot.mouseMove(canvas.native, at + QPoint(3, 3))
        self.qtbot.mouseMove(canvas.native, at)
        self.qtbot.mouseClick(canvas.native, Qt.MouseButton.LeftButton, pos=at)

    def answered(self) -> Any:
        """Wait for the answer to a search and its pictures; return it."""
        self.waits(lambda: self.session.current is not None and not self.session.busy)
        return self.session.current

    def compares(self) -> None:
        """Press Compare and wait for it."""
        self.clicks("results.compare")
        self.waits(lambda: self.comparison.shown and not self.comparison.busy)
        QApplication.processEvents()

    def rests(self) -> None:
        """Let everything come to its end."""
        self.session.cancel()
        database = self.widgets.get("Database")
        if database is not None:
            database.cancel()
        self.waits(lambda: not self.session.busy and not self.comparison.busy)
        self.waits(lambda: database is None or not database.busy)


@pytest.fixture
def user(request: pytest.FixtureRequest, qtbot: Any) -> Iterator[User]:
    """Start napari."""
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        pytest.skip("NO DISPLAY: run under xvfb-run to test with a real viewer")
    viewer = request.getfixturevalue("make_napari_viewer_proxy")(show=True)
    viewer.window.resize(1500, 950)
    somebody = User(viewer, qtbot)
    yield somebody
    somebody.rests()
    somebody.session.close()
