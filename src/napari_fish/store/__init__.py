"""What is remembered: slides, their patches, labels and calibration."""

from napari_fish.store.memory import MemoryStore
from napari_fish.store.opening import is_database, open_store
from napari_fish.store.protocol import Store
from napari_fish.store.records import (
    Box,
    Calibration,
    EncodedSlide,
    PatchRecord,
    Quarantined,
    SlideRecord,
)
from napari_fish.store.slide_table import SlideTable

__all__ = [
    "Box",
    "Calibration",
    "EncodedSlide",
    "MemoryStore",
    "PatchRecord",
    "Quarantined",
    "SlideRecord",
    "SlideTable",
    "Store",
    "is_database",
    "open_store",
]
