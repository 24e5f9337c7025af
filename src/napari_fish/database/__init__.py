"""What is remembered: slides, their mosaics, labels and calibration."""

from napari_fish.database.memory import MemoryStore
from napari_fish.database.protocol import Store
from napari_fish.database.records import Box, Calibration, EncodedSlide, MosaicRecord, SlideRecord
from napari_fish.database.slidetable import SlideTable

__all__ = [
    "Box",
    "Calibration",
    "EncodedSlide",
    "MemoryStore",
    "MosaicRecord",
    "SlideRecord",
    "SlideTable",
    "Store",
]
