"""The plugin: the only room that knows napari and Qt."""
