"""The table of formats is what the manifest, the pages and the finders go by."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from napari_fish._napari.reader.recognise import is_slide
from napari_fish.slides.finding import find_slides
from napari_fish.slides.formats import FORMATS, NOT_READ, endings

ROOT = Path(__file__).parents[2]
MANIFEST = yaml.safe_load((ROOT / "src" / "napari_fish" / "napari.yaml").read_text(encoding="utf-8"))


def test_napari_offers_us_every_format_but_plain_pictures() -> None:
    (reader,) = MANIFEST["contributions"]["readers"]
    ours = [*endings("slide", "maybe", "tiff"), *(one.folder for one in FORMATS if one.folder)]
    assert sorted(reader["filename_patterns"]) == sorted(f"*{ending}" for ending in ours)


def test_the_front_page_names_every_format() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What opens")[2].partition("##")[0]
    assert [one.name for one in FORMATS if one.name not in table] == []


def test_no_format_is_read_and_not_read() -> None:
    assert NOT_READ.isdisjoint(endings())


# Of DICOM files the headers say which belong together.
@pytest.mark.parametrize("ending", [ending for ending in endings() if ending != ".dcm"])
def test_a_build_finds_files_of_every_ending(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"a{ending.upper()}").write_bytes(b"something")
    assert [path.name for path in find_slides(tmp_path)] == [f"a{ending.upper()}"]


@pytest.mark.parametrize("ending", endings("slide"))
def test_a_damaged_file_that_can_only_be_a_slide_is_ours_to_report(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"rubbish")
    assert is_slide(path)
    assert not is_slide(tmp_path / "https:" / "there" / "a.zarr"), "other readers open what is not on disk"
