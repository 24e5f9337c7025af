"""How fast patches are encoded, against a plain loop over the paper's pair of networks, and how well.

Speed: the same patches go, turn by turn, through a plain fp32 loop over the paper's pair, through
`fish-paper` and through `fish-lite`. The paper's pair has weights that were trained, if only for
minutes (no published ones can be had offline): codes of random networks are not like those of trained
ones. Retrieval: see encode_retrieval.py.
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
from napari_fish.encode.barcode import unpack
from napari_fish.encode.card import TextureSpec
from napari_fish.encode.checkpoint import paper_card
from napari_fish.encode.encoder import Encoder
from napari_fish.encode.keys import semantic_order
from napari_fish.encode.plan import PLAIN
from napari_fish.encode.sources import Crops, TissueSource
from napari_fish.encode.train import train_vqvae
from napari_fish.encode.trainparams import VQTrainParams
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
    from napari_fish.encode.plan import _made_up_tissue

    return np.concatenate([_made_up_tissue(1024)] * count)


def trained_paper_pair(steps: int = 120) -> Bundle:
    """Return the paper's networks, trained for some minutes on tissue; kept for the next run."""
    sources = [TissueSource(DATA / "tissue" / "train" / name, mpp) for name, mpp in SOURCES if DATA.is_dir()]
    params = VQTrainParams(
        crop=64, batch=8, steps=steps, check_every=steps, decay=True, patience=0, restart_after=20
    )
    name = hashlib.sha256(repr((params, SOURCES)).encode()).hexdigest()[:12]
    model = train_vqvae(sources, CACHE / f"vqvae-{name}", params)
    order = semantic_order(model.codebook.embedding.weight.detach().numpy())
    texture = CACHE / f"densenet-{name}.pt"
    if not texture.exists():
        torch.save(trained_densenet(sources, steps), texture)
    tensors = {f"vqvae.{k}": v for k, v in model.state_dict().items() if v.dim()}
    tensors |= {f"texture.{k}": v for k, v in torch.load(texture, weights_only=True).items()}
    return Bundle(paper_card(256, order).renamed(texture=TextureSpec("densenet121", "bundle")), tensors)


def trained_densenet(sources: list[TissueSource], steps: int) -> dict[str, torch.Tensor]:
    """Return DenseNet-121 after it has learned to tell the sources' tissue apart."""
    from napari_fish.encode.densenet import DenseNetTexture

    torch.manual_seed(0)
    network = DenseNetTexture()
    head = torch.nn.Linear(1024, len(sources))
    crops = [Crops([source], 96) for source in sources]
    optimiser = torch.optim.Adam([*network.parameters(), *head.parameters()], 1e-3)
    labels = torch.arange(len(sources)).repeat_interleave(4)
    for step in range(steps):
        pixels = np.concatenate([c.train(4 * step, 4) for c in crops])
        features = network(torch.from_numpy(pixels).permute(0, 3, 1, 2).float())
        loss = torch.nn.functional.cross_entropy(head(features), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network.eval().state_dict()


if __name__ == "__main__":
    main()
