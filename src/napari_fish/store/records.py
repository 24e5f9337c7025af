"""What is known of slides and patches: plain values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_fish.index.arrays import Barcodes, Keys
from napari_fish.names import OWN_COLUMNS


class Box(NamedTuple):
    """A rectangle in level-0 px of a slide."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Choice:
    """How the patches of a slide were chosen.

    Attributes
    ----------
    candidates
        Patches on tissue that were good enough; 0 where that is not known.
    left_out
        How many patches on tissue were left out, by reason.
    artefacts
        How strictly artefacts were left out: ``strict``, ``normal`` or ``off``; empty where that is not known.
    mask
        Where the tissue came from: empty where it was found, else the mask's file name and the start of its hash.
    mask_class
        The classes of annotations that counted, joined; empty for all.
    """

    candidates: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    artefacts: str = ""
    mask: str = ""
    mask_class: str = ""

    def to_json(self) -> str:
        """Return it as text; empty for one that says nothing."""
        if self == Choice():
            return ""
        return json.dumps({**vars(self), "left_out": dict(self.left_out)}, sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Choice:
        """Return what :meth:`to_json` wrote; anything else is a ValueError."""
        if not text:
            return cls()
        said = json.loads(text)
        if not isinstance(said, dict) or set(said) != {one.name for one in fields(cls)}:
            raise ValueError("not a choice of patches")
        choice = cls(**said)
        counts = choice.left_out.items() if isinstance(choice.left_out, dict) else [("", None)]
        whole = [choice.candidates, *(count for _, count in counts)]
        words = [choice.artefacts, choice.mask, choice.mask_class]
        if not all(type(n) is int and n >= 0 for n in whole) or not all(isinstance(w, str) for w in words):
            raise ValueError("not a choice of patches")
        return choice


@dataclass(frozen=True)
class SlideRecord:
    """What is known of a slide.

    Attributes
    ----------
    slide
        Its id in the database.
    name
        What users call it, usually the file name.
    patient, site, diagnosis
        Empty where not known.
    labels
        Any further columns.
    path
        Where the slide was last seen, relative to the database where possible.
    content_hash
        Names the content, so that a slide that was moved is known again.
    size, mtime
        Of its files: bytes, and the time of the last change in ns.
    mpp
        Micrometres per level-0 px that its patches were cut by.
    width, height
        In level-0 px.
    choice
        How its patches were chosen.
    """

    slide: str
    name: str = ""
    patient: str = ""
    site: str = ""
    diagnosis: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    content_hash: str = ""
    size: int = 0
    mtime: int = 0
    mpp: float = 0.0
    width: int = 0
    height: int = 0
    choice: Choice = field(default_factory=Choice)

    def column(self, name: str) -> str:
        """Return the value of a column, in any case, empty where there is none."""
        low = name.lower()
        if low in OWN_COLUMNS:
            return str(getattr(self, low))
        return next((str(value) for key, value in self.labels.items() if key.lower() == low), "")


def with_values(labels: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
    """Return further columns with new values; a name that differs only in case is the same column."""
    both = [*labels.items(), *said.items()]
    spelling = {name.casefold(): name for name, _ in reversed(both)}
    return {spelling[name.casefold()]: value for name, value in both}


@dataclass(frozen=True)
class Quarantined:
    """A slide that could not be encoded.

    Attributes
    ----------
    slide
        The id it would have.
    path
        Where it is, relative to the database where possible.
    reason
        Why, in words.
    """

    slide: str
    path: str
    reason: str


class PatchRecord(NamedTuple):
    """Where a patch lies: its row, the number of its slide, its box in level-0 px."""

    row: int
    slide: int
    box: Box


class Pairs(NamedTuple):
    """Pairs of patches: the numbers of the slides of one and of the other, and their distances in bits, shape (n,) each."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    distances: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class EncodedSlide:
    """A slide ready to be committed.

    Attributes
    ----------
    record
        What is known of it.
    keys : int64, shape (n,)
    barcodes : uint64, shape (n, words)
    boxes : int32, shape (n, 4)
        x, y, width, height in level-0 px.
    """

    record: SlideRecord
    keys: Keys
    barcodes: Barcodes
    boxes: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Patches:
    """Patches with the numbers of their slides.

    Attributes
    ----------
    keys : int64, shape (n,)
    barcodes : uint64, shape (n, words)
    numbers : int64, shape (n,)
        The number of each one's slide.
    boxes : int32, shape (n, 4)
        x, y, width, height in level-0 px.
    """

    keys: Keys
    barcodes: Barcodes
    numbers: NDArray[np.int64]
    boxes: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Distances of random pairs of patches from different patients.

    Attributes
    ----------
    histogram : int64, shape (bits + 1,)
        Pairs at each Hamming distance.
    threshold
        Their 0.1 % quantile, in bits: nearer than that is near.
    note
        What had to be done differently, empty if nothing.
    """

    histogram: NDArray[np.int64]
    threshold: int
    note: str = ""

    def percentile(self, distance: ArrayLike) -> NDArray[np.float64]:
        """Return the percentage of random pairs at most this far apart."""
        share = np.cumsum(self.histogram) / max(1, int(self.histogram.sum()))
        return np.asarray(100 * share[np.clip(np.asarray(distance), 0, len(share) - 1)], np.float64)


def slide_digest(
    record: SlideRecord, keys: Keys, barcodes: Barcodes, boxes: NDArray[np.int32]
) -> bytes:  # fmt: skip
    """Return a digest of a slide and its patches, whatever their order."""
    known = [*(getattr(record, name) for name in OWN_COLUMNS), sorted(record.labels.items())]
    digest = hashlib.sha256(json.dumps(known, ensure_ascii=False).encode())
    order = np.lexsort([*boxes.T[::-1], keys])
    for array, dtype in ((keys, "<i8"), (barcodes, "<u8"), (boxes, "<i4")):
        digest.update(np.ascontiguousarray(array[order], dtype).tobytes())
    return digest.digest()


def content_digest(slides: Iterable[bytes]) -> str:
    """Join the digests of slides to one that does not depend on their order."""
    return hashlib.sha256(b"".join(sorted(slides))).hexdigest()
