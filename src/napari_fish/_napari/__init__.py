"""The plugin: the only room that knows napari and Qt."""

from napari_fish._napari.qt_version import warn_of_lost_references

warn_of_lost_references()
