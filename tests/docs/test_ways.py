"""The two ways through the house lead through modules that are there, and are counted right."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOP = re.compile(r"^\| `([\w/]+\.py)` \| (\*\*)?`([\w/]+\.py)`(?:\*\*)? \|", re.MULTILINE)


def _ways() -> list[str]:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return page.partition("## Two ways")[2].split("### ")[1:]


def test_every_hop_is_between_modules_that_are_there_and_begins_where_the_way_has_been() -> None:
    for way in _ways():
        hops = HOP.findall(way)
        been = {hops[0][0]}
        for start, _, end in hops:
            assert start in been, f"nothing leads to {start}"
            been.add(end)
        assert not [name for name in been if not (ROOT / "src" / "napari_fish" / name).is_file()]


def test_hops_and_changes_of_room_are_counted() -> None:
    ways = _ways()
    assert len(ways) == 2
    for way in ways:
        hops = HOP.findall(way)
        into = [bool(bold) for _, bold, _ in hops]
        assert into == [start.split("/")[0] != end.split("/")[0] for start, _, end in hops]
        assert f"{len(hops)} hops, {sum(into)} of them into another room." in way
        assert len(hops) == len({(start, end) for start, _, end in hops})
