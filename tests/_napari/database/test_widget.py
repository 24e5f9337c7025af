"""The Database widget: build, stop, resume, retry, inspect, look after."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Image
from qtpy.QtCore import QMimeData, QPointF, Qt, QUrl
from qtpy.QtGui import QDropEvent
from qtpy.QtWidgets import QFileDialog, QWidget

from napari_fish._napari import preferences
from napari_fish._napari.database import care_jobs
from napari_fish._napari.database.build_panel import EMPTY, LOOKING
from napari_fish._napari.database.inspect_panel import NAME_PX
from napari_fish._napari.database.widget import DatabaseWidget
from napari_fish._napari.layers.mosaic_layers import DROPPED, PATCHES
from napari_fish._napari.session.session import Answer, session_of
from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.database import care
from napari_fish.encode.bundle.bundle import describe_bundle
from napari_fish.errors import Cancelled
from napari_fish.mosaic.geojson import REASON_COLOURS
from napari_fish.mosaic.left_out import told
from napari_fish.search import SearchParams
from napari_fish.store.records import Choice
from napari_fish.store.snapshot.store import SnapshotStore
from tests._napari.tiny_slides import write_archive, write_encoder, write_slide
from tests.mosaic.conftest import glass
from tests.slides.conftest import write_tiff
from tests.tiny import ink_on

SLIDES = 4
LONG = 240_000


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
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


def control(widget: QWidget, name: str) -> Any:
    found = widget.findChild(QWidget, f"database.{name}")
    assert found is not None, name
    return found


def state(widget: DatabaseWidget) -> str:
    return str(control(widget, "state").text())


def choose(widget: DatabaseWidget, folder: Path, labels: bool = True) -> None:
    """Choose slides, labels and the tiny encoder as a user would."""
    form = widget.build.form
    form.encoder.setCurrentIndex(form.encoder.findData("tiny"))
    form.slides.put(folder)
    if labels:
        form.labels.put(folder / "labels.csv")


def seen(qtbot: Any, widget: DatabaseWidget) -> None:
    qtbot.waitUntil(lambda: widget.build.prospect is not None and not widget.build._survey.busy, timeout=LONG)


def finished(qtbot: Any, widget: DatabaseWidget) -> None:
    """Wait until nothing is going on any more, here or in what the widgets share."""
    shared = widget._session
    jobs = (widget.build._build, widget.build._survey, widget.inspect._care, shared, shared._reading)
    qtbot.waitUntil(lambda: not any(job.busy for job in jobs), timeout=LONG)
    qtbot.waitUntil(lambda: not widget.inspect._look.busy, timeout=LONG)


def digest(database: Path) -> str:
    with SnapshotStore(database) as store:
        return store.digest()


def rows(widget: DatabaseWidget) -> dict[str, str]:
    """What the list says became of each slide."""
    return {row[0]: row[1] for row in widget.build.progress.table.shown.rows}


def inspected(qtbot: Any, widget: DatabaseWidget, database: Path) -> None:
    control(widget, "open").setText(str(database))
    control(widget, "open").editingFinished.emit()
    qtbot.waitUntil(lambda: widget.inspect.inspection is not None, timeout=LONG)
    finished(qtbot, widget)


def test_a_folder_becomes_the_database_that_the_core_makes_of_it_and_is_open(
    qtbot: Any, widget: DatabaseWidget, built: Path, tmp_path: Path
) -> None:
    slides = Path(shutil.copytree(built / "slides", tmp_path / "my slides"))
    choose(widget, slides)
    assert control(widget, "place").text() == str(tmp_path / "my slides.fish")
    seen(qtbot, widget)
    text = control(widget, "outlook").text()
    assert f"{SLIDES} slides found, 0 already done, {SLIDES} to do" in text
    assert "on CPU" in text
    assert "measured here" in text
    assert f"{SLIDES} of {SLIDES} slides labelled, 2 patients" in control(widget, "column_text").text()
    control(widget, "build").click()
    assert widget.build.building
    finished(qtbot, widget)
    assert "Done in" in state(widget)
    assert digest(tmp_path / "my slides.fish") == digest(built / "a.fish")
    assert rows(widget) == {f"s{n}.tif": "added" for n in range(SLIDES)}
    database = widget._session.database
    assert database is not None
    assert database.path == tmp_path / "my slides.fish"
    assert f"my slides.fish, {SLIDES} slides" in control(widget, "opened").text()
    assert f"{SLIDES} already done, 0 to do" in control(widget, "outlook").text()
    assert preferences.default_database() == str(database.path)


def test_a_database_goes_on_with_an_encoder_that_has_no_name_but_lies_where_it_did(
    qtbot: Any, widget: DatabaseWidget, built: Path, tmp_path: Path
) -> None:
    slides = Path(shutil.copytree(built / "slides", tmp_path / "slides"))
    write_encoder(tmp_path)
    bundle = (tmp_path / "encoders" / "tiny").rename(tmp_path / "bundle")
    describe_bundle(bundle, id="nameless")
    late = slides / "s0.tif"
    late.rename(tmp_path / "s0.tif")
    build(slides, tmp_path / "slides.fish", params=BuildParams(encoder=str(bundle)))
    (tmp_path / "s0.tif").rename(late)
    widget.build.form.slides.put(slides)
    seen(qtbot, widget)
    control(widget, "build").click()
    finished(qtbot, widget)
    assert "Done in" in state(widget)
    assert rows(widget)["s0.tif"] == "added"


def test_a_finished_build_does_not_take_the_place_of_the_database_that_is_searched(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    inspected(qtbot, widget, archive / "a.fish")
    answer = Answer(None, SearchParams(), None)  # type: ignore[arg-type]
    widget._session.remember(answer)
    choose(widget, archive / "slides")
    widget.build.form.database.put(archive / "b.fish")
    control(widget, "build").click()
    finished(qtbot, widget)
    assert widget._session.database.path == archive / "a.fish"
    assert widget._session.history == [answer]
    assert "b.fish is ready" in state(widget)
    ready = control(widget, "ready")
    assert ready.isVisibleTo(widget) and ready.text() == "Open b.fish"
    ready.click()
    finished(qtbot, widget)
    assert widget._session.database.path == archive / "b.fish"
    assert not ready.isVisibleTo(widget)


def test_a_build_that_was_stopped_and_resumed_is_like_an_undisturbed_one(
    qtbot: Any, widget: DatabaseWidget, built: Path, tmp_path: Path
) -> None:
    choose(widget, built / "slides")
    place = tmp_path / "stopped.fish"
    widget.build.form.database.put(place)
    control(widget, "build").click()
    qtbot.waitUntil(lambda: widget.build._news.patches >= 3, timeout=LONG)
    assert control(widget, "cancel").isVisibleTo(widget)
    control(widget, "cancel").click()
    assert "Stopping" in state(widget)
    finished(qtbot, widget)
    assert "Stopped." in state(widget)
    assert control(widget, "build").text() in ("Build", "Resume")
    with SnapshotStore(place) as store:
        assert len(store.slides) < SLIDES
    control(widget, "build").click()
    finished(qtbot, widget)
    assert digest(place) == digest(built / "a.fish")


def test_a_paused_build_waits_and_goes_on(
    qtbot: Any, widget: DatabaseWidget, built: Path, tmp_path: Path
) -> None:
    choose(widget, built / "slides")
    widget.build.form.database.put(tmp_path / "paused.fish")
    widget.build.start()
    control(widget, "pause").click()
    assert widget.build.paused
    assert "Paused" in state(widget)
    assert control(widget, "pause").text() == "Resume"
    qtbot.wait(300)
    assert widget.build.building
    assert widget.build._news.patches == 0
    control(widget, "pause").click()
    assert not widget.build.paused
    finished(qtbot, widget)
    assert digest(tmp_path / "paused.fish") == digest(built / "a.fish")


def test_exactly_the_broken_slides_are_listed_and_a_mended_one_can_be_tried_again(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    slides = archive / "slides"
    (slides / "broken.tif").write_bytes(b"II*\0 and then nothing that makes sense")
    write_tiff(slides / "empty.tif", glass(300, 300), resolution=(5e3, 5e3))
    choose(widget, slides, labels=False)
    widget.build.form.database.put(archive / "a.fish")
    control(widget, "build").click()
    finished(qtbot, widget)
    bad = {name for name, fate in rows(widget).items() if fate == "quarantined"}
    assert bad == {"broken.tif", "empty.tif"}
    reasons = {row[0]: row[2] for row in widget.build.progress.table.shown.rows}
    assert "no tissue" in reasons["empty.tif"]
    assert "2 slides could not be read" in state(widget)
    write_slide(slides / "broken.tif", seed=9)
    write_slide(slides / "another.tif", seed=10)
    assert control(widget, "retry").text() == "Retry 2"
    control(widget, "retry").click()
    finished(qtbot, widget)
    with SnapshotStore(archive / "a.fish") as store:
        known = {record.slide for record in store.slides}
    assert "broken.tif" in known
    assert "another.tif" not in known
    assert rows(widget)["broken.tif"] == "added"
    assert rows(widget)["empty.tif"] == "quarantined"
    assert control(widget, "retry").text() == "Retry 1"


def test_slides_are_looked_at_and_a_labels_file_among_them_is_found_by_itself_and_can_be_refused(
    qtbot: Any, widget: DatabaseWidget, archive: Path, tmp_path: Path
) -> None:
    form = widget.build.form
    said: list[str] = []
    widget.build._survey.progressed.connect(lambda *_: said.append(control(widget, "outlook").text()))
    choose(widget, archive / "slides", labels=False)
    assert control(widget, "labels").text() == str(archive / "slides" / "labels.csv")
    seen(qtbot, widget)
    assert said[-1] == "Looking at the slides … 4 of 4"
    assert "4 of 4 slides labelled" in control(widget, "column_text").text()
    form.slides.put(tmp_path)
    assert form.choices.labels == ""
    (tmp_path / "labels.tsv").touch()
    form.slides.put(archive / "slides")
    form.labels.put("")
    assert form.choices.labels == ""
    form.labels.put(tmp_path / "mine.csv")
    form.slides.put(tmp_path)
    assert form.choices.labels == str(tmp_path / "mine.csv"), "what the user chose counts more"


def test_it_says_that_it_looks_at_slides_and_not_that_there_are_none(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    assert state(widget) == EMPTY
    choose(widget, archive / "slides")
    widget.build.look()
    assert state(widget) == LOOKING
    seen(qtbot, widget)
    assert state(widget) != LOOKING
    widget.build.form.slides.put("")
    assert state(widget) == EMPTY


def test_columns_that_were_guessed_wrong_can_be_corrected(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    choose(widget, archive / "slides")
    widget.build.form.database.put(archive / "a.fish")
    seen(qtbot, widget)
    box = control(widget, "column_diagnosis")
    assert box.currentText() == "diagnosis"
    assert control(widget, "column_patient").currentText() == "case"
    box.setCurrentText("morphology")
    box.activated.emit(box.currentIndex())
    seen(qtbot, widget)
    assert box.currentText() == "morphology"
    control(widget, "build").click()
    finished(qtbot, widget)
    with SnapshotStore(archive / "a.fish") as store:
        assert sorted(record.diagnosis for record in store.slides) == ["M0", "M1", "M2", "M3"]
        assert {record.patient for record in store.slides} == {"P0", "P1"}


def test_a_labels_file_without_a_known_slide_column_asks_which_one_it_is(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    text = (archive / "slides" / "labels.csv").read_text()
    (archive / "slides" / "labels.csv").write_text(text.replace("slide,case", "glas,case"))
    choose(widget, archive / "slides")
    seen(qtbot, widget)
    assert "no column for the slides" in state(widget)
    box = control(widget, "column_slide")
    box.setCurrentText("glas")
    box.activated.emit(box.currentIndex())
    seen(qtbot, widget)
    assert "4 of 4 slides labelled" in control(widget, "column_text").text()


def test_what_cannot_be_built_is_said_in_words(qtbot: Any, widget: DatabaseWidget, tmp_path: Path) -> None:
    choose(widget, tmp_path / "nowhere", labels=False)
    qtbot.waitUntil(lambda: "no such file or folder" in state(widget), timeout=LONG)
    (tmp_path / "nowhere").mkdir()
    widget.build.look()
    qtbot.waitUntil(lambda: "no slides in this folder" in state(widget), timeout=LONG)
    write_slide(tmp_path / "nowhere" / "a.tif")
    (tmp_path / "nowhere.fish").write_text("a file is in the way")
    widget.build.start()
    finished(qtbot, widget)
    assert "is a file; a database is a folder" in state(widget)
    control(widget, "patient").setText("(")
    control(widget, "patient").editingFinished.emit()
    seen(qtbot, widget)
    assert "neither a column" in control(widget, "column_text").text()
    assert "--" not in control(widget, "column_text").text()


def test_a_dropped_folder_is_slides_a_dropped_table_labels_a_dropped_database_is_opened(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    def drop(path: Path) -> None:
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        widget.dropEvent(
            QDropEvent(
                QPointF(5, 5),
                Qt.DropAction.CopyAction,
                data,
                Qt.MouseButton.LeftButton,
                Qt.KeyboardModifier.NoModifier,
            )
        )

    form = widget.build.form
    form.encoder.setCurrentIndex(form.encoder.findData("tiny"))
    drop(archive / "slides")
    drop(archive / "slides" / "labels.csv")
    assert control(widget, "slides").text() == str(archive / "slides")
    assert control(widget, "labels").text() == str(archive / "slides" / "labels.csv")
    seen(qtbot, widget)
    drop(archive / "a.fish")
    qtbot.waitUntil(lambda: widget.inspect.inspection is not None, timeout=LONG)


def test_a_database_is_counted_filtered_and_loses_the_slides_that_are_removed(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    inspected(qtbot, widget, archive / "a.fish")
    text = control(widget, "summary").text()
    assert f"{SLIDES} slides, 2 patients" in text
    assert "Encoder tiny" in text
    assert "kB on disk" in text or "MB on disk" in text
    counts = [row[:2] for row in control(widget, "count_table").shown.rows]
    assert counts == [("carcinoma", 2), ("lymphoma", 2)]
    control(widget, "count_by").setCurrentText("morphology")
    assert len(control(widget, "count_table").shown.rows) == SLIDES
    table = control(widget, "slide_table")
    control(widget, "filter").setText("lympho")
    assert table.model().rowCount() == 2
    table.selectRow(0)
    control(widget, "remove").click()
    assert "Click again" in control(widget, "remove").text()
    assert len(SnapshotStore(archive / "a.fish").slides) == SLIDES
    control(widget, "remove").click()
    finished(qtbot, widget)
    assert "1 slide removed" in state(widget)
    assert {row[0] for row in table.shown.rows} == {"s0.tif", "s2.tif", "s3.tif"}
    assert widget._session.database is not None
    assert len(widget._session.database) == SLIDES - 1


def test_a_removal_that_was_asked_for_is_not_confirmed_for_other_slides_nor_made_during_a_build(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    inspected(qtbot, widget, archive / "a.fish")
    drop = control(widget, "remove")
    widget.inspect.slides.selectRow(0)
    drop.click()
    assert "Click again" in drop.text()
    widget.inspect.slides.selectRow(1)
    assert drop.text() == "Remove …"
    drop.click()
    assert len(widget.inspect.inspection.slides) == SLIDES
    widget.inspect.set_usable(False)
    widget.inspect.show_database(archive / "a.fish")
    finished(qtbot, widget)
    assert not drop.isEnabled()


def test_a_database_is_verified_compacted_relocated_copied_and_labelled(
    qtbot: Any, widget: DatabaseWidget, archive: Path, tmp_path: Path
) -> None:
    inspected(qtbot, widget, archive / "a.fish")
    for name, said in (("verify", "All is well"), ("compact", "Compacted")):
        control(widget, name).click()
        finished(qtbot, widget)
        assert said in state(widget)
    (archive / "slides").rename(tmp_path / "elsewhere")
    widget.inspect.show_database(archive / "a.fish")
    qtbot.waitUntil(lambda: "not where they were" in control(widget, "summary").text(), timeout=LONG)
    widget.inspect.relocate(str(tmp_path / "elsewhere"))
    finished(qtbot, widget)
    assert f"{SLIDES} slides found again" in state(widget)
    assert "not where they were" not in control(widget, "summary").text()
    control(widget, "import").setText(str(tmp_path / "elsewhere" / "labels.csv"))
    control(widget, "import").editingFinished.emit()
    qtbot.waitUntil(control(widget, "import_labels").isEnabled, timeout=LONG)
    box = control(widget, "import_site")
    box.setCurrentText("morphology")
    box.activated.emit(box.currentIndex())
    qtbot.waitUntil(lambda: not widget.inspect.labels._job.busy, timeout=LONG)
    control(widget, "import_labels").click()
    finished(qtbot, widget)
    assert {record.site for record in widget.inspect.inspection.slides} == {"M0", "M1", "M2", "M3"}
    widget.inspect.export(str(tmp_path / "copy"))
    finished(qtbot, widget)
    assert "names a person" in state(widget)
    with SnapshotStore(tmp_path / "copy.fish") as store:
        assert {record.patient for record in store.slides} == {"patient-000001", "patient-000002"}
        assert not any(record.path for record in store.slides)


def test_what_is_no_database_is_refused_in_words(qtbot: Any, widget: DatabaseWidget, tmp_path: Path) -> None:
    widget.open(tmp_path)
    qtbot.waitUntil(lambda: "no database here" in state(widget), timeout=LONG)
    assert control(widget, "opened").text() == "No database is open."


def test_slides_are_added_to_the_database_that_is_inspected(
    qtbot: Any, widget: DatabaseWidget, archive: Path, tmp_path: Path
) -> None:
    inspected(qtbot, widget, archive / "a.fish")
    control(widget, "add").click()
    assert widget.tabs.currentIndex() == 0
    write_slide(tmp_path / "new" / "n0.tif", seed=20)
    widget.build.form.slides.put(tmp_path / "new")
    assert control(widget, "place").text() == str(archive / "a.fish")
    seen(qtbot, widget)
    assert not control(widget, "encoder").isEnabled()
    assert widget.build.form.choices.params.encoder == "tiny"
    control(widget, "build").click()
    finished(qtbot, widget)
    assert len(widget.inspect.inspection.slides) == SLIDES + 1


def test_the_last_database_is_opened_by_return_or_by_choosing_it_again(
    qtbot: Any, make_widget: Callable[[], DatabaseWidget], archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preferences.remember("database", str(archive / "a.fish"))
    first, second = make_widget(), make_widget()
    assert "Return in the line above opens a.fish" in control(first, "summary").text()
    control(first, "open").editingFinished.emit()
    assert not first._session.busy, "to leave the line is no wish"
    qtbot.keyClick(control(first, "open"), Qt.Key.Key_Return)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(archive / "a.fish"))
    control(second, "open_choose").click()
    for widget in (first, second):
        finished(qtbot, widget)
        assert widget._session.database.path == archive / "a.fish"
    answer = Answer(None, SearchParams(), None)  # type: ignore[arg-type]
    first._session.remember(answer)
    qtbot.keyClick(control(first, "open"), Qt.Key.Key_Return)
    finished(qtbot, first)
    assert first._session.history == [answer], "what is open already is not opened again"


def test_what_cannot_be_stopped_is_not_said_to_have_been(
    qtbot: Any, widget: DatabaseWidget, archive: Path
) -> None:
    def slow(path: Path, *, progress: Any, should_stop: Any) -> str:
        time.sleep(0.3)
        return "All is done."

    inspected(qtbot, widget, archive / "a.fish")
    widget.inspect._run("Working …", slow)
    assert control(widget, "cancel").isVisibleTo(widget) and not control(widget, "cancel").isEnabled()
    widget.cancel()
    finished(qtbot, widget)
    assert state(widget) == "All is done."


def test_what_was_changed_until_it_was_stopped_is_shown(
    qtbot: Any, widget: DatabaseWidget, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(path: Path, *, progress: Any, should_stop: Any) -> str:
        care.remove_slides(path, ["s1.tif"])
        while not should_stop():
            time.sleep(0.01)
        raise Cancelled

    monkeypatch.setattr(care_jobs, "STOPPABLE", (half,))
    inspected(qtbot, widget, archive / "a.fish")
    widget.inspect._run("Working …", half)
    control(widget, "cancel").click()
    finished(qtbot, widget)
    assert state(widget) == "Stopped."
    assert f"{SLIDES - 1} slides" in control(widget, "opened").text()
    for seed in range(6):
        write_slide(archive / "new" / f"n{seed}.tif", seed=20 + seed)
    widget.build.form.extend(str(archive / "a.fish"))
    widget.build.form.slides.put(archive / "new")
    seen(qtbot, widget)
    widget.build.start()
    qtbot.waitUntil(lambda: widget.build._done >= 1, timeout=LONG)
    control(widget, "cancel").click()
    finished(qtbot, widget)
    with SnapshotStore(archive / "a.fish") as store:
        there = int(store.slides.alive.sum())
    assert SLIDES <= there <= SLIDES + 5
    assert f"a.fish, {there} slides" in control(widget, "opened").text()


def test_closing_the_widget_stops_a_build_that_can_be_resumed(
    qtbot: Any, make_widget: Callable[[], DatabaseWidget], built: Path, tmp_path: Path
) -> None:
    first, place = make_widget(), tmp_path / "closed.fish"
    choose(first, built / "slides")
    first.build.form.database.put(place)
    first.build.start()
    qtbot.waitUntil(lambda: first.build._news.patches >= 1, timeout=LONG)
    first.close()
    qtbot.waitUntil(lambda: not first.build.building, timeout=LONG)
    second = make_widget()
    choose(second, built / "slides")
    second.build.form.database.put(place)
    second.build.start()
    finished(qtbot, second)
    assert digest(place) == digest(built / "a.fish")


def test_how_to_build_is_remembered_and_what_counts_is_not_hidden(
    qtbot: Any, make_widget: Callable[[], DatabaseWidget], built: Path, tmp_path: Path
) -> None:
    first = make_widget()
    choose(first, built / "slides")
    first.build.form.database.put(tmp_path / "new.fish")
    control(first, "mpp").setValue(0.5)
    control(first, "preset").setCurrentText("paper")
    first.build.start()
    first.cancel()
    form = make_widget().build.form
    params = form.choices.params
    assert (params.encoder, params.preset, params.mpp) == ("tiny", "paper", None)
    assert form.preset.isVisibleTo(form)
    form.reset()
    assert form.choices.params.preset is None
    preferences.remember("build", ["no", "such"])
    assert make_widget().build.form.choices.params.preset is None


def test_reset_goes_back_to_what_the_user_prefers(qtbot: Any, widget: DatabaseWidget, built: Path) -> None:
    choose(widget, built / "slides")
    control(widget, "mpp").setValue(0.5)
    preferences.set_preference("computing", "device", "cpu")
    try:
        control(widget, "reset").click()
        assert widget.build.form.choices.params.device == "cpu"
    finally:
        preferences.set_preference("computing", "device", "auto")
    assert control(widget, "slides").text() == ""
    assert widget.build.form.choices.params.mpp is None
    assert "Choose a folder" in state(widget)


def test_names_of_slides_can_be_read_on_the_inspect_page(qtbot: Any, widget: DatabaseWidget) -> None:
    table = control(widget, "slide_table")
    table.shown.show([("tcga-du-6399.svs", "", 1, 0, "", "", "")])
    rows = [("x" * 300, "", 1, 0, "", "", ""), *table.shown.rows]
    for shown, longest in (
        (table.shown.rows, "tcga-du-6399.svs"),
        (rows, "a name of 34 letters, and 30 here"),
    ):
        table.shown.show(shown)
        table.fit_first(100, NAME_PX)
        assert table.columnWidth(0) > table.fontMetrics().horizontalAdvance(longest)
    assert table.columnWidth(0) == NAME_PX


def test_um_per_px_count_only_for_the_folder_they_were_stated_for(
    qtbot: Any, widget: DatabaseWidget, built: Path, tmp_path: Path
) -> None:
    form, first, second = widget.build.form, built / "slides", tmp_path / "others"
    second.mkdir()
    control(widget, "mpp").setValue(0.5)
    form.slides.put(first)
    assert form.choices.params.mpp == 0.5, "stated before the first folder was chosen"
    form.slides.put(second)
    assert form.choices.params.mpp is None
    form.slides.put("")
    assert form.choices.params.mpp is None
    form.slides.put(f"{first}/")
    assert form.choices.params.mpp == 0.5


@pytest.fixture
def inked(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database of which one slide lost a third of its patches to ink."""
    ink_on(monkeypatch, "s1", 2)
    strict = BuildParams(encoder="tiny", artefacts="strict")
    build(archive / "slides", archive / "a.fish", params=strict)
    return archive


def select(widget: DatabaseWidget, *slides: str) -> None:
    widget.inspect.slides.select(slides)


def test_the_inspect_page_says_what_was_left_out_of_each_slide_and_over_all(
    qtbot: Any, widget: DatabaseWidget, inked: Path
) -> None:
    with SnapshotStore(inked / "a.fish", writer=True) as store:
        known = {record.slide: record for record in store.slides if record.slide}
        store.catalogue.relabel([replace(known["s3.tif"], choice=Choice())])
    inspected(qtbot, widget, inked / "a.fish")
    table = control(widget, "slide_table")
    shown = {row[0]: (row[3], row[-1]) for row in table.shown.rows}
    choice = known["s1.tif"].choice
    assert shown["s1.tif"][0] == 2 and shown["s0.tif"][0] == 0 and shown["s3.tif"][0] is None
    assert told(choice.candidates, choice.left_out) in shown["s1.tif"][1] and "ink" in shown["s1.tif"][1]
    assert "not known" in shown["s3.tif"][1]
    table.sortByColumn(3, Qt.SortOrder.DescendingOrder)
    first, *_, last = (table.proxy.index(n, 3).data() for n in range(SLIDES))
    assert (first, last) == ("2", "?")
    kept = sum(known[f"s{n}.tif"].choice.candidates for n in range(3))
    text = control(widget, "summary").text()
    assert f"{kept} patches; 2 left out: 2 ink" in text
    assert "of one slide was left out: look at it (Show what was left out) or keep them (Keep them)." in text


def test_what_was_left_out_of_a_slide_is_shown_on_it_with_the_reasons(
    qtbot: Any, make_viewer: Callable[..., Any], inked: Path
) -> None:
    viewer = make_viewer()
    widget = DatabaseWidget(viewer)
    viewer.window.add_dock_widget(widget)
    inspected(qtbot, widget, inked / "a.fish")
    button = control(widget, "show_left_out")
    assert not button.isEnabled()
    select(widget, "s0.tif", "s1.tif")
    assert not button.isEnabled()
    select(widget, "s1.tif")
    button.click()
    assert state(widget) == "Opening s1.tif …" and widget.busy
    qtbot.waitUntil(lambda: not widget.left_out.busy, timeout=LONG)
    assert state(widget).startswith("s1.tif: ") and "2 left out: 2 ink. More than a fifth" in state(widget)
    left_out, patches = viewer.layers[DROPPED], viewer.layers[PATCHES]
    assert list(left_out.features["reason"]) == ["ink"] * 2 and list(left_out.text.values) == ["ink"] * 2
    assert np.allclose(left_out.border_color[0, :3], np.array(REASON_COLOURS["ink"]) / 255)
    assert len(patches.data) > 0 and left_out.visible
    assert [layer.name for layer in viewer.layers if isinstance(layer, Image)] == ["s1"]
    select(widget, "s0.tif")
    button.click()
    qtbot.waitUntil(lambda: not widget.left_out.busy, timeout=LONG)
    assert "none left out" in state(widget) and len(viewer.layers[DROPPED].data) == 0
    assert not viewer.layers["s1"].visible
    (inked / "slides" / "s2.tif").unlink()
    select(widget, "s2.tif")
    button.click()
    qtbot.waitUntil(lambda: not widget.left_out.busy, timeout=LONG)
    assert "s2.tif" in state(widget) and control(widget, "state").wrong
    session_of(viewer).close()
    finished(qtbot, widget)
    viewer.layers.clear()


def test_what_was_left_out_is_kept_and_left_out_again(
    qtbot: Any, widget: DatabaseWidget, inked: Path
) -> None:
    build(inked / "slides", inked / "a.fish", params=BuildParams(encoder="tiny", artefacts="normal"))
    before = digest(inked / "a.fish")
    inspected(qtbot, widget, inked / "a.fish")
    select(widget, "s1.tif")
    button = control(widget, "keep")
    assert button.text() == "Keep them"
    button.click()
    assert widget.build.building and "1 slide of a.fish again" in control(widget, "doing").text()
    finished(qtbot, widget)
    assert rows(widget) == {"s1.tif": "replaced"} and "none left out" in state(widget)
    assert digest(inked / "a.fish") != before
    qtbot.waitUntil(lambda: button.text() == "Leave them out again", timeout=LONG)
    button.click()
    finished(qtbot, widget)
    assert digest(inked / "a.fish") == before
    assert "2 left out: 2 ink" in state(widget) and "Show what was left out" in state(widget)
    (row,) = widget.build.progress.table.shown.rows
    assert "2 left out: 2 ink" in row[2] and "More than a fifth" in row[-1]
    asked: list[tuple[str, str]] = []
    widget.build.look_at.disconnect()
    widget.build.look_at.connect(lambda *what: asked.append(what))
    assert not control(widget, "build_left_out").isEnabled()
    widget.build.progress.table.selectRow(0)
    control(widget, "build_left_out").click()
    assert asked == [(str(inked / "a.fish"), "s1.tif")]


def test_how_strictly_artefacts_are_left_out_is_chosen_for_a_database_and_not_remembered(
    qtbot: Any, make_widget: Callable[[], DatabaseWidget], inked: Path
) -> None:
    widget = make_widget()
    choose(widget, inked / "slides")
    widget.build.form.database.put(inked / "a.fish")
    seen(qtbot, widget)
    assert "0 to do" in control(widget, "outlook").text()
    control(widget, "artefacts").setCurrentText("off")
    seen(qtbot, widget)
    assert "1 to do" in control(widget, "outlook").text()
    control(widget, "build").click()
    finished(qtbot, widget)
    assert rows(widget)["s1.tif"] == "replaced"
    with SnapshotStore(inked / "a.fish") as store:
        assert {record.choice.artefacts for record in store.slides if record.slide} == {"off"}
    assert make_widget().build.form.choices.params.artefacts is None


def test_every_control_of_the_database_widget_has_a_name_and_a_tooltip(widget: DatabaseWidget) -> None:
    named = [child for child in widget.findChildren(QWidget) if child.objectName().startswith("database.")]
    assert len(named) > 40
    assert not [child.objectName() for child in named if not child.toolTip()]
    names = [child.objectName() for child in named]
    assert len(names) == len(set(names))
