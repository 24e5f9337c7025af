"""Image search for histology, inside napari."""

from napari_fish.slides import open_slide

__all__ = ["__version__", "open_slide"]

__version__ = "0.1.0.dev0"
