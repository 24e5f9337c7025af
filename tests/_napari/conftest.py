"""Viewers, with and without a window, and what they tell the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.utils.notifications import notification_manager
from numpy.typing import NDArray

from tests.slides.conftest import make_scene, write_tiff

RGB = NDArray[np.uint8]


@pytest.fixture(scope="session", autouse=True)
def plugins(installed_plugins: None) -> None:
    """All readers that are installed."""


@pytest.fixture(scope="session")
def scene() -> RGB:
    """The image on every slide written here."""
    return make_scene()


@pytest.fixture(scope="session")
def slide_path(tmp_path_factory: pytest.TempPathFactory, scene: RGB) -> Path:
    """A pyramidal TIFF of 0.5 µm/px."""
    return write_tiff(tmp_path_factory.mktemp("slides") / "scan.tif", scene)


@pytest.fixture
def model() -> Iterator[ViewerModel]:
    """A viewer without a window."""
    viewer = ViewerModel()
    yield viewer
    viewer.layers.clear()


@pytest.fixture
def make_viewer(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Make a viewer with a window, seen as a plugin sees it."""
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        pytest.skip("NO DISPLAY: run under xvfb-run to test with a real viewer")
    return request.getfixturevalue("make_napari_viewer_proxy")


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What the user is told from now on."""
    messages: list[str] = []

    def listen(notification: Any) -> None:
        messages.append(f"{str(notification.severity).lower()}: {notification.message}")

    notification_manager.notification_ready.connect(listen)
    yield messages
    notification_manager.notification_ready.disconnect(listen)
