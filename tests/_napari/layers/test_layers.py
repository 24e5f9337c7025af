"""The slide behind any layer, whoever opened it."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import tifffile
from napari.components import ViewerModel
from napari.layers import Image, Points
from napari.layers._layer_actions import _duplicate_layer
from numpy.typing import NDArray

from napari_fish import open_slide
from napari_fish._napari.layers.slide_layers import slide_of
from napari_fish._napari.reader.reader import PLUGIN
from napari_fish.errors import SlideError
from napari_fish.slides import Slide
from tests.slides.conftest import MPP, make_scene, shrink, write_ome_tiff, write_omezarr, write_tiff

RGB = NDArray[np.uint8]
APERIO = "Aperio Image Library v1\r\n900x700 [0,0 900x700] (128x128) Q=90|AppMag = 20|MPP = 0.4990"


def planar_ome_tiff(path: Path, scene: RGB) -> Path:
    """Write an RGB OME-TIFF as bioformats does: one plane for each colour."""
    planes = np.moveaxis(scene, 2, 0)
    about = {"axes": "CYX", "PhysicalSizeX": MPP, "PhysicalSizeY": MPP}
    about |= {"PhysicalSizeXUnit": "µm", "PhysicalSizeYUnit": "µm"}
    with tifffile.TiffWriter(path, ome=True) as tiff:
        tiff.write(planes, tile=(128, 128), subifds=1, photometric="minisblack", metadata=about)
        half = np.moveaxis(shrink(scene, 2), 2, 0)
        tiff.write(half, tile=(128, 128), subfiletype=1, photometric="minisblack")
    return path


def svs(path: Path, scene: RGB) -> Path:
    """Write a slide that OpenSlide takes for Aperio's."""
    return write_tiff(path, scene, 1, description=APERIO, compression="jpeg")


def shows(slide: Slide, scene: RGB, tolerance: float = 0.0) -> bool:
    """Whether a slide reads as the scene, in a place where nothing is symmetric."""
    assert slide.dimensions == (scene.shape[1], scene.shape[0])
    part = slide.read_level(0, 500, 330, 160, 170).astype(float)
    return bool(np.abs(part - scene[330:500, 500:660]).mean() <= tolerance)


CASES = {
    "ours, pyramid": (write_tiff, "a.tif", PLUGIN, MPP, "resolution", 1),
    "ours, ome-zarr": (write_omezarr, "a.zarr", PLUGIN, MPP, "file", 1),
    "napari-wsi, svs": (svs, "a.svs", "napari-wsi", 0.499, "file", 1),
    "napari-tiff, svs": (svs, "a.svs", "napari-tiff", 0.499, "file", 1),
    "napari, svs": (svs, "a.svs", "napari", 0.499, "file", 1),
    "napari-tiff, pyramid": (write_tiff, "a.tif", "napari-tiff", MPP, "resolution", 1),
    "napari, pyramid": (write_tiff, "a.tif", "napari", MPP, "resolution", 1),
    "napari-tiff, planar ome-tiff": (planar_ome_tiff, "a.ome.tif", "napari-tiff", MPP, "file", 3),
    "napari, planar ome-tiff": (planar_ome_tiff, "a.ome.tif", "napari", MPP, "file", 1),
    "napari-ome-zarr 0.4": (write_omezarr, "a.zarr", "napari-ome-zarr", MPP, "file", 3),
    "napari-ome-zarr 0.5": (
        lambda p, i: write_omezarr(p, i, "0.5", axes="cyx"),
        "a.zarr",
        "napari-ome-zarr",
        MPP,
        "file",
        3,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_slide_behind_a_layer_by_any_reader_is_found_with_its_pixel_size(
    case: str, tmp_path: Path, scene: RGB, model: ViewerModel
) -> None:
    write, name, plugin, mpp, source, count = CASES[case]
    layers = model.open(write(tmp_path / name, scene), plugin=plugin)
    assert len(layers) == count
    for layer in layers:
        with slide_of(layer, model.layers) as slide:
            assert slide.path == tmp_path / name
            assert slide.mpp == pytest.approx(mpp, rel=1e-4)
            assert slide.mpp_source == source
            assert shows(slide, scene, tolerance=6 if name.endswith(".svs") else 0)


def test_the_first_series_may_be_the_label_and_is_known_as_such(
    tmp_path: Path, scene: RGB, model: ViewerModel
) -> None:
    path = write_ome_tiff(tmp_path / "a.ome.tif", scene)
    (layer,) = model.open(path, plugin="napari-tiff")
    assert layer.data.shape[:2] == (40, 60)
    with slide_of(layer) as slide:
        assert (slide.kind, slide.dimensions) == ("label", (60, 40))


REAL = [
    ("cmu-1-small-region.svs", "napari-wsi", 0.499),
    ("cmu-1-small-region.svs", "napari-tiff", 0.499),
    ("cmu-1-small-region.ome.tiff", "napari-tiff", 0.499),
    ("cmu-1-small-region.ome.tiff", "napari", 0.499),
    ("cmu-1-small-region.ome.zarr", "napari-ome-zarr", 0.499),
    ("cmu-1-small-region.jpeg.tiff", "napari-tiff", None),
    ("cmu-1-small-region.svs", "napari", 0.499),
    ("prostate-pyramid.tiff", "napari-tiff", None),
    ("tcga-cr-7395.svs", "napari-tiff", None),
    ("tcga-cr-7395.svs", "napari-wsi", None),
    ("tcga-du-6399.svs", "napari-wsi", 0.2457),
]


@pytest.mark.parametrize(("name", "plugin", "mpp"), REAL, ids=lambda v: str(v))
def test_the_slide_behind_a_layer_of_real_data_is_found(
    name: str, plugin: str, mpp: float | None, real_data: Path, model: ViewerModel
) -> None:
    layers = model.open(real_data / "slides" / name, plugin=plugin, visible=False)
    with open_slide(real_data / "slides" / name) as expected, slide_of(layers[0], model.layers) as slide:
        assert slide.mpp == (pytest.approx(mpp) if mpp else None)
        assert slide.content_hash == expected.content_hash
        x, y = (n // 2 for n in expected.dimensions)
        part = slide.read_level(0, x, y, 200, 200)
        np.testing.assert_array_equal(part, expected.read_level(0, x, y, 200, 200))
        if layers[0].rgb:
            level = layers[0].data[0] if layers[0].multiscale else layers[0].data
            shown = np.asarray(level[y : y + 200, x : x + 200])[..., :3].astype(float)
            assert np.abs(shown - part).mean() < 8


def test_the_macro_image_of_an_ome_zarr_is_never_taken_for_the_slide(
    real_data: Path, model: ViewerModel
) -> None:
    layers = model.open(
        real_data / "slides" / "cmu-1-small-region.ome.zarr", plugin="napari-ome-zarr", visible=False
    )
    found = {layer.name: slide_of(layer, model.layers) for layer in layers}
    # Channels of the slide itself are called by their number, or by "image" and their number, as the plugin's version has it.
    kinds = {name.removeprefix("image: "): slide.kind for name, slide in found.items()}
    assert kinds == {
        f"{start}Channel {number}": kind
        for start, kind in (("", "slide"), ("macro image: ", "macro"), ("label image: ", "label"))
        for number in range(3)
    }
    for slide in found.values():
        slide.close()


def test_an_absurd_scale_of_a_layer_is_noted_and_not_believed(
    tmp_path: Path, scene: RGB, model: ViewerModel
) -> None:
    path = write_tiff(tmp_path / "a.tif", scene, resolution=(10, 10))
    (layer,) = model.open(path, plugin="napari-tiff")
    assert layer.scale[0] == pytest.approx(1000)
    with slide_of(layer) as slide:
        assert slide.mpp is None
        assert any("the layer says 1000 x 1000 µm/px" in note for note in slide.notes)


@pytest.mark.parametrize(
    ("scale", "units"), [(0.33, "µm"), (0.00033, "mm"), (330, "nm"), (3.3e-7, "m"), (0.33, "micron")]
)
def test_a_scale_that_someone_gave_the_layer_in_any_length_wins_over_the_file(
    scale: float, units: str, slide_path: Path, model: ViewerModel
) -> None:
    (layer,) = model.open(slide_path, plugin="napari", scale=(scale, scale), units=(units, units))
    with slide_of(layer) as slide:
        assert slide.mpp == pytest.approx(0.33) and slide.mpp_source == "user"


def test_a_scale_in_an_affine_counts_and_a_scale_in_pixels_does_not(
    slide_path: Path, model: ViewerModel
) -> None:
    turned = np.array([[0, -0.4, 3], [0.4, 0, 5], [0, 0, 1]])
    (layer,) = model.open(slide_path, plugin="napari", affine=turned, units=("µm", "µm"))
    with slide_of(layer) as slide:
        assert slide.mpp == pytest.approx(0.4)
    (layer,) = model.open(slide_path, plugin="napari", scale=(4, 4))
    with slide_of(layer) as slide:
        assert slide.mpp == MPP


@pytest.mark.parametrize("plugin", [PLUGIN, "napari", "napari-tiff"])
def test_a_duplicate_leads_to_the_same_slide(plugin: str, slide_path: Path, model: ViewerModel) -> None:
    (layer,) = model.open(slide_path, plugin=plugin)
    model.layers.selection = {layer}
    _duplicate_layer(model.layers)
    copy = model.layers[1]
    assert copy.source.path is None
    with slide_of(copy) as slide:
        assert slide.path == slide_path and slide.mpp == MPP


def test_a_duplicate_whose_original_is_gone_is_its_own_pixels(
    slide_path: Path, scene: RGB, model: ViewerModel
) -> None:
    (layer,) = model.open(slide_path, plugin="napari-tiff")
    model.layers.selection = {layer}
    _duplicate_layer(model.layers)
    model.layers.remove(layer)
    del layer
    gc.collect()
    assert model.layers[0].source.parent() is None
    with slide_of(model.layers[0]) as slide:
        assert slide.backend == "layer" and slide.mpp == pytest.approx(MPP)
        assert len(slide.level_dimensions) == 3
        assert shows(slide, scene)


def test_a_cropped_layer_is_its_own_pixels_not_the_whole_file(
    slide_path: Path, scene: RGB, model: ViewerModel
) -> None:
    (layer,) = model.open(slide_path, plugin="napari")
    layer.data = layer.data[100:300, 200:500]
    with slide_of(layer) as slide:
        assert slide.dimensions == (300, 200) and slide.mpp is None
        np.testing.assert_array_equal(slide.read_level(0, 0, 0, 300, 200), scene[100:300, 200:500])


def test_a_layer_that_shows_a_coarser_level_leads_to_the_whole_slide(
    slide_path: Path, scene: RGB, model: ViewerModel
) -> None:
    (layer,) = model.open(slide_path, plugin="napari")
    layer.data = shrink(scene, 2)
    layer.units, layer.scale = ("µm", "µm"), (1.2, 1.2)
    with slide_of(layer) as slide:
        assert slide.dimensions == (900, 700) and slide.mpp == pytest.approx(0.6)


def arrays_of(scene: RGB) -> dict[str, Any]:
    alpha = np.dstack([scene, np.full(scene.shape[:2], 255, np.uint8)])
    return {
        "array": scene,
        "rgba": alpha,
        "dask": da.from_array(scene, chunks=(200, 200, 3)),
        "multiscale dask": [da.from_array(a, chunks=200) for a in (scene, shrink(scene, 2))],
        "float": scene.astype(np.float32) / 255,
        "16 bit": scene.astype(np.uint16) * 257,
    }


@pytest.mark.parametrize("kind", arrays_of(make_scene(30, 40)))
def test_a_layer_without_a_file_is_a_slide_of_its_pixels(kind: str, scene: RGB) -> None:
    layer = Image(arrays_of(scene)[kind], rgb=True, scale=(0.25, 0.25), units=("µm", "µm"), name="pasted")
    with slide_of(layer) as slide:
        assert (slide.mpp, slide.mpp_source, slide.path) == (0.25, "user", Path("pasted"))
        assert shows(slide, scene)
        again = slide_of(layer)
        assert slide.content_hash == again.content_hash
        small = slide.read(100, 60, 90, 70, mpp=1.0)
    whole = scene[60:340, 100:460].reshape(70, 4, 90, 4, 3).mean((1, 3))
    np.testing.assert_allclose(small.astype(float), whole, atol=2)


def test_red_green_and_blue_layers_of_a_file_we_cannot_open_are_put_together(
    scene: RGB, model: ViewerModel, tmp_path: Path
) -> None:
    path = planar_ome_tiff(tmp_path / "a.ome.tif", scene)
    layers = model.open(path, plugin="napari-tiff")
    path.rename(tmp_path / "gone.ome.tif")
    for layer, colour in zip(layers, ("green", "blue", "red"), strict=True):
        layer.colormap = colour
    with slide_of(layers[1], model.layers) as slide:
        assert slide.backend == "layer" and slide.mpp == MPP
        assert shows(slide, scene[..., [2, 0, 1]])
    with slide_of(layers[1], [layers[1]]) as slide:
        assert shows(slide, scene[..., [1, 1, 1]])


def test_a_layer_that_is_no_image_is_refused_with_a_remedy() -> None:
    with pytest.raises(SlideError, match=r"'dots' is no image\. Choose"):
        slide_of(Points(np.zeros((1, 2)), name="dots"))
