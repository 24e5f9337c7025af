"""Draw who imports whom: ``python docs/make_import_graph.py`` writes ``docs/images/rooms.svg``.

Rooms stand in the order in which data walks through them, the lowest first; a line goes from a room down to one it imports
from, as thick as the number of imports. ``--check`` writes nothing and ends with 1 where the picture is not of this source.
"""

from __future__ import annotations

import argparse
import math
import tomllib
from collections import Counter
from pathlib import Path

import grimp

HERE = Path(__file__).parent
PICTURE = HERE / "images" / "rooms.svg"
PACKAGE = HERE.parent / "src" / "napari_fish"
BASE = "names, errors, …"
"""The modules on which every room stands, as one."""
_STEP, _TOP, _LEFT, _WIDTH, _HEIGHT = 46, 24, 330, 130, 28


def rooms() -> list[str]:
    """Return the rooms from the first to the last, as the import contract lists them."""
    settings = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    names = [layer.removeprefix("napari_fish.") for layer in contract["layers"]]
    return [BASE, *reversed([name for name in names if (PACKAGE / name).is_dir()])]


def imports() -> Counter[tuple[str, str]]:
    """Return how many modules of one room import a module of another, for each pair of rooms."""
    known = set(rooms())

    def room(module: str) -> str | None:
        first = module.split(".")[1] if "." in module else ""
        if first in known:
            return first
        return BASE if first and first != "__main__" else None

    graph = grimp.build_graph("napari_fish", exclude_type_checking_imports=True, cache_dir=None)
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = room(module), room(imported)
            if pair[0] and pair[1] and pair[0] != pair[1]:
                found[pair[0], pair[1]] += 1
    return found


def _line(upper: int, lower: int, number: int, count: int) -> str:
    """Draw an arc from a room to one above it in the picture: to its right where they are neighbours or near."""
    y1, y2 = (_TOP + _STEP * place + _HEIGHT / 2 for place in (upper, lower))
    side = 1 if (upper - lower) % 2 else -1
    x = _LEFT + (_WIDTH if side > 0 else 0)
    bend = x + side * (26 + 22 * (upper - lower))
    width = 0.8 + math.log2(number) / 1.6
    path = f"M {x} {y1:.0f} C {bend} {y1:.0f}, {bend} {y2:.0f}, {x} {y2:.0f}"
    colour = f"hsl({360 * upper // count}, 55%, 45%)"
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:.1f}" stroke-opacity="0.75"/>'
    )


def picture() -> str:
    """Return the drawing as SVG."""
    names, counts = rooms(), imports()
    height = 2 * _TOP + _STEP * len(names) - (_STEP - _HEIGHT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * _LEFT + _WIDTH} {height}" font-family="sans-serif" font-size="14">',
        "<title>Rooms of napari-fish and how many imports lead from each to those above it</title>",
        f'<rect width="{2 * _LEFT + _WIDTH}" height="{height}" fill="white"/>',
    ]
    for (upper, lower), number in sorted(counts.items()):
        tip = f"<title>{upper} imports {lower}: {number}</title>"
        arc = _line(names.index(upper), names.index(lower), number, len(names))
        parts.append(f"<g>{tip}{arc}</g>")
    for place, name in enumerate(names):
        y = _TOP + _STEP * place
        parts.append(
            f'<rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="#f4f4f8" stroke="#555"/>'
            f'<text x="{_LEFT + _WIDTH // 2}" y="{y + 19}" text-anchor="middle" fill="#222">{name}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    """Write the picture, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the picture is old")
    if not parser.parse_args().check:
        PICTURE.write_text(picture(), encoding="utf-8")
    elif PICTURE.read_text(encoding="utf-8") != picture():
        raise SystemExit(f"{PICTURE.name} is old: run python docs/make_import_graph.py")


if __name__ == "__main__":
    main()
