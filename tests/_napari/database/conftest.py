"""A Database widget with an encoder so small that a build takes seconds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from napari.components import ViewerModel

from napari_fish._napari import preferences
from napari_fish._napari.database.widget import DatabaseWidget
from napari_fish._napari.session.session import session_of
from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from tests._napari.database.driving import (
    LONG,
    SLIDES,
)
from tests._napari.tiny_slides import write_archive, write_encoder
from tests.tiny import ink_on


@pytest.fixture(scope="package")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    write_encoder(folder)
    return folder


@pytest.fixture(autouse=True)
def tiny_encoder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAPARI_FISH_CACHE", str(cache))


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember nothing of or for the user."""
    monkeypatch.setattr(preferences, "_file", lambda: tmp_path / "remembered.json")


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A folder with slides, and the database that an undisturbed build makes of them."""
    folder = tmp_path_factory.mktemp("built")
    slides = write_archive(folder / "slides", SLIDES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NAPARI_FISH_CACHE", str(cache))
        build(slides, folder / "a.fish", slides / "labels.csv", BuildParams(encoder="tiny"))
    return folder


@pytest.fixture
def archive(built: Path, tmp_path: Path) -> Path:
    """A copy of it that may be changed."""
    return Path(shutil.copytree(built, tmp_path / "archive"))


@pytest.fixture
def make_widget(qtbot: Any) -> Iterator[Callable[[], DatabaseWidget]]:
    made: list[tuple[ViewerModel, DatabaseWidget]] = []

    def make() -> DatabaseWidget:
        viewer = ViewerModel()
        widget = DatabaseWidget(viewer)
        qtbot.addWidget(widget)
        made.append((viewer, widget))
        return widget

    yield make
    for _, widget in made:  # first, as waiting for one lets Qt delete the others
        widget.cancel()
    for viewer, widget in made:
        session = session_of(viewer)
        jobs = (widget.build._survey, widget.build._build, widget.inspect._look, widget.inspect._care)
        idle = (*jobs, widget.build.form.device._job, widget.inspect.labels._job, session, session._reading)
        qtbot.waitUntil(lambda idle=idle: not any(job.busy for job in idle), timeout=LONG)
        session.close()


@pytest.fixture
def widget(make_widget: Callable[[], DatabaseWidget]) -> DatabaseWidget:
    return make_widget()


@pytest.fixture
def inked(archive: Path, monkeypatch: pytest.MonkeyPatch, here: None) -> Path:
    """A database of which one slide lost a third of its patches to ink."""
    ink_on(monkeypatch, "s1", 2)
    strict = BuildParams(encoder="tiny", artefacts="strict")
    build(archive / "slides", archive / "a.fish", params=strict)
    return archive
