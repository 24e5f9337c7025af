"""Tissue marked by people: pictures of the slide, polygons, annotations."""

from napari_fish.mosaic.masks.given import MaskLike, marks_everything, mask_of, tissue_from_mask

__all__ = ["MaskLike", "marks_everything", "mask_of", "tissue_from_mask"]
