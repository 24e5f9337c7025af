"""Make a golden database, or the answers that databases of all formats must give.

``python -m tests.store.golden.make database format-N.tar.xz`` builds one with the program it is run in; a format that
changes gets one more file, made before the change, and those that are here are never made again. ``python -m
tests.store.golden.make answers`` asks all of them and writes down what they say: only where an answer was meant to change.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from scipy.ndimage import gaussian_filter
from typer.testing import CliRunner

from napari_fish.cli import app
from napari_fish.database import open_database
from tests.slides.conftest import write_tiff
from tests.tiny import MPP, picture, use_quick_encoder, write_empty_slide

HERE = Path(__file__).parent
#: What is asked: each mode with its own ranking, and each ranking of exact search.
ASKED = (
    *(("mode", name) for name in ("auto", "exact", "clustered", "guided", "released")),
    *(
        ("ranking", name)
        for name in ("fish", "fish-naive", "fish-weighted", "fish-clean", "released", "label-free")
    ),
)
#: Slides, and of what patient, diagnosis and seed each is.
SLIDES = {
    "carcinoma/P00-0 ü.tif": ("P00", "carcinoma", 0),
    "carcinoma/P00-1 ü.tif": ("P00", "carcinoma", 1),
    "lymphoma/P10-0 ü.tif": ("P10", "lymphoma", 100),
    "lymphoma/P11-0 ü.tif": ("P11", "lymphoma", 110),
    "normal/P20-0 ü.tif": ("P20", "normal", 200),
}
ADDED = {"P30-0.tif": ("P30", "normal", 300)}
FIRST, REMOVED = "carcinoma/P00-0 ü.tif", "lymphoma/P10-0 ü.tif"


def make_database(room: Path) -> Path:
    """Build a database that has all one can have: labels, latent codes, slides added, removed and refused."""
    slides, database = room / "Schnitte ü", room / "a.fish"
    lines = ["Slide ID,Case,Organ,Diagnosis,Scanner"]
    for name, (patient, kind, seed) in SLIDES.items():
        _write(slides / name, kind, seed)
        lines.append(f"{name},{patient},{'lymph node' if kind == 'lymphoma' else 'breast'},{kind},GT450")
    (slides / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_empty_slide(slides / "glass.tif")
    _run("build", slides, "-o", database, "--labels", slides / "labels.csv", "--store-codes")
    for name, (_, kind, seed) in ADDED.items():
        _write(slides / "more" / name, kind, seed)
    _run("add", database, slides / "more")
    _run("remove", database, REMOVED)
    return database


def _write(path: Path, kind: str, seed: int) -> None:
    """Write a slide whose pictures are small: tissue without the finest grain."""
    path.parent.mkdir(parents=True, exist_ok=True)
    smooth = gaussian_filter(picture(kind, seed, 420, 420), (1.2, 1.2, 0))
    write_tiff(path, smooth, 2, resolution=(1e4 / MPP, 1e4 / MPP))


def answers(database: Path) -> dict[str, Any]:
    """Ask a database for every slide in every way, and for its digest."""
    known = [
        line["slide"]
        for line in _run("search", database, f"id:{FIRST}", "-k", 99, "--include-patient", "--json")[
            "results"
        ]
    ]
    found: dict[str, Any] = {}
    for option, name in ASKED:
        queries = [f"id:{slide}" for slide in sorted(known)]
        documents = _run("search", database, *queries, f"--{option}", name, "--json")
        found[f"{option} {name}"] = {document["query"]: _short(document) for document in documents}
    with open_database(database) as opened:
        return {"digest": opened.store.digest(), "answers": found}


def _short(document: dict[str, Any]) -> list[Any]:
    """Keep of an answer the slides, their distances, and what matches where: corner of query and hit, distance."""
    return [
        [
            hit["slide"],
            hit["distance"],
            [[*near["query_box"][:2], *near["hit_box"][:2], near["distance"]] for near in hit["matches"]],
        ]
        for hit in document["results"]
    ]


def _run(*arguments: object) -> Any:
    ran = CliRunner().invoke(app, [str(argument) for argument in arguments])
    # 3: a slide was quarantined, which is meant.
    if ran.exit_code not in (0, 3):
        raise SystemExit(f"{arguments}: {ran.stdout}\n{ran.stderr}\n{ran.exception!r}")
    return json.loads(ran.stdout) if "--json" in arguments else None


def pack(folder: Path, archive: Path) -> None:
    """Put a database into one small file, without whose and when."""
    with tarfile.open(archive, "w:xz") as packed:
        packed.add(
            folder,
            folder.name,
            filter=lambda entry: entry.replace(uid=0, gid=0, uname="", gname="", mtime=0, deep=False),
        )


def unpack(archive: Path, room: Path) -> Path:
    """Take a database out of its file."""
    with tarfile.open(archive) as packed:
        packed.extractall(room, filter="data")
    return room / "a.fish"


def main() -> None:
    """Do what is asked for."""
    what, *archive = sys.argv[1:]
    use_quick_encoder()
    with tempfile.TemporaryDirectory() as room:
        if what == "database":
            pack(make_database(Path(room)), Path(archive[0]))
        for packed in HERE.glob("*.tar.xz") if what == "answers" else ():
            found = answers(unpack(packed, Path(room, packed.stem)))
            packed.with_name(f"{packed.name.split('.')[0]}.json").write_text(_lines(found), encoding="utf-8")


def _lines(found: dict[str, Any]) -> str:
    """Write one answer a line, so that it can be seen which one changed."""
    lines = [
        f'"{name}": '
        + (_lines(value).rstrip() if isinstance(value, dict) else json.dumps(value, ensure_ascii=False))
        for name, value in found.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()
