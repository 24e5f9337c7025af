"""Bundles: an encoder as a folder or a single file, safetensors and a card, never a pickle."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from napari_fish.encode.bundle.card import Card, card_from_json
from napari_fish.encode.bundle.device import keep_triton_out
from napari_fish.errors import EncoderError

if TYPE_CHECKING:
    from torch import Tensor

CARD_FILE, WEIGHTS_FILE = "card.json", "weights.safetensors"
DEFAULT_ENCODER = "fish-lite"
MOST_CARD = 1 << 20
"""Bytes; a larger card is not read."""


@dataclass(frozen=True)
class Bundle:
    """An encoder at rest.

    Attributes
    ----------
    card : Card
        What it is.
    tensors : mapping of str to Tensor
        ``vqvae.*``, and ``texture.*`` where the texture network's numbers are in the bundle.
    path : Path or None
        Where it was read from.
    """

    card: Card
    tensors: Mapping[str, Tensor]
    path: Path | None = None


@dataclass(frozen=True)
class BundleInfo:
    """One line of ``napari-fish encoders``.

    Attributes
    ----------
    id : str
        Short name.
    title : str
        One line for people.
    origin : str
        ``"built-in"``, ``"installed"`` (another package's) or ``"cached"`` (the user's own).
    path : Path
        Where it is.
    sha256 : str
        Its hash.
    barcode_length : int
        Bits of a barcode.
    training, licence : str
        From its card.
    problem : str
        Why it cannot be used; empty if it can.
    """

    id: str
    title: str
    origin: str
    path: Path
    sha256: str = ""
    barcode_length: int = 0
    training: str = ""
    licence: str = ""
    problem: str = ""


def cache_folder() -> Path:
    """Return the folder for the user's own encoders and for remembered self-tests."""
    if "NAPARI_FISH_CACHE" in os.environ:
        return Path(os.environ["NAPARI_FISH_CACHE"])
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "napari-fish"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "napari-fish"


def content_hash(card: Card, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 that names an encoder; the same for a folder and a single file."""
    import torch

    digest = hashlib.sha256(card.hashed_part())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        if tensor.numel():
            digest.update(tensor.view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def save_bundle(card: Card, tensors: Mapping[str, Tensor], path: Path) -> Card:
    """Write a bundle and return its card with the hash filled in.

    Parameters
    ----------
    card : Card
        Its hash is computed here.
    tensors : mapping of str to Tensor
        The weights.
    path : Path
        A name ending in ``.safetensors`` makes a single file, any other a folder.
    """
    from safetensors.torch import save

    # counters of batch norm are of no use after training
    kept = {
        k: v.detach().cpu().contiguous() for k, v in tensors.items() if not k.endswith("num_batches_tracked")
    }
    card = card.renamed(sha256=content_hash(card, kept))
    single = path.suffix == ".safetensors"
    path = Path(path)
    (path.parent if single else path).mkdir(parents=True, exist_ok=True)
    target = path if single else path / WEIGHTS_FILE
    partial = target.with_name(target.name + ".part")
    # not save_file(): it makes files that only their owner can read
    partial.write_bytes(save(kept, metadata={"card": card.to_json()} if single else None))
    os.replace(partial, target)
    if not single:
        (path / CARD_FILE).write_text(card.to_json(), encoding="utf-8")
    return card


def describe_bundle(path: Path, **changes: object) -> Card:
    """Change what a bundle says about itself without changing what it is.

    Parameters
    ----------
    path : Path
        A bundle's folder or file.
    **changes
        New values of fields outside the hash: ``id``, ``title``, ``threshold``, ``training``,
        ``licence``, ``quality``.
    """
    bundle = load_bundle(path)
    card = bundle.card.renamed(**changes)
    if content_hash(card, bundle.tensors) != bundle.card.sha256:
        raise EncoderError(f"{path}: these changes would make it another encoder.")
    return save_bundle(card, bundle.tensors, path)


def read_card(path: Path) -> Card:
    """Read the card of the bundle at ``path``, a folder or a single file, without its weights."""
    if path.is_dir():
        file = path / CARD_FILE
        if not file.is_file():
            raise EncoderError(f"{path}: no {CARD_FILE} in this folder, so it is not an encoder bundle.")
        if file.stat().st_size > MOST_CARD:
            raise EncoderError(f"{file}: too large for a card. Get the bundle again.")
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EncoderError(f"{file}: the card cannot be read ({error}). Get the bundle again.") from error
        return card_from_json(text, str(path))
    if not path.is_file():
        raise EncoderError(f"{path}: no such encoder bundle.")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as weights:
            metadata = weights.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise EncoderError(f"{path}: not a safetensors file ({error}).") from error
    if "card" not in metadata:
        raise EncoderError(f"{path}: this safetensors file carries no card, so it is not an encoder bundle.")
    return card_from_json(metadata["card"], str(path))


def load_bundle(name_or_path: str | Path = DEFAULT_ENCODER) -> Bundle:
    """Read a bundle and check its hash.

    Parameters
    ----------
    name_or_path : str or Path
        An id that :func:`list_encoders` shows, or a folder or file.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    keep_triton_out()
    path = find_bundle(name_or_path)
    card = read_card(path)
    weights = path / WEIGHTS_FILE if path.is_dir() else path
    if not weights.is_file():
        raise EncoderError(f"{weights}: missing. Get the bundle again.")
    try:
        tensors = load_file(weights)
    except (SafetensorError, OSError, ValueError) as error:
        raise EncoderError(
            f"{weights}: the weights cannot be read ({error}). Get the bundle again."
        ) from error
    if content_hash(card, tensors) != card.sha256:
        raise EncoderError(
            f"{path}: weights and card do not match the hash in the card; the bundle is damaged or was edited. "
            "Get it again."
        )
    return Bundle(card, tensors, path)


def find_bundle(name_or_path: str | Path) -> Path:
    """Return where a bundle is, given its id, or its folder or file."""
    path = Path(name_or_path)
    looks_like_path = isinstance(name_or_path, Path) or len(path.parts) > 1 or path.suffix == ".safetensors"
    if not looks_like_path:
        for info in list_encoders():
            if info.id == name_or_path and not info.problem:
                return info.path
    if path.exists():
        return path
    known = ", ".join(info.id for info in list_encoders()) or "none"
    raise EncoderError(
        f"there is no encoder {str(name_or_path)!r}. Known: {known}; a path to a bundle works as well."
    )


def _folders() -> Iterable[tuple[str, str, Path, str]]:
    """Yield origin, name, folder and what is wrong with it, of every folder that bundles may be in."""
    yield "built-in", "", Path(__file__).parents[1] / "bundles", ""
    from importlib.metadata import entry_points

    for point in entry_points(group="napari_fish.encoders"):
        try:
            folder = point.load()
            yield "installed", point.name, Path(folder() if callable(folder) else folder), ""
        except Exception as error:  # noqa: BLE001 - somebody else's package must not disable all encoders
            problem = f"its package is broken ({type(error).__name__}: {error}). Update or remove it."
            yield "installed", point.name, Path(), problem
    yield "cached", "", cache_folder() / "encoders", ""


def list_encoders() -> list[BundleInfo]:
    """Return every bundle that has a name: built-in, installed and cached, unusable ones included."""
    found = []
    for origin, name, folder, problem in _folders():
        try:
            entries = sorted(folder.iterdir()) if folder.is_dir() and not problem else []
        except OSError as error:
            entries, problem = [], f"{folder}: cannot be listed ({error.strerror})."
        if problem:
            found.append(BundleInfo(name or origin, "", origin, folder, problem=problem))
        for path in entries:
            if not (path.suffix == ".safetensors" or (path / CARD_FILE).exists()):
                continue
            try:
                card = read_card(path)
            except EncoderError as error:
                found.append(BundleInfo(path.stem, "", origin, path, problem=str(error)))
                continue
            found.append(
                BundleInfo(
                    id=card.id,
                    title=card.title,
                    origin=origin,
                    path=path,
                    sha256=card.sha256,
                    barcode_length=card.barcode_length,
                    training=card.training,
                    licence=card.licence,
                )
            )
    return found


def check_same_encoder(remembered_id: str, remembered_hash: str, card: Card, where: str) -> None:
    """Refuse to mix encoders: keys and barcodes of two encoders mean nothing to each other.

    Parameters
    ----------
    remembered_id, remembered_hash : str
        What a database was built with.
    card : Card
        The encoder about to be used.
    where : str
        The database, for the message.
    """
    if remembered_hash != card.sha256:
        raise EncoderError(
            f"{where} was built with encoder {remembered_id!r} ({remembered_hash[:12]}), not with {card.id!r} "
            f"({card.sha256[:12]}). Use that encoder, or build a new database."
        )
