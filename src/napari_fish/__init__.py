"""Image search for histology, inside napari."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from napari_fish.kernels import keep_kernels_somewhere

# Before anything imports numba.
keep_kernels_somewhere()

from napari_fish.slides import open_slide

if TYPE_CHECKING:
    from napari_fish.database import Database, build, open_database

__all__ = ["Database", "__version__", "build", "open_database", "open_slide"]

__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    """Load what needs the search's machinery only when it is asked for."""
    if name in ("Database", "build", "open_database"):
        return getattr(import_module("napari_fish.database"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
