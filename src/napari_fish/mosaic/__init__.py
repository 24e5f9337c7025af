"""Which patches stand for a slide: tissue, grid, artefacts, selection."""

from napari_fish.mosaic.mosaic import make_mosaic
from napari_fish.mosaic.params import PRESETS, MosaicParams, TissueParams, preset
from napari_fish.mosaic.tissue.contours import Contour
from napari_fish.mosaic.tissue.find import Tissue, segment
from napari_fish.mosaic.values import REASONS, Mosaic, Patch

__all__ = [
    "PRESETS",
    "REASONS",
    "Contour",
    "Mosaic",
    "MosaicParams",
    "Patch",
    "Tissue",
    "TissueParams",
    "make_mosaic",
    "preset",
    "segment",
]
