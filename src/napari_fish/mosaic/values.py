"""What a mosaic is, as plain values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_fish.mosaic.params import MosaicParams
from napari_fish.mosaic.tissue.contours import Contour

REASONS: dict[str, str] = {
    "white": "glass",
    "ink": "ink",
    "fold": "folded",
    "debris": "debris",
    "artefact": "artefact",
    "blur": "blurred",
}
"""Why a patch may be left out, and what people call it."""


@dataclass(frozen=True)
class Patch:
    """A square of the slide.

    Attributes
    ----------
    x, y : int
        Top left corner in level-0 px.
    cluster : int
        Colour cluster, 0 for the largest; -1 for a dropped patch.
    white : float
        Share of white pixels, 0 to 1.
    artefact : float
        Probability, 0 to 1, that it shows ink, a fold, debris or blur; 0 when that was not asked.
    focus : float
        Sharpness: log2 of the contrast at 2 µm over that at 4 to 8 µm.
    reason : str
        Why it was dropped (one of `REASONS`), or empty.
    """

    x: int
    y: int
    cluster: int = -1
    white: float = 0.0
    artefact: float = 0.0
    focus: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Mosaic:
    """The few patches that stand for a slide, and how they were found.

    Attributes
    ----------
    slide : Path
        The slide.
    dimensions : tuple of int
        Width and height of the slide in level-0 px.
    mpp : float
        µm per level-0 px.
    patch_size : int
        Side of every patch in level-0 px.
    patches : tuple of Patch
        The mosaic.
    candidates : tuple of Patch
        All patches on tissue that were good enough, with their colour clusters.
    dropped : tuple of Patch
        Patches on tissue that were not, with the reason.
    contours : tuple of Contour
        Outlines of the tissue.
    params : MosaicParams
        The parameters used, those of a retry included.
    retried : bool
        Whether tissue was found only with gentler parameters than those asked for.
    rescued : bool
        Whether every patch had been dropped, so that the best of them was taken back.
    masked : bool
        Whether the user gave the tissue.
    """

    slide: Path
    dimensions: tuple[int, int]
    mpp: float
    patch_size: int
    patches: tuple[Patch, ...]
    candidates: tuple[Patch, ...]
    dropped: tuple[Patch, ...]
    contours: tuple[Contour, ...]
    params: MosaicParams
    retried: bool = False
    rescued: bool = False
    masked: bool = False

    @property
    def dropped_counts(self) -> dict[str, int]:
        """How many patches were left out, by reason; reasons that did not occur are not there."""
        counts = Counter(patch.reason for patch in self.dropped)
        return {reason: counts[reason] for reason in REASONS if counts[reason]}

    @property
    def tissue_mm2(self) -> float:
        """Area of the tissue in mm²."""
        return sum(contour.area_um2 for contour in self.contours) / 1e6

    def summary(self) -> dict[str, Any]:
        """Return counts and parameters as plain values, for JSON."""
        return {
            "slide": str(self.slide),
            "mpp": self.mpp,
            "patch_size": self.patch_size,
            "tissue_pieces": len(self.contours),
            "tissue_mm2": round(self.tissue_mm2, 4),
            "patches": [[p.x, p.y, p.cluster] for p in self.patches],
            "candidates": len(self.candidates),
            "dropped": self.dropped_counts,
            "retried": self.retried,
            "rescued": self.rescued,
            "masked": self.masked,
            "params": self.params.to_dict(),
        }

    def to_geojson(self, everything: bool = False) -> dict[str, Any]:
        """Return tissue and mosaic as a GeoJSON FeatureCollection for QuPath, in level-0 px.

        Parameters
        ----------
        everything : bool
            Also write the patches that are not in the mosaic and those that were dropped.
        """
        from napari_fish.mosaic.geojson import feature_collection

        return feature_collection(self, everything)
