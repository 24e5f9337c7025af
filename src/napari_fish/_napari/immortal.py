"""Keeps the viewer alive with a PySide6 that loses references.

PySide6 6.12 takes None, True and False for immortal, as they are from Python 3.12 on. In 3.11 they are not: every
call into Qt that returns nothing, and every signal that is emitted, loses a reference to one of them. After some
140 000 of those, minutes of use, Python ends the process: ``Fatal Python error: none_dealloc``.
"""

from __future__ import annotations

import ctypes
import sys
from importlib.metadata import PackageNotFoundError, version

FIRST_IMMORTAL = (3, 12)
LOSING = (6, 12)
"""First PySide6 that loses references."""
REFERENCES = 2**40
"""More than can be lost: a thousand a second for thirty years."""


def keep_singletons_alive() -> bool:
    """Give None, True and False more references than can be lost; return whether that was needed."""
    if sys.version_info >= FIRST_IMMORTAL or sys.implementation.name != "cpython" or not _loses_references():
        return False
    for singleton in (None, True, False):
        count = ctypes.c_ssize_t.from_address(id(singleton))
        if count.value < REFERENCES:
            count.value += REFERENCES
    return True


def _loses_references() -> bool:
    try:
        major, minor = version("PySide6_Essentials").split(".")[:2]
    except (PackageNotFoundError, ValueError):
        return False
    return (int(major), int(minor)) >= LOSING
