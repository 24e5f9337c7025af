"""Real data for the tests that want it, and small slides made on the spot for all others."""

from __future__ import annotations

import os
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
