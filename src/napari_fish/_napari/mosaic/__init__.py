"""The *Tissue & mosaic* dock widget."""
