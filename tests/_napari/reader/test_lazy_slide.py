"""Slides behind layers: opened when looked at, closed when the layer goes, harmless when damaged."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from napari_fish import open_slide
from napari_fish._napari.reader.arrays import LevelArray, pyramid
from napari_fish._napari.reader.lazy_slide import LazySlide, hatched
from napari_fish.slides.base import PyramidSlide
from tests.slides.conftest import write_tiff

RGB = NDArray[np.uint8]


def lazy(path: Path) -> tuple[PyramidSlide, list[LevelArray]]:
    slide = open_slide(path)
    return slide, pyramid(LazySlide(slide))


def test_a_closed_slide_opens_itself_again_when_it_is_read(slide_path: Path, scene: RGB) -> None:
    slide, levels = lazy(slide_path)
    levels[0].slide.close()
    assert slide.closed and levels[0].slide.closed
    np.testing.assert_array_equal(levels[0][5:50, 5:50], scene[5:50, 5:50])
    assert not levels[0].slide.closed


def test_what_the_user_said_about_the_pixel_size_survives_reopening(slide_path: Path) -> None:
    shared = LazySlide(open_slide(slide_path, mpp=0.31))
    shared.close()
    with shared.borrowed() as slide:
        assert slide.mpp == 0.31


def test_a_copied_level_shares_the_open_file(slide_path: Path) -> None:
    _, levels = lazy(slide_path)
    assert deepcopy(levels)[0].slide is levels[0].slide


def test_the_file_is_closed_when_nothing_refers_to_it_any_more(slide_path: Path) -> None:
    slide, levels = lazy(slide_path)
    del levels
    gc.collect()
    assert slide.closed


def test_closing_waits_for_a_thread_that_is_reading(slide_path: Path) -> None:
    slide, levels = lazy(slide_path)
    shared = levels[0].slide
    with shared.borrowed() as borrowed:
        shared.close()
        assert not borrowed.closed
        assert borrowed.read_level(0, 0, 0, 4, 4).shape == (4, 4, 3)
    assert slide.closed


def test_many_threads_read_right_pixels_while_the_slide_is_closed_again_and_again(
    slide_path: Path, scene: RGB
) -> None:
    _, levels = lazy(slide_path)
    done = threading.Event()

    def keep_closing() -> int:
        count = 0
        while not done.is_set():
            levels[0].slide.close()
            count += 1
            done.wait(0.001)
        return count

    def read(number: int) -> bool:
        y, x = 37 * number % 500, 61 * number % 700
        return np.array_equal(levels[0][y : y + 150, x : x + 150], scene[y : y + 150, x : x + 150])

    with ThreadPoolExecutor(5) as pool:
        closer = pool.submit(keep_closing)
        right = list(pool.map(read, range(150)))
        done.set()
        assert all(right) and closer.result() > 1


@pytest.fixture(params=["jpeg2000", "jpeg"])
def damaged(request: pytest.FixtureRequest, tmp_path: Path, scene: RGB) -> Path:
    """A slide whose tile at rows 256 to 384, columns 384 to 512 is rubbish."""
    path = write_tiff(tmp_path / "damaged.tif", scene, levels=1, compression=request.param)
    with tifffile.TiffFile(path) as tiff:
        page = tiff.pages.first
        index = 2 * -(-page.imagewidth // page.tilewidth) + 3
        offset, count = page.dataoffsets[index], page.databytecounts[index]
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(bytes(count))
    return path


def test_a_damaged_tile_is_hatched_and_the_rest_is_shown(damaged: Path, scene: RGB, told: list[str]) -> None:
    _, levels = lazy(damaged)
    shown = levels[0][:, :].astype(int)
    bad = np.zeros(scene.shape[:2], bool)
    bad[256:384, 384:512] = True
    away = np.ones_like(bad)
    away[max(0, 256 - 256) : 384 + 256, 384 - 256 : 512 + 256] = False
    assert np.abs(shown - scene)[away].mean() < 8
    assert np.array_equal(shown[bad], hatched(0, 0, 900, 700)[bad])
    assert (np.abs(shown - scene).max(2) > 60).mean() < 0.35
    assert sum("damaged.tif" in t for t in told) == 1


def test_damage_is_reported_once_however_often_it_is_looked_at(damaged: Path, told: list[str]) -> None:
    _, levels = lazy(damaged)
    for _ in range(5):
        levels[0][250:400, 380:520]
    assert sum("damaged.tif" in t for t in told) == 1


def test_a_slide_that_vanishes_is_hatched_and_comes_back(tmp_path: Path, scene: RGB, told: list[str]) -> None:
    path = write_tiff(tmp_path / "scan.tif", scene)
    _, levels = lazy(path)
    levels[0].slide.close()
    away = path.rename(tmp_path / "elsewhere.tif")
    np.testing.assert_array_equal(levels[0][0:80, 0:90], hatched(0, 0, 90, 80))
    assert len(told) == 1 and "no such file" in told[0]
    away.rename(path)
    np.testing.assert_array_equal(levels[0][0:80, 0:90], scene[:80, :90])


def test_another_slide_under_the_same_name_is_not_shown_for_the_first(
    tmp_path: Path, scene: RGB, told: list[str]
) -> None:
    path = write_tiff(tmp_path / "scan.tif", scene)
    _, levels = lazy(path)
    levels[0].slide.close()
    write_tiff(path, scene[:400])
    np.testing.assert_array_equal(levels[0][0:80, 0:90], hatched(0, 0, 90, 80))
    assert "has changed" in told[0]
