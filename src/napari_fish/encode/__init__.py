"""A patch becomes (key, barcode): VQ-VAE, texture network, bundles, training.

Nothing here imports torch until an encoder is loaded or trained.
"""

from napari_fish.encode.bundle.bundle import (
    DEFAULT_ENCODER,
    Bundle,
    BundleInfo,
    check_same_encoder,
    list_encoders,
    load_bundle,
    save_bundle,
)
from napari_fish.encode.bundle.card import Card, TextureSpec
from napari_fish.encode.bundle.device import DEVICES, available_devices, describe_device
from napari_fish.encode.encoder import Encoded, Encoder, load_encoder, patch_from_image
from napari_fish.encode.importing import import_checkpoint
from napari_fish.encode.networks.registry import register_texture
from napari_fish.encode.patches import EncodeJob, ImageJob, PatchBox
from napari_fish.encode.pipeline import EncodeOutcome, encode_patches, encode_slides
from napari_fish.encode.regions import boxes_of_region

__all__ = [
    "DEFAULT_ENCODER",
    "DEVICES",
    "Bundle",
    "BundleInfo",
    "Card",
    "EncodeJob",
    "EncodeOutcome",
    "Encoded",
    "Encoder",
    "ImageJob",
    "PatchBox",
    "TextureSpec",
    "available_devices",
    "boxes_of_region",
    "check_same_encoder",
    "describe_device",
    "encode_patches",
    "encode_slides",
    "import_checkpoint",
    "list_encoders",
    "load_bundle",
    "load_encoder",
    "patch_from_image",
    "register_texture",
    "save_bundle",
]
