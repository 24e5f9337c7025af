"""A viewer that is closed during a build ends its program cleanly, and the build can be resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.store.snapshot.store import SnapshotStore
from tests._napari.tiny_slides import write_archive, write_encoder

PROGRAM = """
import sys
import napari
from qtpy.QtCore import QTimer
from napari_fish._napari.database.widget import DatabaseWidget

viewer = napari.Viewer()
widget = DatabaseWidget(viewer)
viewer.window.add_dock_widget(widget, name="Database", area="right")
form = widget.build.form
form.encoder.setCurrentIndex(form.encoder.findData("tiny"))
form.slides.put(sys.argv[1])
form.database.put(sys.argv[2])
widget.build.start()
news = widget.build._news
timer = QTimer()
timer.timeout.connect(lambda: viewer.close() if news.patches >= 1 else None)
timer.start(10)
napari.run()
print("patches:", news.patches)
"""


def test_a_viewer_closed_during_a_build_ends_cleanly_and_the_build_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        pytest.skip("NO DISPLAY: run under xvfb-run to test with a real viewer")
    monkeypatch.setenv("NAPARI_FISH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NAPARI_CONFIG", str(tmp_path / "settings.yaml"))
    write_encoder(tmp_path / "cache")
    slides = write_archive(tmp_path / "slides")
    command = [sys.executable, "-c", PROGRAM, str(slides), str(tmp_path / "a.fish")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr
    assert "patches:" in ended.stdout
    assert "Traceback" not in ended.stderr
    # The widget finds the labels by itself.
    labels, params = slides / "labels.csv", BuildParams(encoder="tiny")
    summary = build(slides, tmp_path / "a.fish", labels, params)
    assert summary.slides == 4
    build(slides, tmp_path / "b.fish", labels, params)
    with SnapshotStore(tmp_path / "a.fish") as resumed, SnapshotStore(tmp_path / "b.fish") as undisturbed:
        assert resumed.digest() == undisturbed.digest()
