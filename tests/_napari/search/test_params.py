"""The Search widget: parameters and filters, the answers to which they lead, and what is remembered of them."""

from __future__ import annotations

from typing import Any

from napari.components import ViewerModel

from napari_fish._napari import preferences
from napari_fish._napari.layers.query_layers import LAYER as REGIONS
from napari_fish._napari.search.widget import SearchWidget
from napari_fish.search import SearchParams
from tests._napari.search.driving import PATIENCE_MS, ask_box, control, rest, session, state


def test_other_parameters_answer_the_same_question_without_encoding_it_again(
    qtbot: Any, widget: SearchWidget
) -> None:
    ask_box(qtbot, widget)
    asked = session(widget).current.asked
    control(widget, "k").setValue(2)
    rest(qtbot, widget)
    assert len(session(widget).current.results) == 2
    control(widget, "mode").setCurrentText("exact")
    control(widget, "ranking").setCurrentText("label-free")
    rest(qtbot, widget)
    current = session(widget).current
    assert (current.params.mode, current.params.ranking, current.params.k) == ("exact", "label-free", 2)
    assert current.asked is asked
    assert len(session(widget).history) == 1


def test_parameters_changed_during_a_search_count_when_it_ends(qtbot: Any, widget: SearchWidget) -> None:
    widget.search_slide()
    control(widget, "k").setValue(1)
    rest(qtbot, widget)
    assert len(session(widget).current.results) == 1
    assert control(widget, "k").value() == 1


def test_filters_come_from_the_database_with_counts_and_can_be_removed(
    qtbot: Any, widget: SearchWidget
) -> None:
    columns, values = control(widget, "filter_column"), control(widget, "filter_value")
    qtbot.waitUntil(lambda: columns.count() > 0, timeout=PATIENCE_MS)
    assert columns.itemText(0) == "diagnosis (2)"
    assert [values.itemText(i) for i in range(values.count())] == ["lymphoma (2)", "sarcoma (2)"]
    ask_box(qtbot, widget)
    values.setCurrentIndex(1)
    control(widget, "filter_add").click()
    assert control(widget, "filter_left").text() == "2 of 4 slides can be found."
    rest(qtbot, widget)
    assert {hit.diagnosis for hit in session(widget).current.results.hits} == {"sarcoma"}
    control(widget, "filter_sign").setCurrentText("is not")
    control(widget, "filter_add").click()
    rest(qtbot, widget)
    assert len(session(widget).current.results) == 0
    assert "0 of 5 slides" in state(widget)
    control(widget, "filter.diagnosis!=sarcoma").click()
    rest(qtbot, widget)
    assert widget.params.params().where == ("diagnosis=sarcoma",)
    assert len(session(widget).current.results) == 2


def test_the_same_patient_is_left_out_unless_wanted(qtbot: Any, widget: SearchWidget) -> None:
    widget.search_slide()
    rest(qtbot, widget)
    assert "patient a" not in {hit.patient for hit in session(widget).current.results.hits}
    control(widget, "exclude_query").setChecked(False)
    rest(qtbot, widget)
    assert session(widget).current.results.hits[0].patient == "patient a"


def test_reset_goes_back_to_the_first_values(qtbot: Any, widget: SearchWidget) -> None:
    control(widget, "k").setValue(2)
    control(widget, "mode").setCurrentText("guided")
    control(widget, "exclude_query").setChecked(False)
    control(widget, "mpp").setValue(0.25)
    control(widget, "live").setChecked(False)
    widget.params.filters.set_where(("site=brain",))
    control(widget, "reset").click()
    assert widget.params.params() == SearchParams()
    assert widget.query.mpp is None and control(widget, "live").isChecked()
    rest(qtbot, widget)


def test_the_history_goes_back_to_an_answer_with_its_parameters(qtbot: Any, widget: SearchWidget) -> None:
    ask_box(qtbot, widget)
    first = session(widget).current
    widget.params.k.setValue(2)
    rest(qtbot, widget)
    first = session(widget).current
    widget.search_file(widget._viewer.layers["a"].source.path)
    widget.params.k.setValue(3)
    rest(qtbot, widget)
    model = widget.history.model
    assert model.rowCount() == 2
    lines = model.data(model.index(1)).splitlines()
    assert lines[0] == "a, a box" and lines[1].endswith("2 slides")
    assert not model.data(model.index(1), 1).isNull()
    assert len(widget._viewer.layers[REGIONS].data) == 0
    widget.history._clicked(model.index(1))
    assert session(widget).current is first
    assert control(widget, "k").value() == 2
    assert len(widget._viewer.layers[REGIONS].data) == 1
    assert not session(widget).busy


def test_how_to_search_is_remembered_but_never_filters_or_exclusion(
    qtbot: Any, widget: SearchWidget, shown: ViewerModel
) -> None:
    control(widget, "k").setValue(7)
    control(widget, "mode").setCurrentText("exact")
    control(widget, "exclude_query").setChecked(False)
    widget.params.filters.set_where(("site=brain",))
    rest(qtbot, widget)
    other = SearchWidget(ViewerModel())
    qtbot.addWidget(other)
    assert other.params.params() == SearchParams(k=7, mode="exact")
    qtbot.waitUntil(lambda: not session(other).busy, timeout=PATIENCE_MS)
    other.close()
    session(other).close()
    preferences.remember("search", {"k": "many", "mode": 3})
    third = SearchWidget(ViewerModel())
    qtbot.addWidget(third)
    assert third.params.params() == SearchParams()
    qtbot.waitUntil(lambda: not session(third).busy, timeout=PATIENCE_MS)
    third.close()
    session(third).close()
