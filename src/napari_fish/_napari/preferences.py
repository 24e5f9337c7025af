"""What the user prefers, from napari's Preferences, and what our widgets remember between sessions."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from pathlib import Path
from typing import Any

from napari_fish.building.params import BuildParams
from napari_fish.texts import parsed_json

PLUGIN = "napari-fish"
FILE = "napari-fish-remembered.json"
MOST_RECENT = 8
"""Folders and databases that are remembered."""
log = logging.getLogger(__name__)
_DEFAULTS: dict[str, Any] = {
    "device": BuildParams.device,
    "batch_size": BuildParams.batch,
    "default_database": "",
    "kept_picture_px": BuildParams.thumbnail_px,
    "thumbnail_size": 128,
}


def preferred_device() -> str:
    """Return where to compute: auto, cuda, mps, xpu or cpu."""
    return str(_preference("computing", "device"))


def batch_size() -> int:
    """Return how many patches to compute at once; 0 for what suits the device."""
    return int(_preference("computing", "batch_size"))


def default_database() -> str:
    """Return the database to offer: the preferred one, else the one used last, else an empty text."""
    return str(_preference("databases", "default_database") or remembered("database", ""))


def kept_picture_px() -> int:
    """Return the side in px of the pictures that a build keeps of patches."""
    return int(_preference("databases", "kept_picture_px"))


def thumbnail_size() -> int:
    """Return the side in px of the pictures in the gallery."""
    return int(_preference("results", "thumbnail_size"))


def set_preference(group: str, name: str, value: Any) -> None:
    """Change a preference as if the user had done so in napari's Preferences."""
    settings = _settings()
    if settings is not None:
        setattr(getattr(settings, group), name, value)


def remembered(key: str, default: Any = None) -> Any:
    """Return what was remembered under a key, by this or an earlier session."""
    return _remembered().get(key, default)


def remember(key: str, value: Any) -> None:
    """Remember a plain value under a key; where that cannot be written, this session goes on without."""
    path = _file()
    known = _remembered()
    if path is None or known.get(key) == value:
        return
    with contextlib.suppress(OSError, TypeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        partial.write_text(json.dumps({**known, key: value}, indent=1), encoding="utf-8")
        os.replace(partial, path)


def remember_recent(key: str, value: str) -> None:
    """Put a value at the head of a list of recent ones."""
    others = [other for other in recent(key) if other != value]
    remember(key, [value, *others][:MOST_RECENT])


def recent(key: str) -> list[str]:
    """Return recent values, the last first."""
    found = remembered(key, [])
    return [str(value) for value in found] if isinstance(found, list) else []


def _preference(group: str, name: str) -> Any:
    try:
        return getattr(getattr(_settings(), group), name)
    except AttributeError:
        return _DEFAULTS[name]


def _settings() -> Any:
    """Return our page of napari's Preferences; None where napari does not know this plugin."""
    from napari.settings import get_plugin_settings

    try:
        return get_plugin_settings(PLUGIN)
    except KeyError:
        return None
    except Exception as error:  # noqa: BLE001 - a damaged file of settings must not keep a widget from opening
        log.warning("preferences cannot be read: %s", error)
        return None


def _file() -> Path | None:
    """Return where things are remembered: beside napari's own settings."""
    from napari.settings import get_settings

    path = get_settings().config_path
    return None if path is None else Path(path).parent / FILE


def _remembered() -> dict[str, Any]:
    path = _file()
    try:
        content = parsed_json(path.read_text(encoding="utf-8")) if path is not None else {}
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
