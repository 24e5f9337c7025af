"""Pages name files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
_MADE = {"benchmarks/.cache"}
"""What is there only after somebody ran something."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_of_the_project_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"\b((?:src|tests|benchmarks|docs|recipes|tools)/[\w./-]*\w)", text)) - _MADE
    rooms = {f"src/napari_fish/{name}" for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text)}
    missing = {name for name in named if not (ROOT / name).exists()}
    missing |= {name for name in rooms if not (ROOT / name).exists() and not (ROOT / name[16:]).exists()}
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w./-]+\.(?:md|png|gif|svg|html))(?:#[\w-]+)?\)", text)
    beside = ROOT if page.name == "developing.md" else page.parent
    assert not [link for link in links if not (beside / link).exists()]
