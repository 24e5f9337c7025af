"""What every slide of a database depends on, and what the database remembers of its builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

_OF_THE_ENCODER = ("encoder", "weights_hash", "words")
_PUBLIC = ("preset", "mosaic", "patches", "version", "paper_barcodes")


@dataclass(frozen=True)
class Facts:
    """Plain values, kept by name.

    Attributes
    ----------
    encoder, weights_hash, words
        The one encoder whose barcodes a database holds, and the 64-bit words of a barcode.
    preset, mosaic
        How patches are chosen: the name, and every number of it; none where that was never recorded.
    patches
        Whether images that are one patch each are kept, instead of slides.
    version
        Of the program that made it.
    paper_barcodes
        Whether barcodes are those of the paper, for which its threshold was chosen.
    bundle
        Where an encoder without a name of its own was found, relative to the database.
    mask_folders
        Folders in which the masks of slides lay.
    patient
        The rule by which names of files tell patients.
    dismissed
        Files that are left alone until they change: size and time of each.
    identity
        What tells a database from any other; copies share it.
    """

    encoder: str
    weights_hash: str
    words: int
    preset: str = "unknown"
    mosaic: Mapping[str, Any] | None = None
    patches: bool = False
    version: str = "?"
    paper_barcodes: bool = False
    bundle: str = ""
    mask_folders: tuple[str, ...] = ()
    patient: str | None = None
    dismissed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    identity: str = ""

    @classmethod
    def recorded(cls, encoder: str, weights_hash: str, words: int, parameters: Mapping[str, Any]) -> Self:
        """Make sense of what is kept by name; what is not of its kind was never said."""
        known = {f.name: parameters[f.name] for f in fields(cls) if f.name in parameters}
        for name, kind in (
            ("preset", str),
            ("version", str),
            ("patient", str),
            ("bundle", str),
            ("mosaic", dict),
        ):
            if not isinstance(known.get(name), kind):
                known.pop(name, None)
        known["identity"] = str(known.get("identity", ""))
        known["patches"] = bool(known.get("patches"))
        known["paper_barcodes"] = known.get("paper_barcodes") is True
        folders, dismissed = known.get("mask_folders"), known.get("dismissed")
        known["mask_folders"] = tuple(map(str, folders)) if isinstance(folders, list) else ()
        known["dismissed"] = (
            {path: tuple(said) for path, said in dismissed.items() if isinstance(said, list)}
            if isinstance(dismissed, dict)
            else {}
        )
        return cls(**{**known, "encoder": encoder, "weights_hash": weights_hash, "words": words})

    def public(self) -> Self:
        """Return what names no people and no folders."""
        return type(self)(**{name: getattr(self, name) for name in (*_OF_THE_ENCODER, *_PUBLIC)})

    @property
    def parameters(self) -> dict[str, Any]:
        """All but the encoder, as it is kept: what was never said is left out."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _OF_THE_ENCODER}
        return {name: value for name, value in plain.items() if name in _PUBLIC or value}
