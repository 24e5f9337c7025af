"""The Database widget inspects and looks after a database: counts, removes, verifies, shows what was left out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari.layers import Image
from qtpy.QtCore import Qt

from napari_fish._napari.database import care_jobs
from napari_fish._napari.database.inspect_panel import NAME_PX
from napari_fish._napari.database.widget import DatabaseWidget
from napari_fish._napari.layers.mosaic_layers import DROPPED, PATCHES
from napari_fish._napari.session.session import session_of
from napari_fish.building.build import build
from napari_fish.building.params import BuildParams
from napari_fish.database import care
from napari_fish.errors import Cancelled
from napari_fish.mosaic.geojson import REASON_COLOURS
from napari_fish.mosaic.left_out import told
from napari_fish.store.records import Choice
from napari_fish.store.snapshot.store import SnapshotStore
from tests._napari.database.driving import (
    LONG,
    SLIDES,
    control,
    digest,
    finished,
    inspected,
    rows,
    seen,
    select,
    state,
)
from tests._napari.tiny_slides import write_slide


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
