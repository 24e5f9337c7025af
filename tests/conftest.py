"""Real data for the tests that want it, and small slides made on the spot for all others."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

# napari reads these when it is first imported: no test may touch the user's own settings.
os.environ.setdefault("NAPARI_ASYNC", "0")
os.environ.setdefault("NAPARI_ENSURE_PLUGIN_MAIN_THREAD", "1")
os.environ["NAPARI_CONFIG"] = str(Path(tempfile.mkdtemp(prefix="napari-fish-")) / "settings.yaml")

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real slides and tissue; tests that need it are skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip("REAL DATA MISSING: ../shared/data is not beside this checkout")
    return DATA


@pytest.fixture(scope="session")
def installed_plugins() -> None:
    """Let napari know all readers and widgets that are installed; it takes them only once."""
    from napari.plugins import _initialize_plugins

    _initialize_plugins()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build in this process, where what a test changes has its effect."""
    from napari_fish.building import build as building
    from napari_fish.building.runner import RunnerHere

    monkeypatch.setattr(building, "RunnerProcesses", lambda chosen, *_: RunnerHere(chosen.load))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, here: None) -> None:
    """Build and search without networks, in this process."""
    from napari_fish.building import settings
    from tests.tiny import quick_card, quick_encoder

    monkeypatch.setattr(settings, "load_encoder", quick_encoder)
    monkeypatch.setattr(settings, "card_of", quick_card)


@pytest.fixture(scope="session")
def tiny_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tiny slides in ``Schnitte ü`` and the database ``a b.fish`` made of them; not to be changed."""
    from napari_fish.building.build import build
    from tests.tiny import QuickEncoder, write_archive

    home = tmp_path_factory.mktemp("archive")
    slides = write_archive(home / "Schnitte ü")
    build(slides, home / "a b.fish", slides / "labels.csv", encoder=QuickEncoder())
    return home


@pytest.fixture
def home(tiny_home: Path, tmp_path: Path, quick: None) -> Path:
    """A copy of the folder with slides and database, to be changed."""
    return Path(shutil.copytree(tiny_home, tmp_path / "home"))
