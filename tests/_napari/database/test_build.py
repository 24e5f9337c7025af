"""The Database widget builds: from a folder to a database, stopped, paused, resumed, tried again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from napari_fish._napari import preferences
from napari_fish._napari.database.build_panel import EMPTY, LOOKING
from napari_fish._napari.database.widget import DatabaseWidget
from napari_fish._napari.session.session import Answer
from napari_fish.building import settings
from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.encode.bundle.bundle import describe_bundle
from napari_fish.search import SearchParams
from napari_fish.store.snapshot.store import SnapshotStore
from tests._napari.database.driving import (
    LONG,
    SLIDES,
    choose,
    control,
    digest,
    finished,
    inspected,
    rows,
    seen,
    state,
)
from tests._napari.tiny_slides import write_encoder, write_slide
from tests.building.planted import planted_real_encoder
from tests.mosaic.conftest import glass
from tests.slides.conftest import write_tiff


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


def test_a_slide_that_ends_the_program_that_reads_it_is_listed_and_the_viewer_lives_on(
    qtbot: Any, widget: DatabaseWidget, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "load_encoder", planted_real_encoder)
    write_slide(archive / "slides" / "a segfault.tif", seed=30)
    write_slide(archive / "slides" / "new.tif", seed=31)
    choose(widget, archive / "slides")
    widget.build.form.database.put(archive / "a.fish")
    widget.build.start()
    finished(qtbot, widget)
    fates = rows(widget)
    assert (fates["a segfault.tif"], fates["new.tif"]) == ("quarantined", "added")
    with SnapshotStore(archive / "a.fish") as store:
        (bad,) = store.catalogue.quarantined
    assert "ended twice (segmentation fault)" in bad.reason


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
