"""Preferences come from napari's own; what widgets remember lies beside them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from napari.settings import get_plugin_settings

from napari_fish._napari import preferences


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    preferences.set_preference("databases", "default_database", "")
    preferences.set_preference("computing", "device", "auto")
    preferences.remember("database", "")


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
