"""Lets ``python -m napari_fish`` do what ``napari-fish`` does."""

from napari_fish.cli import main

main()
