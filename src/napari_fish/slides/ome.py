"""What OME-XML says about the images of a file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.etree import ElementTree

MICROMETRES = {
    "m": 1e6,
    "meter": 1e6,
    "cm": 1e4,
    "centimeter": 1e4,
    "mm": 1e3,
    "millimeter": 1e3,
    "µm": 1.0,
    "μm": 1.0,
    "um": 1.0,
    "micron": 1.0,
    "micrometer": 1.0,
    "nm": 1e-3,
    "nanometer": 1e-3,
    "å": 1e-4,
    "angstrom": 1e-4,
    "in": 25_400.0,
    "inch": 25_400.0,
}
"""Length units as OME-XML, OME-Zarr, ImageJ and napari spell them, in µm."""


def micrometres(value: float, unit: str) -> float | None:
    """Convert a length to µm, or None when the unit is no length."""
    factor = MICROMETRES.get(unit.strip().casefold())
    return None if factor is None else value * factor


@dataclass(frozen=True)
class OmeImage:
    """One image as OME-XML describes it; mpp in µm per px."""

    name: str
    mpp: tuple[float | None, float | None]
    objective_power: float | None
    significant_bits: int | None


def read_ome(xml: str | None) -> tuple[OmeImage, ...]:
    """Return the images described by an OME-XML text; nothing when it cannot be parsed."""
    try:
        root = ElementTree.fromstring((xml or "").encode())
    except ElementTree.ParseError:
        return ()
    objectives = {
        o.get("ID"): _number(o.get("NominalMagnification") or o.get("CalibratedMagnification"))
        for o in root.iterfind("{*}Instrument/{*}Objective")
    }
    images = []
    for image in root.iterfind("{*}Image"):
        pixels = image.find("{*}Pixels")
        settings = image.find("{*}ObjectiveSettings")
        about = pixels.attrib if pixels is not None else {}
        bits = _number(about.get("SignificantBits"))
        images.append(
            OmeImage(
                image.get("Name") or "",
                (_size(about, "X"), _size(about, "Y")),
                objectives.get(settings.get("ID")) if settings is not None else None,
                int(bits) if bits else None,
            )
        )
    return tuple(images)


def _size(about: dict[str, str], axis: str) -> float | None:
    value = _number(about.get(f"PhysicalSize{axis}"))
    return None if value is None else micrometres(value, about.get(f"PhysicalSize{axis}Unit", "µm"))


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
