"""Slides and an encoder so small that a database takes a second: for tests of builds and searches."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from napari_fish.building import settings
from napari_fish.encode.bundle.barcode import pack
from napari_fish.encode.bundle.card import NEIGHBOUR, Card, TextureSpec
from napari_fish.encode.bundle.keys import keys_from_codes
from napari_fish.encode.encoder import Encoded
from napari_fish.errors import EncoderError
from tests.slides.conftest import write_image, write_tiff

MPP = 2.0
PATCHES = 81
"""In the database of all slides: nine each."""
DOOM = "TINY_DOOM"
"""``BATCH:SECONDS`` in the environment: kill the program so long after so many batches were encoded."""
PROGRAM = "TINY_PROGRAM"
"""In the environment: the number of the process that is killed then, which may not be the one that encodes."""
KINDS = {"carcinoma": (175, 85, 150), "lymphoma": (105, 75, 165), "normal": (225, 150, 185)}
"""Diagnoses, with the colour that tells them apart."""
_DIRECTIONS = np.random.default_rng(0).standard_normal((4, 192))
_LIMITS = np.random.default_rng(1).uniform(-60, 60, 192)


def tissue(kind: str, seed: int, side: int = 256) -> NDArray[np.uint8]:
    """Paint grainy tissue of a diagnosis, shape (side, side, 3)."""
    dice = np.random.default_rng(seed)
    coarse = {"carcinoma": 6.0, "lymphoma": 1.2, "normal": 3.0}[kind]
    grain = gaussian_filter(dice.standard_normal((side, side)), coarse)
    grain = 40 * grain / grain.std() + 12 * dice.standard_normal((side, side))
    return np.clip(np.array(KINDS[kind]) + grain[..., None], 0, 225).astype(np.uint8)


def picture(kind: str, seed: int, height: int = 600, width: int = 700) -> NDArray[np.uint8]:
    """Paint a slide: glass with a piece of tissue on it."""
    slide = np.full((height, width, 3), 244, np.uint8)
    dice = np.random.default_rng(seed)
    top, left = dice.integers(10, 50, 2)
    piece = np.tile(tissue(kind, seed), (3, 3, 1))[: height - top - 30, : width - left - 40]
    slide[top : top + piece.shape[0], left : left + piece.shape[1]] = piece
    return slide


def write_slide(path: Path, kind: str = "carcinoma", seed: int = 0, **options: object) -> Path:
    """Write a slide of 1.4 x 1.2 mm at 2 µm/px as a pyramidal TIFF."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scale = {"resolution": (1e4 / MPP, 1e4 / MPP)}
    return write_tiff(path, picture(kind, seed), 2, **(scale | options))


def write_empty_slide(path: Path) -> Path:
    """Write a slide that is glass all over."""
    glass = np.full((300, 300, 3), 244, np.uint8)
    return write_tiff(path, glass, 2, resolution=(1e4 / MPP, 1e4 / MPP))


def write_archive(folder: Path, patients: int = 2) -> Path:
    """Write slides of each diagnosis, the first patient of each with two, and labels.csv beside them."""
    lines = ["Slide ID,Case,Organ,Diagnosis,Scanner"]
    for k, kind in enumerate(KINDS):
        for patient in range(patients):
            for number in range(2 if patient == 0 else 1):
                name = f"{kind}/P{k}{patient}-{number} ü.tif"
                write_slide(folder / name, kind, 100 * k + 10 * patient + number)
                organ = "breast" if k != 1 else "lymph node"
                lines.append(f"{name},P{k}{patient},{organ},{kind},{'GT450' if patient else 'P1000'}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_patches(folder: Path, each: int = 4) -> Path:
    """Write class-named folders of patch images."""
    for k, kind in enumerate(KINDS):
        (folder / kind).mkdir(parents=True)
        for i in range(each):
            write_image(folder / kind / f"{i:02d}-{kind[:2]} 1.png", tissue(kind, 1000 * k + i, 96 + i))
    return folder


def _die_in(seconds: float) -> None:
    """Kill the program, without any chance to clean up."""
    program = int(os.environ.get(PROGRAM, os.getpid()))
    threading.Timer(seconds, os.kill, (program, signal.SIGKILL)).start()


def ink_on(monkeypatch: pytest.MonkeyPatch, name: str, patches: int = 2) -> None:
    """Let patches of slides with a text in their name be left out for ink, unless artefacts are kept."""
    from napari_fish.mosaic import mosaic

    judged = mosaic.judged

    def with_ink(slide: Path, places: Any, measured: Any, params: Any) -> Any:
        found, rescued = judged(slide, places, measured, replace(params, artefacts="off"))
        if name in slide.name and params.artefacts != "off":
            found[:patches] = [replace(patch, reason="ink") for patch in found[:patches]]
        return found, rescued

    monkeypatch.setattr(mosaic, "judged", with_ink)


class QuickEncoder:
    """An encoder without networks: what it sees is the colour of the tissue, and how grainy it is.

    Stands in for :class:`napari_fish.encode.Encoder` where what is tested is not the encoding.
    """

    batch = 4
    device = "cpu"
    stack = staticmethod(np.stack)

    def __init__(self, name: str = "quick", step: int = 1) -> None:
        texture = TextureSpec("quick")
        digest = hashlib.sha256(f"{name} {step}".encode()).hexdigest()
        self.card = Card(name, "for tests", 8, tuple(range(128)), texture, NEIGHBOUR, 192, sha256=digest)
        self._step, self._calls = step, 0
        batch, _, seconds = os.environ.get(DOOM, "-1:0").partition(":")
        self._doom = int(batch), float(seconds)
        if self._doom[0] == 0:
            _die_in(self._doom[1])

    def encode(self, patches: NDArray[np.uint8], keep_codes: bool = False) -> Encoded:
        """Encode patches, uint8 (n, 1024, 1024, 3)."""
        self._calls += 1
        if self._calls == self._doom[0]:
            _die_in(self._doom[1])
        grid = patches[:, 8::16, 8::16].astype(np.int64)
        codes = (grid.sum(axis=3) // 6).astype(np.uint8)
        tissue_only = (codes < 116)[..., None]
        share = np.maximum(1, tissue_only.sum((1, 2)))
        colour = (grid * tissue_only).sum((1, 2)) / share - 140
        grain = 4 * (codes.astype(float).std((1, 2))[:, None] - 20)
        bits = np.hstack([colour, grain]) @ np.roll(_DIRECTIONS, self._step, 1) > _LIMITS
        return Encoded(keys_from_codes(codes), pack(bits), codes if keep_codes else None)


def quick_encoder(name_or_path: object = "quick", device: str = "auto", plan: object = None) -> QuickEncoder:
    """Stand in for :func:`napari_fish.encode.load_encoder`; knows ``quick`` and ``other``."""
    if str(name_or_path) not in ("quick", "other", "fish-lite"):
        raise EncoderError(f"there is no encoder {str(name_or_path)!r}. Known: quick, other.")
    return QuickEncoder("other", 2) if name_or_path == "other" else QuickEncoder()


def quick_card(name_or_path: object) -> Card:
    """Stand in for :func:`napari_fish.building.settings.card_of`."""
    return quick_encoder(name_or_path).card


def use_quick_encoder() -> None:
    """Let this process build and search without networks."""
    settings.load_encoder, settings.card_of = quick_encoder, quick_card  # type: ignore[assignment]


def main() -> None:
    """Run the command line, without networks."""
    from napari_fish.cli import main as command_line

    # Under the name by which workers find it, too.
    os.environ[PROGRAM] = str(os.getpid())
    import_module("tests.tiny").use_quick_encoder()
    command_line()


if __name__ == "__main__":
    main()
