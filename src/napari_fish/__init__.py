"""Image search for histology, inside napari."""

from __future__ import annotations

from typing import TYPE_CHECKING

from napari_fish.kernels import keep_kernels_somewhere

# Before anything imports numba.
keep_kernels_somewhere()

from napari_fish.later import loaded_from
from napari_fish.slides import open_slide

if TYPE_CHECKING:
    from napari_fish.database import Database, build, open_database

__all__ = ["Database", "__version__", "build", "open_database", "open_slide"]

__version__ = "0.1.0.dev0"

# What needs the search's machinery.
__getattr__ = loaded_from(__name__, "database")
