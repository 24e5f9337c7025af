"""What the reader takes, what it leaves to others, and the layer it makes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from napari.components import ViewerModel
from numpy.typing import NDArray

from napari_fish import open_slide
from napari_fish._napari.reader import arrays
from napari_fish._napari.reader.reader import METADATA_KEY, PLUGIN, get_reader, lazy_slides, slide_layer
from napari_fish._napari.reader.recognise import PEEKED_ENTRIES
from napari_fish.errors import SlideError
from napari_fish.slides.base import PyramidSlide
from tests.slides.conftest import (
    MPP,
    make_scene,
    write_image,
    write_ome_tiff,
    write_omezarr,
    write_tiff,
    zipped,
)

RGB = NDArray[np.uint8]

TAKEN = {
    "pyramid.tif": write_tiff,
    "UPPER.SVS": write_tiff,
    "mit Leerzeichen und ä.tiff": write_tiff,
    "scan.ome.tif": write_ome_tiff,
    "old.ome.zarr": write_omezarr,
    "new.zarr": lambda p, i: write_omezarr(p, i, "0.5", axes="cyx"),
    "zipped.zarr": lambda p, i: zipped(write_omezarr(p, i)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_slide_becomes_one_lazy_multiscale_rgb_layer_in_micrometres(
    name: str, tmp_path: Path, scene: RGB, model: ViewerModel
) -> None:
    path = TAKEN[name](tmp_path / name, scene)
    (layer,) = model.open(path, plugin=PLUGIN)
    assert layer.rgb and layer.multiscale
    assert [str(u) for u in layer.units] == ["micrometer", "micrometer"]
    np.testing.assert_allclose(layer.scale, MPP)
    assert layer.data[0].shape == scene.shape and len(layer.data) == 3
    np.testing.assert_array_equal(layer.data[0][40:150, 100:260], scene[40:150, 100:260])
    half = scene[:700, :900].reshape(350, 2, 450, 2, 3).mean((1, 3))
    np.testing.assert_allclose(np.asarray(layer.data[1], float), half, atol=1)


def test_the_layer_says_which_slide_it_is(slide_path: Path, model: ViewerModel) -> None:
    (layer,) = model.open(slide_path, plugin=PLUGIN)
    about = layer.metadata[METADATA_KEY]
    with open_slide(slide_path) as slide:
        assert about["path"] == str(slide_path)
        assert about["content_hash"] == slide.content_hash
        assert (about["series"], about["mpp"], about["mpp_source"]) == (0, MPP, "resolution")
    assert layer.name == "scan"


def test_opening_reads_no_pixels_and_a_hidden_layer_none_either(
    slide_path: Path, model: ViewerModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = PyramidSlide.read_level

    def counting(self: PyramidSlide, level: int, *region: int) -> RGB:
        read.append(region[2] * region[3])
        return original(self, level, *region)

    monkeypatch.setattr(PyramidSlide, "read_level", counting)
    (layer,) = model.open(slide_path, plugin=PLUGIN, visible=False)
    assert sum(read) == 0
    layer.visible = True
    rows, columns, _ = layer.data[-1].shape
    assert 0 < sum(read) <= 2 * rows * columns


def test_an_unknown_pixel_size_is_shown_in_pixels_and_said(
    tmp_path: Path, scene: RGB, model: ViewerModel, told: list[str]
) -> None:
    path = write_tiff(tmp_path / "scan.tif", scene, resolution=(1, 1), resolutionunit="NONE")
    (layer,) = model.open(path, plugin=PLUGIN)
    assert [str(u) for u in layer.units] == ["pixel", "pixel"] and tuple(layer.scale) == (1, 1)
    assert layer.name == "scan (pixel size unknown)"
    assert layer.metadata[METADATA_KEY]["mpp"] is None
    assert [t for t in told if "size of a pixel is unknown" in t]


def grey_zarr(path: Path, image: RGB) -> Path:
    zarr.save_array(path, image[..., 0])
    return path


DECLINED = {
    "strips.tif": lambda p, i: write_tiff(p, i, 1, tile=None),
    "grey.tif": lambda p, i: write_tiff(p, i[..., 0], photometric="minisblack"),
    "float.tif": lambda p, i: write_tiff(p, i / np.float32(255)),
    "photo.png": write_image,
    "photo.jpg": write_image,
    "no-ome.zarr": grey_zarr,
    "two-channels.zarr": lambda p, i: write_omezarr(p, i[..., :2]),
}


@pytest.mark.parametrize("name", DECLINED)
def test_what_is_no_slide_is_left_to_other_readers(name: str, tmp_path: Path, scene: RGB) -> None:
    assert get_reader(str(DECLINED[name](tmp_path / name, scene))) is None


def test_a_png_called_tif_and_fluorescence_are_left_to_other_readers(tmp_path: Path, scene: RGB) -> None:
    write_image(tmp_path / "a.png", scene).rename(tmp_path / "a.tif")
    assert get_reader(str(tmp_path / "a.tif")) is None
    stack = np.zeros((4, 300, 300), np.uint16)
    tifffile.imwrite(tmp_path / "f.ome.tif", stack, tile=(128, 128), metadata={"axes": "CYX"})
    assert get_reader(str(tmp_path / "f.ome.tif")) is None


def test_one_path_in_a_list_is_taken_and_a_stack_is_not(slide_path: Path) -> None:
    assert get_reader([str(slide_path)]) is not None
    assert get_reader([str(slide_path)] * 2) is None


def test_a_folder_with_many_files_is_declined_after_a_look_at_a_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1000):
        (tmp_path / f"{number}.txt").touch()
    looked_at = 0

    @contextmanager
    def counted(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        def each() -> Iterator[os.DirEntry[str]]:
            nonlocal looked_at
            for entry in entries:
                looked_at += 1
                yield entry

        with scandir(path) as entries:
            yield each()

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", counted)
    monkeypatch.setattr(os, "listdir", None)
    assert get_reader(str(tmp_path)) is None
    assert 0 < looked_at <= PEEKED_ENTRIES


def test_a_plain_tiff_is_opened_by_napari_itself_although_we_are_asked_too(
    tmp_path: Path, scene: RGB, model: ViewerModel
) -> None:
    path = write_tiff(tmp_path / "strips.tif", scene, 1, tile=None)
    with pytest.raises(ValueError, match="refused"):
        model.open(path, plugin=PLUGIN)
    (layer,) = model.open(path, plugin="napari")
    np.testing.assert_array_equal(layer.data, scene)


@pytest.mark.parametrize("content", [b"", b"this is text\n" * 20, b"II*\0" + bytes(range(100))])
@pytest.mark.parametrize("name", ["a.svs", "a.tif"])
def test_without_a_viewer_a_damaged_slide_raises_and_names_the_file(
    name: str, content: bytes, tmp_path: Path, model: ViewerModel
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SlideError, match=name):
        model.open(tmp_path / name, plugin=PLUGIN)


@pytest.mark.parametrize("size", [(701, 899), (703, 901), (711, 1023), (1000, 2001)])
def test_napari_sees_every_level_within_half_a_pixel_of_where_the_slide_has_it(
    size: tuple[int, int], tmp_path: Path, model: ViewerModel
) -> None:
    path = write_tiff(tmp_path / "odd.tif", make_scene(*size), levels=4)
    (layer,) = model.open(path, plugin=PLUGIN)
    with open_slide(path) as slide:
        assert _worst_shift(layer, slide) <= 0.5


def test_napari_sees_the_levels_of_real_slides_where_they_are(real_data: Path, model: ViewerModel) -> None:
    for name in ("tcga-du-6399.svs", "tcga-cr-7395.svs", "prostate-pyramid.tiff"):
        (layer,) = model.open(real_data / "slides" / name, plugin=PLUGIN)
        with open_slide(real_data / "slides" / name) as slide:
            assert len(slide.level_downsamples) > 1
            assert _worst_shift(layer, slide) <= 0.5, name


def _worst_shift(layer: Any, slide: Any) -> float:
    """Return how far napari's place of the last pixel is from the slide's, in px of its level."""
    shifts = [0.0]
    for level, downsample in enumerate(slide.level_downsamples):
        last = np.array(layer.data[level].shape[:2])
        factor = layer.downsample_factors[level][:2]
        shifts += list(np.abs(last * factor - last * downsample) / downsample)
    return max(shifts)


INDEXES = [
    np.s_[10:20, 30:50],
    np.s_[...],
    np.s_[5],
    np.s_[-7, 3:9],
    np.s_[::97, ::-101],
    np.s_[699:650:-3, -20:, 1],
    np.s_[..., 2],
    np.s_[:, 4],
    np.s_[50:50, 1:3],
    np.s_[600:9999, 880:2000, ::2],
]


@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_a_level_is_indexed_like_an_array(index: Any, slide_path: Path, scene: RGB) -> None:
    levels, _, _ = slide_layer(open_slide(slide_path))
    np.testing.assert_array_equal(levels[0][index], scene[index])


def test_a_slide_without_a_pyramid_gets_one_computed_on_demand(
    tmp_path: Path, scene: RGB, model: ViewerModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "OVERVIEW_PX", 100)
    monkeypatch.setattr(arrays, "CHUNK", 64)
    (layer,) = model.open(write_tiff(tmp_path / "flat.tif", scene, levels=1), plugin=PLUGIN)
    assert [level.shape for level in layer.data] == [(700, 900, 3), (175, 225, 3), (44, 57, 3)]
    quarter = scene.reshape(175, 4, 225, 4, 3).mean((1, 3))
    np.testing.assert_allclose(layer.data[1][30:150, 10:200].astype(float), quarter[30:150, 10:200], atol=1)
    overview = np.asarray(layer.data[2], float)
    assert np.abs(overview[:-1, :-1].mean((0, 1)) - scene.mean((0, 1))).max() < 3
    assert lazy_slides(layer)


def test_every_readable_real_slide_opens_and_shows_its_pixels(real_data: Path, model: ViewerModel) -> None:
    names = sorted(p.name for p in (real_data / "slides").iterdir() if p.suffix not in (".jpeg", ".md"))
    names.remove("broken.svs")
    for name in names:
        (layer,) = model.open(real_data / "slides" / name, plugin=PLUGIN, visible=False)
        overview = np.asarray(layer.data[-1])
        assert max(overview.shape) <= arrays.OVERVIEW_PX
        assert layer.name.startswith(name.split(".")[0])
        red, green, blue = overview.reshape(-1, 3)[overview.reshape(-1, 3).min(1) < 200].mean(0)
        assert red > green and blue > green, f"{name} is not stained pink and violet"
        model.layers.clear()
    assert len(names) == 11
