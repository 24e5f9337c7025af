"""How the documentation is built: ``make docs``."""

from napari_fish import __version__

project = "napari-fish"
author = "napari-fish developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "napari-fish"
autodoc_typehints = "none"
napoleon_google_docstring = False
