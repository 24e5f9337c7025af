"""The formats of slides, once: which endings files have, and what an ending says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SlideFormat:
    """A format that is read.

    Attributes
    ----------
    name
        As people call it.
    endings
        Of its files.
    means
        What a file with such an ending is: surely a ``slide``, so that a damaged one gets our message; ``maybe`` one, as
        other images have the ending, too: OpenSlide knows; a ``tiff``, which is looked into; or a ``picture``, which other
        readers of the viewer should have.
    folder
        The ending of its folders; empty where a slide is no folder, or a folder of any name.
    """

    name: str
    endings: tuple[str, ...]
    means: Literal["slide", "maybe", "tiff", "picture"] = "slide"
    folder: str = ""


FORMATS = (
    SlideFormat("svs", (".svs",)),
    SlideFormat("ndpi", (".ndpi",)),
    SlideFormat("mrxs", (".mrxs",)),
    SlideFormat("scn", (".scn",)),
    SlideFormat("vms", (".vms", ".vmu")),
    SlideFormat("bif", (".bif",)),
    SlideFormat("svslide", (".svslide",)),
    SlideFormat("czi", (".czi",), "maybe"),
    SlideFormat("DICOM", (".dcm",), "maybe"),
    SlideFormat("TIFF", (".tif", ".tiff", ".btf", ".ptif", ".ptiff", ".qptiff"), "tiff"),
    SlideFormat("OME-TIFF", (".ome.tif", ".ome.tiff"), "tiff"),
    SlideFormat("OME-Zarr", (".zarr.zip",), folder=".zarr"),
    SlideFormat("PNG", (".png",), "picture"),
    SlideFormat("JPEG", (".jpg", ".jpeg"), "picture"),
)
HAMAMATSU = (".vms", ".vmu")
NOT_READ = frozenset((
    ".vsi", ".isyntax", ".i2syntax", ".lif", ".lof", ".bmp", ".gif", ".webp", ".jp2", ".j2k", ".jpx",
    ".jxl", ".jxr", ".heic", ".psd", ".nd2", ".oir", ".oib", ".oif", ".lsm", ".zvi", ".ims", ".stk",
    ".afi", ".dzi", ".kfb", ".sdpc", ".mds", ".mdsx", ".tmap", ".dsx", ".eslide", ".tron", ".svslidex",
    ".rts", ".szi", ".omnyx",
))  # fmt: skip
"""Endings of slides and images that are not read: a build says how many it passed over."""


def endings(*means: str) -> tuple[str, ...]:
    """Return the endings that mean one of these things; of all formats where none is named."""
    return tuple(ending for one in FORMATS if not means or one.means in means for ending in one.endings)


SUFFIXES = frozenset(ending for ending in endings() if ending.count(".") == 1)
"""Endings of files worth trying that are one word; ``.zarr`` folders and ``.zarr.zip`` files come on top."""


def known_formats() -> str:
    """Name all formats, for a message."""
    *most, last = (one.name for one in FORMATS)
    return f"{', '.join(most)} and {last}"
