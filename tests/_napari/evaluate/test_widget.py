"""The Evaluate widget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from napari.components import ViewerModel
from qtpy.QtWidgets import QWidget

from napari_fish._napari.evaluate.form import ALL_MODES
from napari_fish._napari.evaluate.widget import EvaluateWidget
from napari_fish._napari.session.session import session_of
from napari_fish.database import open_database
from napari_fish.evaluate import EvaluateParams
from tests.evaluate.conftest import N, make_database


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_database(tmp_path_factory.mktemp("widget") / "a.fish")


@pytest.fixture
def widget(qtbot: Any, model: ViewerModel, database: Path) -> Iterator[EvaluateWidget]:
    made = EvaluateWidget(model)
    qtbot.addWidget(made)
    session = session_of(model)
    session._opened(open_database(database))
    yield made
    made.close()
    session.close()


def control(widget: QWidget, name: str) -> Any:
    found = widget.findChild(QWidget, f"evaluate.{name}")
    assert found is not None, name
    return found


def test_without_a_database_it_says_what_to_do(qtbot: Any, model: ViewerModel) -> None:
    made = EvaluateWidget(model)
    qtbot.addWidget(made)
    assert "Open a database" in control(made, "state").text()
    assert not control(made, "run").isEnabled()
    assert not control(made, "save").isEnabled()


def test_a_run_fills_the_table_and_the_figures_and_can_be_saved(
    qtbot: Any, widget: EvaluateWidget, database: Path, tmp_path: Path
) -> None:
    control(widget, "run").click()
    assert control(widget, "cancel").isEnabled()
    qtbot.waitUntil(lambda: widget.evaluation is not None, timeout=60_000)
    table = control(widget, "modes")
    assert [table.item(i, 0).text() for i in range(table.rowCount())][:2] == ["auto", "exact"]
    assert "95 % interval" in control(widget, "state").text()
    qtbot.waitUntil(lambda: control(widget, "run").isEnabled(), timeout=60_000)
    assert control(widget, "progress").text() == ""  # not that 0 % are done
    assert control(widget, "labels_figure").renderer().isValid()
    assert control(widget, "confusion_figure").renderer().isValid()
    assert control(widget, "hamming_figure").renderer().isValid()
    assert control(widget, "modes_figure").renderer().isValid()
    released = control(widget, "definitions")
    way = widget.evaluation.ways[1]
    assert released.item(1, 4).text() == (
        f"{way.macro['map_released'].value:.2f}\nall {way.scores['map_released'].value:.2f}"
    )
    assert "bytes a patch" in control(widget, "storage").text()
    shown = control(widget, "examples").findChildren(QWidget, "evaluate.example")
    assert len(shown) == len(widget.evaluation.examples) > 0
    widget.save(tmp_path / "report.html")
    qtbot.waitUntil(lambda: "Written" in control(widget, "state").text(), timeout=60_000)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page and f"napari-fish evaluate {database}" in page
    widget.save(tmp_path / "nowhere" / "report.html")
    qtbot.waitUntil(lambda: "Cannot write" in control(widget, "state").text(), timeout=60_000)


def test_what_is_shown_is_what_is_asked_for(widget: EvaluateWidget) -> None:
    assert control(widget, "mode").currentText() == ALL_MODES
    assert control(widget, "target").currentText() == "diagnosis"
    control(widget, "target").setCurrentText("stain")
    control(widget, "within").setCurrentText("site")
    control(widget, "mode").setCurrentText("guided")
    control(widget, "k").setValue(3)
    control(widget, "ranking").setCurrentText("label-free")
    control(widget, "level").setCurrentText("slide")
    control(widget, "sample").setValue(9)
    control(widget, "speed").setChecked(True)
    params = widget.params()
    assert (params.target, params.within, params.mode, params.k) == ("stain", "site", "guided", 3)
    assert (params.ranking, params.level, params.sample, params.speed) == ("label-free", "slide", 9, True)
    control(widget, "reset").click()
    assert widget.params() == EvaluateParams()


def test_an_evaluation_can_be_cancelled_and_run_again(qtbot: Any, widget: EvaluateWidget) -> None:
    control(widget, "run").click()
    control(widget, "cancel").click()
    qtbot.waitUntil(lambda: control(widget, "run").isEnabled(), timeout=60_000)
    assert control(widget, "state").text() == "Stopped."
    control(widget, "mode").setCurrentText("exact")
    control(widget, "run").click()
    qtbot.waitUntil(lambda: widget.evaluation is not None, timeout=60_000)
    assert widget.evaluation is not None and widget.evaluation.n_queries == N


def test_a_whole_evaluation_has_ablation_speed_and_matrices_of_each_site(
    qtbot: Any, widget: EvaluateWidget
) -> None:
    control(widget, "mode").setCurrentText("exact")
    control(widget, "within").setCurrentText("site")
    for name in ("ablation", "speed"):
        control(widget, name).setChecked(True)
    control(widget, "run").click()
    qtbot.waitUntil(lambda: widget.evaluation is not None, timeout=120_000)
    assert control(widget, "ablation_figure").renderer().isValid()
    assert control(widget, "patch_speed").renderer().isValid()
    assert control(widget, "speed_table").rowCount() == len(widget.evaluation.speed) > 0
    sites = control(widget, "matrices_of")
    assert [sites.itemText(i) for i in range(sites.count())] == ["site kidney", "site pelvis"]
    assert widget.evaluation.about["command"].endswith("--mode exact --ablation --speed --within site")


def test_another_cohort_is_named_while_it_is_asked_for(
    qtbot: Any, widget: EvaluateWidget, tmp_path: Path
) -> None:
    widget.set_cohort(make_database(tmp_path / "other.fish", n=4))
    control(widget, "run").click()
    assert control(widget, "state").text() == "Asking a.fish for the slides of other.fish …"
    qtbot.waitUntil(lambda: widget.evaluation is not None, timeout=60_000)
    assert f"--queries {tmp_path / 'other.fish'}" in widget.evaluation.about["command"]


def test_an_error_is_told_in_words(qtbot: Any, widget: EvaluateWidget, tmp_path: Path) -> None:
    widget.set_cohort(make_database(tmp_path / "other.fish", n=4, weights="xyz"))
    assert control(widget, "cohort").text() == "other.fish"
    control(widget, "run").click()
    qtbot.waitUntil(lambda: control(widget, "run").isEnabled(), timeout=60_000)
    assert "same encoder" in control(widget, "state").text()


def test_every_control_has_a_name_and_a_tooltip(widget: EvaluateWidget) -> None:
    names = [
        "database",
        "open",
        "cohort",
        "target",
        "within",
        "mode",
        "k",
        "ablation",
        "level",
        "ranking",
        "sample",
        "speed",
        "run",
        "cancel",
        "save",
        "reset",
        "progress",
        "state",
        "modes",
        "way",
        "definitions",
        "examples",
        "storage",
        "speed_table",
    ]
    for name in names:
        assert control(widget, name).toolTip(), name


def test_a_folder_that_is_no_database_is_said_to_be_none(
    qtbot: Any, model: ViewerModel, tmp_path: Path
) -> None:
    made = EvaluateWidget(model)
    qtbot.addWidget(made)
    made.open(tmp_path)
    qtbot.waitUntil(lambda: "no database here" in control(made, "state").text(), timeout=60_000)
    assert not control(made, "run").isEnabled()


def test_figures_follow_the_theme(qtbot: Any, widget: EvaluateWidget, model: ViewerModel) -> None:
    control(widget, "mode").setCurrentText("exact")
    control(widget, "run").click()
    qtbot.waitUntil(lambda: widget.evaluation is not None, timeout=60_000)
    figure = control(widget, "labels_figure")
    dark = figure.grab().toImage().pixelColor(3, 3).lightness()
    model.theme = "light"
    assert figure.grab().toImage().pixelColor(3, 3).lightness() > dark + 100
