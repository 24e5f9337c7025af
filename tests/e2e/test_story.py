"""From a folder of slides to a refined answer, as somebody does it who never opens a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from napari.utils.notifications import notification_manager
from qtpy.QtCore import Qt
from qtpy.QtGui import QAction
from qtpy.QtWidgets import QFileDialog

from napari_fish._napari.compare.navigate import MATCHES_KEY
from napari_fish._napari.reader import samples
from napari_fish.database import build
from napari_fish.slides import open_slide
from napari_fish.store.snapshot.store import SnapshotStore
from tests._napari.results.measured_archive import magnification
from tests.e2e.conftest import SIZE_UM, SLIDES, User
from tests.slides.conftest import write_omezarr, write_tiff


@pytest.fixture
def no_traceback() -> Any:
    """Nobody may see a traceback, or any error at all that they did not cause."""
    seen: list[str] = []

    def listen(notification: Any) -> None:
        if str(notification.severity).lower() == "error":
            seen.append(str(notification.message))

    notification_manager.notification_ready.connect(listen)
    yield
    notification_manager.notification_ready.disconnect(listen)
    assert not seen


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first story builds its database, which the others search."""
    return tmp_path_factory.mktemp("databases") / "first.fish"


@pytest.fixture
def built(slides: Path, database: Path) -> Path:
    """That database, built here where the first story was left out."""
    if not database.exists():
        build(slides, database, slides / "labels.csv", device="cpu").close()
    return database


def kept(database: Path) -> int:
    with SnapshotStore(database) as store:
        return int(store.slides.alive.sum())


def test_a_folder_becomes_a_database_although_the_build_is_cancelled_half_way_and_is_searched_at_once(
    user: User, slides: Path, database: Path, monkeypatch: pytest.MonkeyPatch, no_traceback: None
) -> None:
    user.opens("Database")
    user.types("database.slides", slides)
    user.types("database.labels", slides / "labels.csv")
    user.types("database.place", database)
    user.waits(lambda: "Ready" in user.sees("database.state").text())
    user.clicks("database.build")
    table = user.sees("database.slides_done")
    user.waits(lambda: any("added" in str(row) for row in rows(table)))
    user.clicks("database.cancel")
    user.waits(lambda: not user.widgets["Database"].busy)
    assert 1 <= kept(database) < len(SLIDES), "it was not stopped half-way"
    user.waits(lambda: user.sees("database.build").text() == "Resume")
    user.clicks("database.build")
    user.waits(lambda: user.session.database is not None and not user.widgets["Database"].busy)
    assert kept(database) == len(SLIDES)
    bad = [row for row in rows(table) if "quarantined" in row]
    assert len(bad) == 1 and "broken.svs" in str(bad[0])
    assert str(len(SLIDES)) in user.sees("database.opened").text()

    layer = sample(user, monkeypatch)
    user.opens("Search", "Results")
    user.clicks("search.draw_box")
    user.clicks_on_slide(layer, 0.5, 0.5)
    assert user.answered().results.hits[0].diagnosis == "lymphoma"
    assert user.sees("results.gallery").model().rowCount() == len(SLIDES)


def rows(table: Any) -> list[list[str]]:
    model = table.model()
    return [
        [str(model.index(row, column).data()) for column in range(model.columnCount())]
        for row in range(model.rowCount())
    ]


def sample(user: User, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Open a slide from the menu of samples."""
    monkeypatch.setattr(samples, "SIZE_UM", SIZE_UM)
    return user.viewer.open_sample("napari-fish", "lymphoma")[0]


def browsed(user: User, monkeypatch: pytest.MonkeyPatch, database: Path) -> None:
    """Open a database with the button of the Search widget."""
    user.waits(lambda: not user.session.busy)  # the one used last is opened by itself
    user.session.close()
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_, **__: str(database))
    user.clicks("search.browse")
    user.waits(lambda: user.session.database is not None and not user.session.busy)
    assert str(len(SLIDES)) in user.sees("search.about").text()


def compared(user: User, answer: Any, objective: int) -> None:
    """Compare, magnify, and leave the viewer as it was."""
    before = [(one.name, one.visible) for one in user.viewer.layers]
    user.compares()
    assert len(user.comparison.layers) == 1 + len(answer.results.hits)
    user.clicks(f"results.x{objective}")
    assert magnification(user.viewer, user.comparison.layers[0]) == pytest.approx(objective)
    user.clicks("results.clear")
    assert [(one.name, one.visible) for one in user.viewer.layers] == before


def refined(user: User, answer: Any) -> Any:
    """Give the worst hit a thumb down, and return the answer to that."""
    gallery, worst = user.sees("results.gallery"), answer.results.hits[-1]
    gallery.setCurrentIndex(gallery.model().index_of(worst.slide))
    user.qtbot.keyClick(gallery, Qt.Key.Key_Minus)
    user.waits(lambda: user.session.feedback.judgements)
    user.clicks("results.refine")
    user.waits(lambda: user.session.current is not answer and not user.session.busy)
    assert worst.slide not in [hit.slide for hit in user.session.current.results.hits]
    return user.session.current


def followed(user: User, answer: Any) -> None:
    """Jump to the best hit: its regions are marked, and those of the query."""
    gallery, best = user.sees("results.gallery"), answer.results.hits[0]
    gallery.setCurrentIndex(gallery.model().index_of(best.slide))
    user.clicks("results.jump")
    user.waits(lambda: sum(MATCHES_KEY in one.metadata for one in user.viewer.layers) == 2)
    # napari adds a number to a name that is taken.
    assert user.viewer.layers.selection.active.name.split(" [")[0] == Path(best.name).stem


def exported(user: User, folder: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, *formats: str) -> None:
    """Export in several formats through the menu."""
    widget = user.widgets["Results"]
    for name in formats:
        target = folder / f"answer.{name}"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, file=target, **__: (str(file), ""))
        action = widget.findChild(QAction, f"results.export.{name}")
        assert action is not None, name
        action.trigger()
        user.waits(lambda file=target: file.exists() and not widget.exporter.busy)
        assert target.stat().st_size > 100
    assert answer.results.hits[0].slide in (folder / "answer.csv").read_text()
    json.loads((folder / "answer.geojson").read_text())


def test_a_box_is_drawn_searched_compared_judged_refined_followed_and_exported(
    user: User, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_traceback: None
) -> None:
    layer = sample(user, monkeypatch)
    user.opens("Search", "Results")
    browsed(user, monkeypatch, built)
    user.clicks("search.draw_box")
    user.clicks_on_slide(layer, 0.5, 0.5)
    answer = user.answered()
    assert answer.box is not None and answer.layer == layer.name
    assert user.sees("results.gallery").model().rowCount() == len(answer.results.hits) == len(SLIDES)
    assert answer.results.hits[0].diagnosis == "lymphoma"
    compared(user, answer, 20)
    better = refined(user, answer)
    followed(user, better)
    exported(user, tmp_path, monkeypatch, better, "csv", "geojson", "html", "png")


def pixels_of(path: Path) -> Any:
    with open_slide(path) as slide:
        return slide.read_level(0, 0, 0, *slide.dimensions)


def opened_by_wsi(user: User, slides: Path, tmp_path: Path) -> Any:
    """Write a slide as a scanner does and open it with napari-wsi: one RGBA layer in px."""
    about = "Aperio Image Library v10\r\n1600x1400 (256x256)|AppMag = 20|MPP = 0.5"
    path = write_tiff(
        tmp_path / "one.svs", pixels_of(slides / "one.tif"), 1, description=about, compression="jpeg"
    )
    return user.viewer.open(path, plugin="napari-wsi")[0]


def opened_by_ome_zarr(user: User, slides: Path, tmp_path: Path) -> Any:
    """Write a slide as OME-Zarr and open it with napari-ome-zarr: three layers, one a colour."""
    path = write_omezarr(tmp_path / "one.zarr", pixels_of(slides / "one.tif"))
    return user.viewer.open(path, plugin="napari-ome-zarr")[0]


@pytest.mark.parametrize("open_it", [opened_by_wsi, opened_by_ome_zarr])
def test_a_slide_opened_by_another_plugin_is_searched_compared_judged_refined_followed_and_exported(
    user: User,
    slides: Path,
    built: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_it: Callable[..., Any],
    no_traceback: None,
) -> None:
    layer = open_it(user, slides, tmp_path)
    user.opens("Search", "Results")
    browsed(user, monkeypatch, built)
    user.clicks("search.draw_box")
    user.clicks_on_slide(layer, 0.5, 0.5)
    answer = user.answered()
    assert answer.results.hits[0].diagnosis == "lymphoma"
    compared(user, answer, 10)
    better = refined(user, answer)
    followed(user, better)
    exported(user, tmp_path, monkeypatch, better, "csv", "geojson")
