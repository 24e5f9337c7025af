"""Preferences come from napari's own; what widgets remember lies beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from napari.settings import get_plugin_settings
from qtpy.QtWidgets import QMenu

from napari_fish._napari import preferences
from napari_fish._napari.results.card import SIZES
from napari_fish._napari.results.controls import ResultsControls
from napari_fish._napari.results.gallery_order import SORTS


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    preferences.set_preference("databases", "default_database", "")
    preferences.set_preference("computing", "device", "auto")
    preferences.remember("database", "")
    preferences.set_preference("results", "thumbnail_size", 128)


def test_every_preference_of_the_manifest_has_the_default_that_is_used_without_it() -> None:
    settings = get_plugin_settings(preferences.PLUGIN)
    found = {
        name: getattr(getattr(settings, group), name)
        for group in type(settings).model_fields
        if hasattr(type(getattr(settings, group)), "model_fields")
        for name in type(getattr(settings, group)).model_fields
    }
    assert found == preferences._DEFAULTS


def test_a_changed_preference_is_what_widgets_read() -> None:
    preferences.set_preference("computing", "device", "cpu")
    assert preferences.preferred_device() == "cpu"
    with pytest.raises(ValueError, match="abacus"):
        preferences.set_preference("computing", "device", "abacus")
    assert preferences.thumbnail_size() == 128
    assert preferences.batch_size() == 0


def test_another_order_of_cards_does_not_outdo_the_preferred_size(qtbot: Any) -> None:
    def made() -> ResultsControls:
        controls = ResultsControls(QMenu())
        qtbot.addWidget(controls)
        return controls

    first = made()
    size, sort = first.arrangement[0], SORTS[1]
    first._sort.setCurrentText(sort)
    preferences.set_preference("results", "thumbnail_size", max(SIZES.values()))
    preferred = made().arrangement
    assert preferred[0] != size and preferred[1] == sort
    first._size.setCurrentText(next(name for name in SIZES if name not in (size, preferred[0])))
    assert made().arrangement[0] == first.arrangement[0]
    first.reset()


def test_the_preferred_database_counts_more_than_the_one_used_last() -> None:
    preferences.remember("database", "/last.fish")
    assert preferences.default_database() == "/last.fish"
    preferences.set_preference("databases", "default_database", "/preferred.fish")
    assert preferences.default_database() == "/preferred.fish"


def test_recent_values_come_last_first_each_once_and_not_too_many() -> None:
    for number in [*range(preferences.MOST_RECENT + 3), 4]:
        preferences.remember_recent("tries", str(number))
    found = preferences.recent("tries")
    assert found[:2] == ["4", str(preferences.MOST_RECENT + 2)]
    assert len(found) == len(set(found)) == preferences.MOST_RECENT


def test_a_damaged_memory_is_an_empty_one() -> None:
    preferences.remember("thing", 1)
    path = preferences._file()
    assert path is not None
    path.write_text("{ this is no JSON")
    assert preferences.remembered("thing", "nothing") == "nothing"
    preferences.remember("thing", 2)
    assert preferences.remembered("thing") == 2
