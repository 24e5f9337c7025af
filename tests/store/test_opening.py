"""The door: a database is found, opened and made by its location alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from napari_fish.errors import DatabaseError
from napari_fish.store import is_database, open_store
from napari_fish.store.facts import Facts
from napari_fish.store.opening import (
    create_database,
    open_catalogue,
    pictures_of,
    pictures_to_write,
    sizes_of,
)
from tests.store.conformance import SLIDES

FACTS = Facts(
    "fish-lite", "abc", 4, preset="paper", mosaic={"patch": 256}, version="1", paper_barcodes=True, bundle="../x"
)  # fmt: skip


@pytest.mark.parametrize("kind", [str, Path])
def test_a_location_is_text_or_a_path(tmp_path: Path, kind: type) -> None:
    place = kind(tmp_path / "x.fish")
    assert not is_database(place)
    create_database(place, FACTS)
    assert is_database(place)
    with open_store(place, writer=True) as store:
        store.catalogue.commit(SLIDES[0])
        assert store.refresh() and len(store.slides) == 1
    with open_store(place) as store:
        assert [record.slide for record in store.slides] == [SLIDES[0].record.slide]
        assert store.catalogue.fingerprint()[:2] == [store.catalogue.identity, store.catalogue.generation]
    assert sizes_of(place).catalogue > 0 and sizes_of(place).pictures == 0


def test_facts_come_back_as_they_were_and_can_be_changed(tmp_path: Path) -> None:
    create_database(tmp_path / "x.fish", FACTS)
    with open_store(tmp_path / "x.fish", writer=True) as store:
        known = store.catalogue.facts
        assert known.identity and known == Facts(**{**vars(FACTS), "identity": known.identity})
        store.catalogue.remember(patient=r"(P\d+)", mask_folders=["a", "b"], dismissed={"x.tif": [1, 2]})
    catalogue = open_catalogue(tmp_path / "x.fish")
    try:
        facts = catalogue.facts
    finally:
        catalogue.close()
    assert (facts.patient, facts.mask_folders, facts.dismissed) == (r"(P\d+)", ("a", "b"), {"x.tif": (1, 2)})
    assert facts.paper_barcodes and facts.preset == "paper" and facts.mosaic == {"patch": 256}


def test_what_is_not_of_its_kind_was_never_said() -> None:
    kept = {
        "patient": {"a": []},
        "mask_folders": "x",
        "dismissed": [1],
        "mosaic": 3,
        "preset": None,
        "patches": 1,
    }
    facts = Facts.recorded("e", "h", 4, {**kept, "of a later version": 1})
    assert facts == Facts("e", "h", 4, patches=True)


def test_a_folder_with_other_files_is_no_place_for_a_database(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(DatabaseError, match="holds other files"):
        create_database(tmp_path, FACTS)
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseError, match="is a file"):
        create_database(tmp_path / "file", FACTS)
    assert not is_database(tmp_path)


def test_pictures_are_found_by_location(tmp_path: Path) -> None:
    create_database(tmp_path / "x.fish", FACTS)
    assert pictures_of(tmp_path / "x.fish") is None
    book = pictures_to_write(tmp_path / "x.fish")
    book.save("a", b"whole", [(0, 0, 2, 2)], [b"part"])
    book.close()
    kept = pictures_of(str(tmp_path / "x.fish"))
    assert kept is not None and kept.overview("a") == b"whole"
    kept.close()
