"""A build can be held, and its news are told in order, to whoever asks when they have time."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from napari_fish._napari.database.build_job import Brake, BuildNews
from napari_fish._napari.database.build_survey import suggested_place
from napari_fish._napari.database.slide_picture import relative_boxes
from napari_fish.building.slide_task import Desk
from napari_fish.building.summary import SlideDone, Under
from napari_fish.texts import duration, in_bytes
from tests.mosaic.conftest import tissue_slide


def under(name: str) -> Under:
    return Under(name, Path(name), b"", (4, 4), np.zeros((3, 4), np.int32))


def test_a_held_build_waits_until_it_may_go_on() -> None:
    brake, answers = Brake(), []
    stop = Desk(paused=lambda: brake.paused).held
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
    assert Desk(paused=lambda: brake.paused, should_stop=lambda: True).held() is True


def test_news_name_the_slide_in_progress_and_its_patches() -> None:
    news = BuildNews()
    watch = news.watch(Brake())
    watch.started(under("a"))
    watch.encoded(Path("a"), 2)
    watch.started(under("b"))
    told = news.take()
    assert (told.under.slide, told.encoded, told.done) == ("a", 2, ())
    watch.encoded(Path("a"), 3)
    watch.encoded(Path("b"), 1)
    assert news.take().encoded == 3, "of the slide that was begun first"
    watch.finished(SlideDone("x", Path("x"), "quarantined"))
    watch.finished(SlideDone("a", Path("a"), "added", 3))
    told = news.take()
    assert (told.under.slide, told.encoded, told.patches) == ("b", 1, 4)
    assert [done.slide for done in told.done] == ["x", "a"]
    assert news.take().done == ()


def test_the_mosaic_is_drawn_where_it_lies_on_the_slide() -> None:
    slide = tissue_slide()
    width, height = slide.dimensions
    corners = np.array([(10, 20, 64, 32), (100, 7, 64, 32)], np.int32)
    boxes = relative_boxes(Under("a", Path("a"), b"", slide.dimensions, corners))
    assert boxes[:, 0] * width == pytest.approx([10, 100]) and boxes[:, 1] * height == pytest.approx([20, 7])
    assert boxes[:, 2] * width == pytest.approx(64) and boxes[:, 3] * height == pytest.approx(32)


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
