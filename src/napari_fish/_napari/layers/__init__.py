"""Between slides, mosaics, hits and napari's layers."""
