"""An encoder at work: patches in, keys and barcodes out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.bundle.barcode import neighbour_bits, pack, projection_bits, words_for
from napari_fish.encode.bundle.bundle import DEFAULT_ENCODER, Bundle, load_bundle
from napari_fish.encode.bundle.card import PROJECTION, Card
from napari_fish.encode.bundle.keys import keys_from_codes
from napari_fish.encode.speed.speed_plan import Engine, Plan, choose_plan
from napari_fish.errors import EncoderError

log = logging.getLogger(__name__)
# As CUDA, cuDNN, cuBLAS, MPS, XPU and torch itself on Linux and Windows put it, underscores taken for blanks.
_OUT_OF_MEMORY = (
    "out of memory",
    "out of device memory",
    "out of host memory",
    "out of resources",
    "allocate memory",
    "not enough memory",
    "insufficient memory",
    "alloc failed",
)


@dataclass(frozen=True)
class Encoded:
    """What patches became.

    Attributes
    ----------
    keys : ndarray of uint64, shape (n,)
        Keys, smaller than 2**50.
    barcodes : ndarray of uint64, shape (n, words)
        Packed barcodes; bit i is bit ``i % 64`` of word ``i // 64``.
    codes : ndarray of uint8, shape (n, 64, 64), or None
        Latent codes in semantic order, if asked for.
    thumbnails : ndarray of uint8, shape (n, px, px, 3), or None
        Small pictures of the patches, if asked for.
    """

    keys: NDArray[np.uint64]
    barcodes: NDArray[np.uint64]
    codes: NDArray[np.uint8] | None = None
    thumbnails: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.keys)


class Encoder:
    """Turns patches into keys and barcodes.

    Parameters
    ----------
    bundle : Bundle
        Weights and card.
    device : str
        ``"auto"``, ``"cuda"``, ``"mps"``, ``"xpu"`` or ``"cpu"``.
    plan : Plan, optional
        How to compute; None lets a quick self-test choose, and remembers its choice.

    Notes
    -----
    One encoder may be used from several threads; they take turns.
    """

    def __init__(self, bundle: Bundle, device: str = "auto", plan: Plan | None = None) -> None:
        from napari_fish.encode.bundle.device import pick_device
        from napari_fish.encode.networks.registry import fit_weights, make_texture
        from napari_fish.encode.networks.vqvae import VQVAE

        self.card: Card = bundle.card
        prefix = "vqvae."
        words = bundle.tensors.get("vqvae.codebook.embedding.weight")
        if words is None or words.dim() != 2 or words.shape[1] != bundle.card.width:
            raise EncoderError(
                f"encoder {self.card.id!r}: there is no codebook of width {self.card.width} in its weights. Get the bundle again."
            )
        model = VQVAE(bundle.card.width)
        state = {k.removeprefix(prefix): v for k, v in bundle.tensors.items() if k.startswith(prefix)}
        fit_weights(model, state, f"encoder {self.card.id!r}, VQ-VAE")
        texture = make_texture(bundle.card, bundle.tensors, bundle.path)
        self._order = np.array(bundle.card.order, np.uint8)
        self._projection: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        if self.card.barcode == PROJECTION:
            self._projection = _planes(bundle)
        torch_device = pick_device(device)
        model.eval()
        self.plan = plan or choose_plan(model, texture, torch_device, self.card, self._bits)
        self._engine = Engine(model, texture, torch_device, self.plan)
        self._batch = self.plan.batch
        self._turn = threading.Lock()

    @property
    def device(self) -> str:
        """The device that computes, such as ``"cpu"`` or ``"cuda"``."""
        return str(self._engine.device)

    @property
    def batch(self) -> int:
        """Patches computed at once; halved whenever memory runs out."""
        return self._batch

    @batch.setter
    def batch(self, patches: int) -> None:
        self._batch = max(1, patches)

    def stack(self, patches: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Put patches together for :meth:`encode`, in memory that the device reads fastest; any thread may."""
        return self._engine.stack(patches)

    def encode(self, patches: NDArray[np.uint8], keep_codes: bool = False) -> Encoded:
        """Encode patches.

        Parameters
        ----------
        patches : ndarray of uint8, shape (n, size, size, 3)
            RGB at the card's mpp.
        keep_codes : bool
            Return the latent codes as well.
        """
        size = self.card.size
        if patches.ndim != 4 or patches.shape[1:] != (size, size, 3) or patches.dtype != np.uint8:
            raise ValueError(
                f"patches must be uint8 of shape (n, {size}, {size}, 3), not {patches.dtype} {patches.shape}"
            )
        words = words_for(self.card.barcode_length)
        if not len(patches):
            return Encoded(
                np.empty(0, np.uint64),
                np.empty((0, words), np.uint64),
                np.empty((0, size // 16, size // 16), np.uint8),
            )
        with self._turn:
            codes, features = self._compute(patches)
        semantic = self._order[codes]
        bits = self._bits(features)
        if bits.shape[1] != self.card.barcode_length:
            raise EncoderError(
                f"encoder {self.card.id!r}: its network gives {bits.shape[1]} bits, its card says "
                f"{self.card.barcode_length}. Make the bundle again."
            )
        return Encoded(keys_from_codes(semantic), pack(bits), semantic if keep_codes else None)

    def features(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return texture features, float32 (n, length), of patches uint8 (n, size, size, 3)."""
        with self._turn:
            return self._compute(patches)[1]

    def _bits(self, features: NDArray[np.float32]) -> NDArray[np.bool_]:
        if self._projection is not None:
            if features.shape[1] != len(self._projection[0]):
                raise EncoderError(
                    f"encoder {self.card.id!r}: its network gives {features.shape[1]} features, its planes want "
                    f"{len(self._projection[0])}. Make the bundle again."
                )
            return projection_bits(features, *self._projection)
        return neighbour_bits(features)

    def _compute(self, patches: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        codes, features, start = [], [], 0
        while start < len(patches):
            part = patches[start : start + self._batch]
            try:
                some_codes, some_features = self._engine.run(part)
            except (RuntimeError, MemoryError) as error:
                self._shrink_batch(error)
                continue
            codes.append(some_codes)
            features.append(some_features)
            start += len(part)
        return np.concatenate(codes), np.concatenate(features)

    def _shrink_batch(self, error: Exception) -> None:
        """Halve the batch if memory ran out; give up at one patch, or for any other reason."""
        text = str(error).lower().replace("_", " ")
        if not isinstance(error, MemoryError) and not any(sign in text for sign in _OUT_OF_MEMORY):
            raise error
        if self._batch == 1:
            raise EncoderError(
                f"{self.device} has too little memory for even one patch. Close other programs, "
                "or choose --device cpu."
            ) from error
        self._batch //= 2
        self._engine.release_memory()
        log.warning("out of memory on %s: going on with batches of %d", self.device, self._batch)


def _planes(bundle: Bundle) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the planes of a bundle, (features, bits) and (bits,)."""
    normals, offsets = (bundle.tensors.get(f"texture.{name}") for name in ("projection", "thresholds"))
    bits = bundle.card.barcode_length
    if (
        normals is None
        or offsets is None
        or normals.dim() != 2
        or normals.shape[1] != bits
        or offsets.shape != (bits,)
    ):
        raise EncoderError(
            f"encoder {bundle.card.id!r}: there are no planes for {bits} bits in the bundle. Make it again."
        )
    return normals.double().numpy(), offsets.double().numpy()


def load_encoder(
    name_or_path: str | Path = DEFAULT_ENCODER, device: str = "auto", plan: Plan | None = None
) -> Encoder:
    """Load an encoder by id or path; see :class:`Encoder`."""
    return Encoder(load_bundle(name_or_path), device, plan)


def patch_from_image(pixels: NDArray[np.uint8], size: int = 1024) -> NDArray[np.uint8]:
    """Resize an image to a patch, whatever its shape, as in the paper's patch experiment.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (h, w, 3)
        RGB.
    size : int
        Side of the patch in px.
    """
    from PIL import Image

    if pixels.shape[:2] == (size, size):
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC))
