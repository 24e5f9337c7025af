"""What is remembered: slides, their mosaics, labels and calibration."""

from napari_fish.database.memory import MemoryStore
from napari_fish.database.protocol import Store
from napari_fish.database.records import (
    Box,
    Calibration,
    EncodedSlide,
    MosaicRecord,
    Quarantined,
    SlideRecord,
)
from napari_fish.database.slidetable import SlideTable
from napari_fish.database.store import DiskStore

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
