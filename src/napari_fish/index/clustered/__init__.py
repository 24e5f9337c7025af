"""Search in the clusters nearest to a barcode."""
