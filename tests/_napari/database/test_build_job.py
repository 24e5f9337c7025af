"""A build can be held, and its news are told in order, to whoever asks when they have time."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from napari_fish._napari.database.build_job import Brake, BuildNews
from napari_fish._napari.database.build_survey import suggested_place
from napari_fish._napari.database.slide_picture import relative_boxes
from napari_fish.building.summary import SlideDone, Under
from napari_fish.mosaic import make_mosaic, preset
from napari_fish.texts import duration, in_bytes
from tests.mosaic.conftest import tissue_slide


def under(name: str) -> Under:
    return Under(name, Path(name), np.zeros((4, 4, 3), np.uint8), None)


def test_a_held_build_waits_until_it_may_go_on() -> None:
    brake, answers = Brake(), []
    stop = brake.held(lambda: False)
    brake.pause()
    asking = threading.Thread(target=lambda: answers.append(stop()))
    asking.start()
    asking.join(0.3)
    assert asking.is_alive()
    held = brake.seconds
    assert brake.seconds == held
    brake.go_on()
    asking.join(20)
    assert answers == [False]


def test_a_held_build_can_be_stopped() -> None:
    brake = Brake()
    brake.pause()
    assert brake.held(lambda: True)() is True


def test_news_name_the_slide_in_progress_and_its_patches() -> None:
    news = BuildNews()
    watch = news.watch()
    watch.started(under("a"))
    watch.patches(2, 5)
    watch.started(under("b"))
    told = news.take()
    assert (told.under.slide, told.encoded, told.done) == ("a", 2, ())
    watch.patches(3, 6)
    watch.finished(SlideDone("x", Path("x"), "quarantined"))
    watch.finished(SlideDone("a", Path("a"), "added", 3))
    watch.patches(4, 6)
    told = news.take()
    assert (told.under.slide, told.encoded, told.patches) == ("b", 1, 4)
    assert [done.slide for done in told.done] == ["x", "a"]
    assert news.take().done == ()


def test_the_mosaic_is_drawn_where_it_lies_on_the_slide() -> None:
    slide = tissue_slide()
    mosaic = make_mosaic(slide, preset())
    boxes = relative_boxes(Under("a", Path("a"), slide.thumbnail(64), mosaic))
    width, height = slide.dimensions
    assert boxes[:, 0] * width == pytest.approx([patch.x for patch in mosaic.patches])
    assert boxes[:, 3] * height == pytest.approx(mosaic.patch_size)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (89, "89 s"), (600, "10 min"), (7200, "2 h 00 min"), (3e5, "3.5 days")],
)
def test_times_are_told_as_people_tell_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"), [(12, "12 bytes"), (4200, "4.2 kB"), (5.2e7, "52 MB"), (3e12, "3.0 TB")]
)
def test_sizes_are_told_as_people_tell_them(size: float, text: str) -> None:
    assert in_bytes(size) == text


def test_a_database_is_suggested_beside_its_slides(tmp_path: Path) -> None:
    (tmp_path / "my.slides").mkdir()
    assert suggested_place(str(tmp_path / "my.slides")) == str(tmp_path / "my.slides.fish")
    assert suggested_place("") == ""
