"""The smallest archive that can be searched: four demo slides of two diagnoses, a patch or two each."""

from __future__ import annotations

from pathlib import Path

from napari_fish.database import build
from napari_fish.slides.demo import SITE_OF, DemoSpec, write_demo_slide

SIZE_UM = (800.0, 700.0)
DIAGNOSES = {"a": "lymphoma", "b": "lymphoma", "c": "sarcoma", "d": "sarcoma"}


def build_archive(folder: Path) -> None:
    """Write slides/ and small.fish into a folder."""
    slides = folder / "slides"
    slides.mkdir(parents=True)
    rows = ["slide,patient,site,diagnosis"]
    for seed, (name, diagnosis) in enumerate(DIAGNOSES.items(), 1):
        spec = DemoSpec(name, f"patient {name}", SITE_OF[diagnosis], diagnosis, seed, *SIZE_UM)
        write_demo_slide(spec, slides / f"{name}.tif")
        rows.append(f"{name},{spec.patient},{spec.site},{diagnosis}")
    (slides / "labels.csv").write_text("\n".join(rows) + "\n")
    build(slides, folder / "small.fish", slides / "labels.csv", device="cpu").close()
