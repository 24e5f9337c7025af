"""The nearest of all barcodes."""
