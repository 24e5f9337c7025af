"""A tag becomes a release only where it names the version in the package and the changelog knows it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from napari_fish import __version__

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="releases are made on Linux")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a release is checked by, to be changed."""
    for name in ("tools/check-release", "src/napari_fish/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 0.1.0\n", encoding="utf-8")
    return tmp_path


def _check(checkout: Path, tag: str) -> str:
    """Return why a tag may not be released, or nothing."""
    done = subprocess.run(
        [checkout / "tools" / "check-release", tag], capture_output=True, text=True, check=False
    )
    assert bool(done.returncode) == bool(done.stderr)
    return done.stderr


def _set(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_between_releases_no_tag_is_one(checkout: Path) -> None:
    _set(checkout / "src/napari_fish/__init__.py", __version__, "1.2.3.dev0")
    assert "between releases" in _check(checkout, "v1.2.3.dev0")


def test_tag_package_and_changelog_must_name_one_version(checkout: Path) -> None:
    _set(checkout / "src/napari_fish/__init__.py", __version__, "1.2.3")
    assert 'no section "## 1.2.3"' in _check(checkout, "v1.2.3")
    _set(checkout / "CHANGELOG.md", "## Unreleased", "## 1.2.3")
    assert _check(checkout, "v1.2.3") == ""
    for tag in ("1.2.3", "v1.2.4", "v1.2.30"):
        assert "the package is 1.2.3" in _check(checkout, tag)


def test_the_version_is_one_that_package_indexes_take() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?(\.dev\d+)?", __version__)
