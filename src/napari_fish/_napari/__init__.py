"""The plugin: the only room that knows napari and Qt."""

from napari_fish._napari.immortal import keep_singletons_alive

keep_singletons_alive()
