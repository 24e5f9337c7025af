"""Files of the checkout that the documentation names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"`(?:python )?((?:tests|benchmarks)/[\w/]+(?:\.py|/))")


@pytest.mark.parametrize(
    "page", sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
)
def test_every_test_and_benchmark_that_a_page_names_is_there(page: str) -> None:
    named = set(_NAMED.findall((ROOT / page).read_text()))
    assert sorted(name for name in named if not (ROOT / name).exists()) == []
