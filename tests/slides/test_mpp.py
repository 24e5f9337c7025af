"""The one rule for the size of a pixel."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile

from napari_fish.errors import SlideError
from napari_fish.slides import MppSource, open_slide
from napari_fish.slides.mpp import decide_mpp


def test_what_the_user_says_wins_over_everything() -> None:
    mpp = decide_mpp("a", user=77.0, file=(0.25, 0.25), objective=40, resolution=(1, 1))
    assert (mpp.value, mpp.source) == (77.0, MppSource.USER)


@pytest.mark.parametrize("nonsense", [0.0, -1.0, float("nan"), float("inf")])
def test_a_user_cannot_say_nonsense(nonsense: float) -> None:
    with pytest.raises(SlideError, match="positive"):
        decide_mpp("a", user=nonsense)


def test_the_file_comes_before_the_objective_and_that_before_resolution_tags() -> None:
    assert decide_mpp("a", file=(0.25, 0.25), objective=20).value == 0.25
    objective = decide_mpp("a", objective=20, resolution=(0.3, 0.3))
    assert (objective.value, objective.source) == (0.5, MppSource.OBJECTIVE)
    resolution = decide_mpp("a", resolution=(0.3, 0.3))
    assert (resolution.value, resolution.source) == (pytest.approx(0.3), MppSource.RESOLUTION)


@pytest.mark.parametrize("absurd", [0.00499, 896.0, 0.049, 10.1])
def test_an_absurd_value_is_reported_and_not_believed(absurd: float) -> None:
    mpp = decide_mpp("a", file=(absurd, absurd), objective=40)
    assert (mpp.value, mpp.source) == (0.25, MppSource.OBJECTIVE)
    assert f"{absurd:.4g}" in mpp.notes[0]
    assert "not believed" in mpp.notes[0]


def test_nothing_known_is_unknown() -> None:
    mpp = decide_mpp("a", file=(None, None), objective=0)
    assert (mpp.value, mpp.source, mpp.notes) == (None, MppSource.UNKNOWN, ())


def test_pixels_that_are_not_square_are_averaged_and_noted() -> None:
    mpp = decide_mpp("a", file=(0.2, 0.3))
    assert mpp.value == pytest.approx((0.2 * 0.3) ** 0.5)
    assert "differs between x and y" in mpp.notes[0]


def test_imagej_keeps_its_unit_in_its_own_place(tmp_path) -> None:
    path = tmp_path / "a.tif"
    grey = np.zeros((64, 64), np.uint8)
    tifffile.imwrite(path, grey, imagej=True, resolution=(4.0, 4.0), metadata={"unit": "um"})
    with open_slide(path) as slide:
        assert slide.mpp == pytest.approx(0.25)
