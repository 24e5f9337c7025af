"""What an encoder is on disk, and how its outputs become a key and a barcode."""
