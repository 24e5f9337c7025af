"""Folder → database: one slide = one job = one transaction; and the care of databases."""

from napari_fish.building.build import build
from napari_fish.building.care import import_labels, relocate, remove_slides
from napari_fish.building.params import BuildParams
from napari_fish.building.summary import Fate, SlideDone, Summary, Under, Watch
from napari_fish.building.survey import Survey, survey

__all__ = [
    "BuildParams",
    "Fate",
    "SlideDone",
    "Summary",
    "Survey",
    "Under",
    "Watch",
    "build",
    "import_labels",
    "relocate",
    "remove_slides",
    "survey",
]
