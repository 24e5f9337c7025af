"""Whether the PySide6 that is installed loses references.

PySide6 6.12 takes None, True and False for immortal, as they are from Python 3.12 on. In 3.11 they are not: every
call into Qt that returns nothing, and every signal that is emitted, loses a reference to one of them, until Python ends
the process: ``Fatal Python error: none_dealloc``. The extra ``all`` does not install such a pair; somebody else may have.
May go with Python 3.11.
"""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import PackageNotFoundError, version

FIRST_IMMORTAL = (3, 12)
LOSING = (6, 12)
"""First PySide6 that loses references; 6.9 to 6.11 were tried and do not."""


def loses_references(python: tuple[int, int], pyside: str) -> bool:
    """Whether this Python with this PySide6 ends after some minutes of use."""
    major, minor = (int(part) for part in pyside.split(".")[:2])
    return python < FIRST_IMMORTAL and (major, minor) >= LOSING


def warn_of_lost_references() -> None:
    """Warn, before the viewer ends by itself, of a pair that does not work."""
    try:
        pyside = version("PySide6_Essentials")
        is_losing = loses_references(sys.version_info[:2], pyside)
    except (PackageNotFoundError, ValueError):
        return
    if is_losing and sys.implementation.name == "cpython":
        warnings.warn(
            f"PySide6 {pyside} ends Python 3.11 after some minutes of use (it loses references). Install another: "
            "pip install 'PySide6<6.12', or use Python 3.12 or later.",
            RuntimeWarning,
            stacklevel=2,
        )
