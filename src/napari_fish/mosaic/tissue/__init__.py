"""Where there is tissue, and where there is none after all."""

from napari_fish.mosaic.tissue.find import Tissue, regions, segment

__all__ = ["Tissue", "regions", "segment"]
