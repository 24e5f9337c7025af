"""How the documentation is built: ``make docs``."""

import sys
from pathlib import Path
from typing import Any

from napari_fish import __version__

sys.path.insert(0, str(Path(__file__).parent))

import generated

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
napoleon_use_param = False
napoleon_use_rtype = False
nitpicky = True
nitpick_ignore_regex = [
    # Types in docstrings are prose, "uint8, shape (height, width, 3)": a word without a dot is no reference.
    ("py:(class|exc)", r"[^.]+"),
    # Python's own names; their documentation is not at hand while this is built.
    ("py:class", r"(collections\.abc|pathlib)\..+"),
]


def setup(app: Any) -> None:
    """Let pages take from the program what it knows itself."""
    app.connect("source-read", generated.fill)
    app.connect("env-get-outdated", generated.generated_pages)
