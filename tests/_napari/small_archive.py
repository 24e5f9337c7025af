"""A small archive of real demo slides, with two pixel sizes, made once a run of the tests."""

from __future__ import annotations

from pathlib import Path

from napari_fish.archive import Database, build
from napari_fish.slides.demo import SITE_OF, DemoSpec, write_demo_slide

SIZE_UM = (1300.0, 1100.0)
KINDS = (
    ("a", "lymphoma", 0.5),
    ("b", "lymphoma", 0.25),
    ("c", "sarcoma", 0.5),
    ("d", "sarcoma", 0.5),
)


def write_slides(folder: Path, kinds: tuple[tuple[str, str, float], ...] = KINDS) -> Path:
    """Write slides and their labels into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["slide,patient,site,diagnosis"]
    for seed, (name, diagnosis, mpp) in enumerate(kinds, 1):
        site = SITE_OF[diagnosis]
        spec = DemoSpec(name, f"patient {name}", site, diagnosis, seed, *SIZE_UM, mpp=mpp)
        write_demo_slide(spec, folder / f"{name}.tif")
        rows.append(f"{name}.tif,patient {name},{site},{diagnosis}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder


def build_archive(folder: Path) -> Database:
    """Write slides and build a database of them."""
    slides = write_slides(folder / "slides")
    return build(slides, folder / "small.fish", slides / "labels.csv", device="cpu")
