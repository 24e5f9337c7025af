"""The commands about mosaics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from napari_fish.mosaic import REASONS
from tests.cli.test_cli import run
from tests.mosaic.conftest import glass, tissue_slide
from tests.slides.conftest import write_tiff
from tests.tiny import ink_on


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("cli") / "mit Leerzeichen, ü.tif"
    return write_tiff(file, tissue_slide().levels[0], resolution=(5000, 5000))


def test_mosaic_writes_json_a_picture_and_geojson(slide: Path, tmp_path: Path, capsys) -> None:
    png, geojson = tmp_path / "out.png", tmp_path / "out ü.geojson"
    code, out, err = run(capsys, "mosaic", slide, "--png", png, "--geojson", geojson, "--json")
    found = json.loads(out)
    assert code == 0, err
    assert len(found["patches"]) >= 1
    assert set(found["dropped"]) <= set(REASONS)
    assert Image.open(png).size[0] > 1000
    assert json.loads(geojson.read_text(encoding="utf-8"))["type"] == "FeatureCollection"


def test_mosaic_tells_a_person_what_was_found(slide: Path, capsys) -> None:
    code, out, _ = run(capsys, "mosaic", slide)
    assert code == 0
    assert "mm² in 1 piece\n" in out


def test_a_blank_slide_is_one_line_and_exit_code_1(tmp_path: Path, capsys) -> None:
    path = write_tiff(tmp_path / "blank.tif", glass(1024, 1024), resolution=(5000, 5000))
    code, out, err = run(capsys, "mosaic", path, "--json")
    assert (code, out) == (1, "")
    assert "no tissue found; it looks blank" in err


def test_an_unknown_preset_is_wrong_usage(slide: Path, capsys) -> None:
    code, _, err = run(capsys, "mosaic", slide, "--preset", "best")
    assert code == 2
    assert "default, paper, released" in err


def test_a_picture_that_cannot_be_written_is_a_known_error(slide: Path, tmp_path: Path, capsys) -> None:
    code, _, err = run(capsys, "mosaic", slide, "--png", tmp_path / "no" / "such" / "folder.png")
    assert code == 1
    assert "Cannot write" in err


def test_mosaic_says_what_was_left_out_and_warns_above_a_fifth(
    slide: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = run(capsys, "mosaic", slide, "--artefacts", "off")
    assert code == 0 and "; none left out" in out and "a fifth" not in out
    ink_on(monkeypatch, slide.name, 6)
    code, out, _ = run(capsys, "mosaic", slide)
    assert code == 0 and "patches; 6 left out: 6 ink" in out
    assert "more than a fifth of its tissue was left out: look at it" in out and "--artefacts off" in out
    said = json.loads(run(capsys, "mosaic", slide, "--json")[1])
    assert said["dropped"] == {"ink": 6} and "a fifth" in said["notes"][0]
    said = json.loads(run(capsys, "mosaic", slide, "--artefacts", "off", "--json")[1])
    assert (said["dropped"], said["notes"], said["params"]["artefacts"]) == ({}, [], "off")
    code, _, err = run(capsys, "mosaic", slide, "--artefacts", "some")
    assert code == 2 and "strict, normal, off" in err


def test_only_the_annotations_of_a_class_are_tissue(slide: Path, tmp_path: Path, capsys) -> None:
    out_file = tmp_path / "out.geojson"
    assert run(capsys, "mosaic", slide, "--geojson", out_file)[0] == 0
    whole = json.loads(run(capsys, "mosaic", slide, "--mask", out_file, "--json")[1])
    own = json.loads(run(capsys, "mosaic", slide, "--mask", out_file, "--mask-class", "tissue", "--json")[1])
    assert whole == own and whole["masked"]
    code, _, err = run(capsys, "mosaic", slide, "--mask", out_file, "--mask-class", "Tumor,Stroma")
    assert code == 1 and "no annotation of class Stroma or Tumor; there are Tissue" in err
    code, _, err = run(capsys, "mosaic", slide, "--mask-class", "Tumor")
    assert code == 1 and "--mask" in err


def test_a_mask_of_the_whole_slide_is_noted(slide: Path, tmp_path: Path, capsys) -> None:
    Image.new("1", (128, 102), 1).save(tmp_path / "all.png")
    code, out, _ = run(capsys, "mosaic", slide, "--mask", tmp_path / "all.png")
    assert code == 0 and "marks the whole slide" in out
