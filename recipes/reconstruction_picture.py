"""Write docs/images/fish-lite-reconstruction.png: tissue above, what fish-lite's VQ-VAE makes of it below.

Kidney (MIT) and head and neck (TCGA open access) took no part in training; the skin (CC0) did.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from napari_fish.encode.vqvae import VQVAE, to_network_range
from PIL import Image

from napari_fish.encode import load_bundle
from napari_fish.slides import open_slide

PLACES = (
    ("kidney-glomeruli.svs", 0.25, 500, 900),
    ("tcga-cr-7395.svs", 0.5, 1500, 1200),
    ("cmu-1-small-region.svs", None, 700, 1300),
)
SIDE = 384


def main(data: Path, out: Path) -> None:
    """Cut the tissue out, encode it, decode it."""
    bundle = load_bundle("fish-lite")
    model = VQVAE(bundle.card.width).eval()
    state = {k.removeprefix("vqvae."): v for k, v in bundle.tensors.items() if k.startswith("vqvae.")}
    model.load_state_dict(state, strict=False)
    originals = []
    for name, mpp, x, y in PLACES:
        with open_slide(data / "slides" / name, mpp=mpp) as slide:
            originals.append(slide.read(x, y, SIDE, SIDE, 0.5))
    with torch.inference_mode():
        images = to_network_range(torch.from_numpy(np.stack(originals)).permute(0, 3, 1, 2))
        back = model(images)[0].add(1).mul(127.5).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    rows = [np.concatenate(list(row), axis=1) for row in (originals, back)]
    Image.fromarray(np.concatenate(rows)).save(out, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
