"""What is remembered: slides, their mosaics, labels and calibration."""

from napari_fish.store.memory import MemoryStore
from napari_fish.store.protocol import Store
from napari_fish.store.records import (
    Box,
    Calibration,
    EncodedSlide,
    MosaicRecord,
    Quarantined,
    SlideRecord,
)
from napari_fish.store.slide_table import SlideTable
from napari_fish.store.snapshot.store import DiskStore

__all__ = [
    "Box",
    "Calibration",
    "DiskStore",
    "EncodedSlide",
    "MemoryStore",
    "MosaicRecord",
    "Quarantined",
    "SlideRecord",
    "SlideTable",
    "Store",
]
