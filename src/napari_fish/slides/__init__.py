"""Pixels in: one Slide protocol, one file a backend, and the synthetic demo slides."""

from napari_fish.slides.finding import find_slides
from napari_fish.slides.mpp import MppSource
from napari_fish.slides.opening import open_slide
from napari_fish.slides.protocol import SeriesInfo, Slide

__all__ = ["MppSource", "SeriesInfo", "Slide", "find_slides", "open_slide"]
