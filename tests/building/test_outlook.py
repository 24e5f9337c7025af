"""What a build is said to take is near what it takes, without doing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from napari_fish.building.outlook import ENOUGH_SLIDES, expected_patches, outlook
from napari_fish.building.params import BuildParams
from napari_fish.encode import rate
from napari_fish.errors import Cancelled, SlideError
from napari_fish.mosaic import make_mosaic, preset
from napari_fish.slides import open_slide
from tests._napari.tiny_slides import write_slide


def test_mosaics_are_foreseen_from_the_tissue_of_a_few_slides(tmp_path: Path) -> None:
    for number in range(ENOUGH_SLIDES + 4):
        write_slide(tmp_path / f"{number}.tif", seed=number)
    with open_slide(tmp_path / "0.tif") as slide:
        each = len(make_mosaic(slide, preset()).patches)
    looked: list[int] = []
    seen = outlook(tmp_path, tmp_path / "a.fish", progress=lambda done, total: looked.append(done))
    assert (len(seen.found), seen.done, seen.to_do) == (12, 0, 12)
    assert seen.patches == pytest.approx(12 * each, rel=0.2)
    assert looked[-1] <= ENOUGH_SLIDES
    assert seen.size > seen.patches * 128
    assert seen.free > 0
    assert not (tmp_path / "a.fish").exists()


def test_slides_that_cannot_be_read_are_no_reason_not_to_look(tmp_path: Path) -> None:
    write_slide(tmp_path / "good.tif")
    (tmp_path / "bad.svs").write_bytes(b"no slide")
    seen = outlook(tmp_path, tmp_path / "a.fish")
    assert seen.unreadable == 1
    assert seen.patches > 0
    assert outlook(tmp_path, tmp_path / "a.fish", BuildParams(patches=True)).patches == 2


def test_looking_can_be_stopped_and_says_what_is_wrong(tmp_path: Path) -> None:
    write_slide(tmp_path / "good.tif")
    with pytest.raises(Cancelled):
        outlook(tmp_path, tmp_path / "a.fish", should_stop=lambda: True)
    with pytest.raises(SlideError, match="no such file or folder"):
        outlook(tmp_path / "nowhere", tmp_path / "a.fish")


def test_small_slides_are_kept_whole_and_large_ones_by_their_share() -> None:
    params = preset()
    assert expected_patches(12, params) == 12
    assert expected_patches(4000, params) == pytest.approx(0.05 * 4000, rel=0.05)


def test_a_rate_is_remembered_for_its_encoder_and_device_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAPARI_FISH_CACHE", str(tmp_path))
    assert rate.known_rate("abc", "cpu") is None
    rate.remember_rate("abc", "cpu", 2.5)
    rate.remember_rate("def", "cpu", 7.0)
    assert rate.known_rate("abc", "cpu") == 2.5
    (tmp_path / "rates.json").write_text("damaged")
    assert rate.known_rate("abc", "cpu") is None
