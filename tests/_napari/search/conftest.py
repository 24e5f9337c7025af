"""A Search widget, a slide and a small database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from napari.components import ViewerModel

from napari_fish._napari import preferences
from napari_fish._napari.search.widget import SearchWidget
from napari_fish._napari.session.session import session_of
from tests._napari.search.archive import build_archive
from tests._napari.search.driving import PATIENCE_MS, rest


@pytest.fixture(scope="package")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with slides/ and small.fish."""
    folder = tmp_path_factory.mktemp("archive")
    build_archive(folder)
    return folder


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember nothing of or for the user."""
    monkeypatch.setattr(preferences, "_file", lambda: tmp_path / "remembered.json")


@pytest.fixture
def shown(archive: Path) -> Iterator[ViewerModel]:
    viewer = ViewerModel()
    viewer.open(archive / "slides" / "a.tif", plugin="napari-fish")
    yield viewer
    viewer.layers.clear()


@pytest.fixture
def bare(qtbot: Any, shown: ViewerModel) -> Iterator[SearchWidget]:
    """The widget before a database is open."""
    made = SearchWidget(shown)
    qtbot.addWidget(made)
    yield made
    session = session_of(shown)
    session.cancel()
    made.batch.stop()
    qtbot.waitUntil(lambda: not session.busy and not made.batch.running, timeout=PATIENCE_MS)
    made.close()
    session.close()


@pytest.fixture
def widget(qtbot: Any, bare: SearchWidget, archive: Path) -> SearchWidget:
    """The widget with a database open, ready to search."""
    bare.picker.open(archive / "small.fish")
    rest(qtbot, bare)
    qtbot.waitUntil(lambda: bare.query.facts is not None, timeout=PATIENCE_MS)
    return bare
