"""Demo slides in the *Open Sample* menu."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari.components import ViewerModel
from npe2 import PluginManager, PluginManifest

from napari_fish._napari.reader import samples
from napari_fish._napari.reader.reader import METADATA_KEY, PLUGIN
from napari_fish.errors import SlideError
from napari_fish.slides.demo import DIAGNOSES, DemoSpec


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the demo slides here, and draw them small."""
    monkeypatch.setattr(samples, "user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr(samples, "SIZE_UM", (400.0, 300.0))
    return tmp_path


def test_a_sample_is_a_stained_slide_in_micrometres(cache: Path, model: ViewerModel) -> None:
    (layer,) = model.open_sample(PLUGIN, "adenocarcinoma")
    assert layer.name == "demo adenocarcinoma" and layer.rgb and layer.multiscale
    np.testing.assert_allclose(layer.scale, 0.5)
    assert Path(layer.metadata[METADATA_KEY]["path"]).is_relative_to(cache)
    pixels = np.asarray(layer.data[0]).reshape(-1, 3)
    stained = pixels[pixels.min(1) < 200]
    assert len(stained) / len(pixels) > 0.1 and stained[:, 0].mean() > stained[:, 1].mean()


def test_a_sample_is_drawn_once_and_found_the_next_time(
    cache: Path, model: ViewerModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[DemoSpec] = []
    original = samples.write_demo_slide

    def counting(spec: DemoSpec, path: Path) -> Path:
        drawn.append(spec)
        return original(spec, path)

    monkeypatch.setattr(samples, "write_demo_slide", counting)
    for _ in range(2):
        model.open_sample(PLUGIN, "sarcoma")
    assert [spec.diagnosis for spec in drawn] == ["sarcoma"]
    assert len(list(cache.rglob("*.tif"))) == 1


def test_every_demo_diagnosis_is_in_the_menu_and_has_a_command() -> None:
    manifest = PluginManager.instance().get_manifest(PLUGIN)
    keys = {sample.key for sample in manifest.contributions.sample_data}
    assert keys == {diagnosis.replace(" ", "-") for diagnosis in DIAGNOSES}
    for diagnosis in DIAGNOSES:
        assert callable(getattr(samples, diagnosis.replace(" ", "_")))


def test_the_manifest_is_valid_and_all_it_names_can_be_imported() -> None:
    manifest = PluginManifest.from_distribution(PLUGIN)
    manifest.validate_imports()
    assert manifest.display_name == "FISH histology search"


def test_where_the_cache_cannot_be_written_a_temporary_folder_serves(
    tmp_path: Path, model: ViewerModel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "blocked"
    blocked.touch()
    monkeypatch.setattr(samples, "user_cache_path", lambda name: blocked / name)
    monkeypatch.setattr(samples.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    (layer,) = model.open_sample(PLUGIN, "lymphoma")
    assert Path(layer.metadata[METADATA_KEY]["path"]).is_relative_to(tmp_path / "temporary")


def test_in_a_viewer_a_sample_is_drawn_beside_it_and_what_goes_wrong_is_told(
    make_viewer: Callable[..., Any], cache: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer, threads = make_viewer(), []
    original = samples.write_demo_slide

    def noting(spec: DemoSpec, path: Path) -> Path:
        threads.append(threading.current_thread())
        return original(spec, path)

    monkeypatch.setattr(samples, "write_demo_slide", noting)
    viewer.__wrapped__.open_sample(PLUGIN, "sarcoma")
    assert [layer.name for layer in viewer.layers] == ["demo sarcoma"]
    assert threads[0] is not threading.main_thread()
    assert any("Drawing demo sarcoma" in message for message in told)

    def failing(spec: DemoSpec, path: Path) -> Path:
        raise OSError("no room")

    monkeypatch.setattr(samples, "write_demo_slide", failing)
    monkeypatch.setattr(samples.tempfile, "gettempdir", lambda: str(cache / "temporary"))
    with pytest.raises(SlideError, match=r"the demo slides cannot be kept there \(no room\)"):
        viewer.__wrapped__.open_sample(PLUGIN, "lymphoma")
