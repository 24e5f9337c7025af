"""The Database widget and labels files: found, understood, corrected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from napari_fish._napari.database.widget import DatabaseWidget
from napari_fish.store.snapshot.store import SnapshotStore
from tests._napari.database.driving import (
    choose,
    control,
    finished,
    seen,
    state,
)


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
