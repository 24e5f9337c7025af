"""What a package offers is loaded when it is asked for, so that what is light in it stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def loaded_from(package: str, *modules: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package: what it has in ``__all__`` is in the first of these modules that has it."""

    def load(name: str) -> Any:
        if name in sys.modules[package].__all__:
            for module in modules:
                found = import_module(f"{package}.{module}")
                if hasattr(found, name):
                    return getattr(found, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
