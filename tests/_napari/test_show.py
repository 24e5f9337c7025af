"""The command behind ``napari-fish demo``: a window, or its picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.slides.conftest import write_tiff

RGB = NDArray[np.uint8]


def show(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "napari_fish._napari.show", *map(str, arguments)]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def display() -> None:
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        pytest.skip("NO DISPLAY: run under xvfb-run to test with a real viewer")


def test_the_picture_shows_the_first_slide_and_a_broken_one_is_named(
    tmp_path: Path, scene: RGB, display: None
) -> None:
    first = write_tiff(tmp_path / "first.tif", scene)
    second = write_tiff(tmp_path / "second.tif", np.full_like(scene, (0, 0, 255)))
    (tmp_path / "broken.svs").write_text("no slide")
    picture = tmp_path / "new folder" / "viewer.png"
    done = show(first, second, tmp_path / "broken.svs", "--screenshot", picture, "--title", "Test")
    assert done.returncode == 0, done.stderr
    assert "broken.svs" in done.stdout + done.stderr and "Traceback" not in done.stderr
    pixels = np.asarray(Image.open(picture).convert("RGB")).astype(int)
    assert pixels.shape[0] > 600 and pixels.shape[1] > 1000
    canvas = pixels[100:-100, pixels.shape[1] // 2 : -100]
    assert np.abs(canvas.mean((0, 1)) - scene.mean((0, 1))).max() < 40
    assert (canvas == (0, 0, 255)).all(2).mean() < 0.01


def test_when_nothing_can_be_opened_it_says_so_and_fails(tmp_path: Path) -> None:
    picture = tmp_path / "viewer.png"
    done = show(tmp_path / "missing.svs", "--screenshot", picture, DISPLAY=os.environ.get("DISPLAY", ":0"))
    assert done.returncode == 1 and "missing.svs" in done.stderr
    assert not (tmp_path / "viewer.png").exists() and "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_without_a_display_it_says_what_to_do(slide_path: Path) -> None:
    done = show(slide_path, DISPLAY="", WAYLAND_DISPLAY="")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("use xvfb-run for a virtual one.")
