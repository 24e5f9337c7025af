"""What the Tissue & mosaic widget remembers between sessions: the preset, and what was changed of it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from napari_fish._napari.preferences import remember, remembered
from napari_fish.mosaic import MosaicParams, preset

KEY = "mosaic"


def keep(name: str, params: MosaicParams, live: bool) -> None:
    """Remember the name of a preset, the parameters shown with it, and whether previews are live."""
    first = preset(name)
    mosaic = _changed(replace(params, tissue=first.tissue), first)
    remember(
        KEY, {"preset": name, "live": live, "mosaic": mosaic, "tissue": _changed(params.tissue, first.tissue)}
    )


def recall() -> tuple[str, MosaicParams, bool]:
    """Return what was remembered, or what is shown at first where that makes no sense."""
    known = remembered(KEY, {})
    try:
        first = preset(known["preset"])
        tissue = replace(first.tissue, **known["tissue"])
        return known["preset"], replace(first, tissue=tissue, **known["mosaic"]), bool(known["live"])
    except (LookupError, TypeError, ValueError):
        return "default", preset(), True


def _changed(params: Any, first: Any) -> dict[str, Any]:
    names = [field.name for field in fields(params)]
    return {name: getattr(params, name) for name in names if getattr(params, name) != getattr(first, name)}
