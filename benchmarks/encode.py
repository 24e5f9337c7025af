"""How fast patches are encoded, against a plain loop over the paper's pair of networks, and how well.

Speed: the same patches go, turn by turn, through a plain fp32 loop over the paper's pair, through
`fish-paper` and through `fish-lite`. SplitBarcodes of random networks are not like those of trained ones, so the
paper's pair is trained on tissue the first time (minutes; interrupted, it goes on) and kept. DenseNet-121 has
its ImageNet weights where torchvision's file is found, else it learns to tell tissues apart.
Retrieval: see encode_retrieval.py.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import tempfile
from pathlib import Path

import numpy as np
import torch
from common import Row, in_turns, options, report, write_big_slide
from encode_retrieval import DATA, retrieval_rows
from numpy.typing import NDArray

from napari_fish.encode import Bundle, encode_patches, load_bundle
from napari_fish.encode.bundle.barcode import unpack
from napari_fish.encode.bundle.card import TextureSpec
from napari_fish.encode.bundle.keys import semantic_order
from napari_fish.encode.encoder import Encoder
from napari_fish.encode.importing import paper_card
from napari_fish.encode.networks.densenet import find_weights
from napari_fish.encode.speed.speed_plan import PLAIN
from napari_fish.encode.training.crops import Crops
from napari_fish.encode.training.params import TrainReport, VQTrainParams
from napari_fish.encode.training.sources import TissueSource
from napari_fish.encode.training.vqvae import train_vqvae
from napari_fish.slides import open_slide

CACHE = Path(__file__).parent / ".cache"
SOURCES = (("breakhis", 0.25), ("lc25000", 0.5), ("osteosarcoma", 1.0))
RGB = NDArray[np.uint8]


def main() -> None:
    chosen = options(__doc__ or "")
    rows = speed_rows(rounds=2 if chosen.quick else 5)
    report(rows, None)
    better = [] if chosen.quick else retrieval_rows()
    report(better, None)
    if chosen.json:
        chosen.json.write_text(json.dumps({"rows": rows + better}, indent=2) + "\n")


def speed_rows(rounds: int) -> list[Row]:
    """Time the three ways of encoding, turn by turn, and the way from file to barcode."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_big_slide(Path(folder) / "slide.tif", 8192, 0.5)
        patches = tissue_patches(rounds + 1)
        paper, lite = trained_paper_pair(), load_bundle("fish-lite")
        plain, fast, small = Encoder(paper, "cpu", PLAIN), Encoder(paper, "cpu"), Encoder(lite, "cpu")
        boxes = [(1024.0 * i, 1024.0 * j, 1024.0) for i in range(4) for j in range(3)]
        with open_slide(path, mpp=0.5) as slide:
            read = np.stack([slide.read(x, y, 1024, 1024, 0.5) for x, y, _ in boxes])
            times = in_turns(
                {
                    "plain loop over the paper's pair": lambda i: plain.encode(patches[i : i + 1]),
                    "fish-paper": lambda i: fast.encode(patches[i : i + 1]),
                    "fish-lite": lambda i: small.encode(patches[i : i + 1]),
                    "fish-lite, 12 patches from memory": lambda i: small.encode(read),
                    "fish-lite, 12 patches from a file": lambda i: encode_patches(slide, boxes, small),
                },
                rounds,
            )
    base = times["plain loop over the paper's pair"]
    rows: list[Row] = []
    for name, seconds in times.items():
        per_patch = [s / (12 if "12" in name else 1) for s in seconds]
        ratio = statistics.median(b / s for b, s in zip(base, per_patch, strict=True))
        rows.append(
            {"what": name, "ms a patch": 1e3 * statistics.median(per_patch), "times the plain loop": ratio}
        )
    first, second = (times[f"fish-lite, 12 patches from {where}"] for where in ("memory", "a file"))
    loading = statistics.median(b / a for a, b in zip(first, second, strict=True)) - 1
    rows[-1]["data loading adds %"] = 100 * loading
    rows[1].update(agreement(plain, fast, patches))
    rows[1]["plan"], rows[2]["plan"] = str(fast.plan), str(small.plan)
    rows[2].update(agreement(Encoder(lite, "cpu", PLAIN), small, patches))
    return rows


def agreement(plain: Encoder, fast: Encoder, patches: RGB) -> Row:
    """Return how many codes are the same, and how many bits of the barcodes are not."""
    one, other = plain.encode(patches, True), fast.encode(patches, True)
    assert one.codes is not None and other.codes is not None
    length = plain.card.barcode_length
    bits = np.mean(unpack(one.barcodes, length) != unpack(other.barcodes, length))
    return {
        "same codes %": 100 * float(np.mean(one.codes == other.codes)),
        "changed bits %": 100 * float(bits),
        "codes in use": len(np.unique(one.codes)),
    }


def tissue_patches(count: int) -> RGB:
    """Return patches, uint8 (count, 1024, 1024, 3): real tissue where there is any, else made up."""
    if DATA.is_dir():
        with open_slide(DATA / "slides" / "cmu-1-small-region.svs") as slide:
            spots = np.random.default_rng(0).uniform(0, 1, (count, 2)) * [1190, 1930]
            return np.stack([slide.read(x, y, 1024, 1024, 0.5) for x, y in spots])
    from napari_fish.encode.speed.speed_plan import _made_up_tissue

    return np.concatenate([_made_up_tissue(1024)] * count)


def trained_paper_pair(steps: int = 600) -> Bundle:
    """Return the paper's networks, trained on tissue; kept for the next run."""
    sources = [TissueSource(DATA / "tissue" / "train" / name, mpp) for name, mpp in SOURCES if DATA.is_dir()]
    params = VQTrainParams(
        crop=64, batch=8, steps=steps, check_every=50, decay=True, flips=True, patience=0, restart_after=20
    )
    name = hashlib.sha256(repr((params, SOURCES)).encode()).hexdigest()[:12]
    model = train_vqvae(sources, CACHE / f"vqvae-{name}", params, progress=heard)
    order = semantic_order(model.codebook.embedding.weight.detach().numpy())
    tensors = {f"vqvae.{k}": v for k, v in model.state_dict().items() if v.dim()}
    card = paper_card(256, order)
    if find_weights(None) is not None:
        return Bundle(card, tensors)
    texture = trained_densenet(CACHE / f"densenet-{name}.pt")
    tensors |= {f"texture.{k}": v for k, v in texture.items()}
    return Bundle(card.renamed(texture=TextureSpec("densenet121", "bundle")), tensors)


def heard(report: TrainReport) -> None:
    """Say how training stands, where there is something to say."""
    if report.validation is not None:
        print(f"VQ-VAE, step {report.step} of {report.steps}: {report.codes_used} codewords in use")


def trained_densenet(file: Path, steps: int = 200) -> dict[str, torch.Tensor]:
    """Return DenseNet-121 after it has learned to tell classes of tissue apart; kept every 50 steps."""
    from napari_fish.encode.networks.densenet import DenseNetTexture

    classes = [
        TissueSource(folder, mpp)
        for name, mpp in SOURCES
        for folder in sorted((DATA / "tissue" / "train" / name).iterdir())
    ]
    torch.manual_seed(0)
    network = DenseNetTexture()
    head = torch.nn.Linear(1024, len(classes))
    both = torch.nn.ModuleList([network, head])
    optimiser = torch.optim.Adam(both.parameters(), 1e-3)
    crops, start = [Crops([source], 96) for source in classes], 0
    if file.exists():
        state = torch.load(file, weights_only=True)
        start = state["step"]
        both.load_state_dict(state["networks"])
        optimiser.load_state_dict(state["optimiser"])
    labels = torch.arange(len(classes))
    for step in range(start, steps):
        pixels = np.concatenate([c.train(step, 1) for c in crops])
        features = network(torch.from_numpy(pixels).permute(0, 3, 1, 2).float())
        loss = torch.nn.functional.cross_entropy(head(features), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if (step + 1) % 50 == 0:
            state = {
                "step": step + 1,
                "networks": both.state_dict(),
                "optimiser": optimiser.state_dict(),
            }
            torch.save(state, file)
            print(f"DenseNet-121, step {step + 1} of {steps}: loss {float(loss):.2f}")
    return network.eval().state_dict()


if __name__ == "__main__":
    main()
