"""Every backend shows the same picture."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import tifffile
from numpy.typing import NDArray

from napari_fish.errors import SlideError
from napari_fish.slides import MppSource, Slide, open_slide
from tests.slides.conftest import MPP, SHAPE, make_scene, shrink, write_ome_tiff, write_omezarr, write_tiff

RGB = NDArray[np.uint8]


def test_every_format_gives_back_its_pixels(any_format: Path, scene: RGB) -> None:
    with open_slide(any_format, mpp=MPP) as slide:
        assert isinstance(slide, Slide)
        assert slide.dimensions == (SHAPE[1], SHAPE[0])
        np.testing.assert_allclose(slide.read_level(0, 0, 0, *slide.dimensions), scene, atol=2)


def test_every_format_reads_a_region_across_its_blocks(any_format: Path, scene: RGB) -> None:
    with open_slide(any_format, mpp=MPP) as slide:
        region = slide.read(97, 203, 300, 251, MPP)
    np.testing.assert_allclose(region, scene[203:454, 97:397], atol=2)


def test_every_format_averages_when_it_reads_at_half_the_scale(any_format: Path, scene: RGB) -> None:
    with open_slide(any_format, mpp=MPP) as slide:
        region = slide.read(100, 60, 200, 150, 2 * MPP)
    np.testing.assert_allclose(region, shrink(scene[60:360, 100:500], 2), atol=3)


def test_every_format_is_white_outside_the_slide(any_format: Path, scene: RGB) -> None:
    with open_slide(any_format, mpp=MPP) as slide:
        region = slide.read(-50, -20, 120, 90, MPP)
        beyond = slide.read(5000, 5000, 10, 10, MPP)
    assert (region[:20] == 255).all()
    assert (region[:, :50] == 255).all()
    np.testing.assert_allclose(region[20:, 50:], scene[:70, :70], atol=2)
    assert (beyond == 255).all()


def test_every_format_can_be_read_from_many_threads(any_format: Path, scene: RGB) -> None:
    spots = [(x, y) for x in range(0, 800, 90) for y in range(0, 600, 110)]
    with open_slide(any_format, mpp=MPP) as slide, ThreadPoolExecutor(8) as pool:
        patches = list(pool.map(lambda at: slide.read(*at, 100, 100, MPP), spots))
    for (x, y), patch in zip(spots, patches, strict=True):
        np.testing.assert_allclose(patch, scene[y : y + 100, x : x + 100], atol=2)


def test_a_tiffs_tables_are_not_fetched_beside_a_read_of_another_thread(
    tmp_path: Path, scene: RGB, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tiff(tmp_path / "jpeg.tif", scene, compression="jpeg")
    with open_slide(path, mpp=MPP) as slide:
        file, seek, free = slide._tiff.filehandle, type(slide._tiff.filehandle).seek, []

        def guarded(self: object, *where: int) -> int:
            free.append(not slide._reading.locked())
            return seek(self, *where)

        monkeypatch.setattr(type(file), "seek", guarded)
        for level in range(3):
            slide.read_level(level, 0, 0, 50, 50)
    assert free and not any(free)


def test_every_format_has_a_thumbnail_of_the_whole(any_format: Path, scene: RGB) -> None:
    with open_slide(any_format, mpp=MPP) as slide:
        thumbnail = slide.thumbnail(90)
    assert thumbnail.shape == (70, 90, 3)
    # Sharp edges inside a pixel of a coarser level cannot be told from its average.
    off = np.abs(thumbnail.astype(float) - shrink(scene, 10))
    assert off.mean() < 0.6
    assert np.quantile(off, 0.99) <= 3


def test_a_thumbnail_never_enlarges(any_format: Path) -> None:
    with open_slide(any_format) as slide:
        assert slide.thumbnail(5000).shape == (*SHAPE, 3)


def test_a_closed_slide_says_so(any_format: Path) -> None:
    slide = open_slide(any_format, mpp=MPP)
    slide.close()
    slide.close()
    with pytest.raises(SlideError, match="was closed"):
        slide.read(0, 0, 10, 10, MPP)


def test_every_format_can_be_closed_while_it_is_read(any_format: Path) -> None:
    slide = open_slide(any_format, mpp=MPP)
    seen: list[str] = []

    def read_until_closed() -> None:
        try:
            while True:
                slide.read(100, 100, 200, 200, MPP)
        except SlideError as error:
            seen.append(str(error))

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(read_until_closed)
        time.sleep(0.05)
        slide.close()
    assert len(seen) == 4
    assert all("was closed" in message for message in seen)


def test_a_tiny_slide_under_huge_pixels_is_mostly_white_and_costs_nothing(tmp_path: Path, scene: RGB) -> None:
    with open_slide(write_tiff(tmp_path / "a.tif", scene)) as slide:
        shown = slide.read(0, 0, 3, 2, 1000.0)
        far = slide.read(-1e9, -1e9, 4, 4, 1e9)
    share = 900 * 700 / 2000**2
    expected = scene.mean((0, 1)) * share + 255 * (1 - share)
    np.testing.assert_allclose(shown[0, 0], expected, atol=1)
    assert (shown[:, 1:] == 255).all()
    assert (far >= 254).all()


def test_pages_of_a_pyramid_need_not_say_that_they_are_smaller(tmp_path: Path, scene: RGB) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as tiff:
        for level in range(3):
            image = shrink(scene, 2**level) if level else scene
            tiff.write(image, tile=(128, 128), photometric="rgb", metadata=None)
    with open_slide(path) as slide:
        assert len(slide.level_dimensions) == 3


def test_the_channels_of_an_ome_stack_are_those_of_its_first_plane(tmp_path: Path, scene: RGB) -> None:
    planes = np.moveaxis(scene, 2, 0)
    for axes in ("CZYX", "ZCYX", "CTYX"):
        stack = np.stack([planes, 255 - planes], axis=1 if axes[0] == "C" else 0)
        path = tmp_path / f"{axes}.ome.tif"
        tifffile.imwrite(path, stack, photometric="minisblack", metadata={"axes": axes}, ome=True)
        with open_slide(path) as slide:
            np.testing.assert_array_equal(slide.read_level(0, 0, 0, 900, 700), scene)
            assert "the first is shown" in slide.notes[0]


def test_an_ome_tiff_in_several_files_is_read_from_all_of_them(tmp_path: Path, scene: RGB) -> None:
    uuids = [f"urn:uuid:{i}1111111-1111-1111-1111-111111111111" for i in range(3)]
    blocks = "".join(
        f'<TiffData FirstC="{c}" IFD="0" PlaneCount="1"><UUID FileName="{c}.ome.tif">{u}</UUID></TiffData>'
        for c, u in enumerate(uuids)
    )
    size = 'SizeX="900" SizeY="700" SizeC="3" SizeZ="1" SizeT="1" Type="uint8" DimensionOrder="XYCZT"'
    for c, uuid in enumerate(uuids):
        xml = (
            f'<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="{uuid}">'
            f'<Image ID="Image:0" Name="scan"><Pixels ID="Pixels:0" {size}>{blocks}</Pixels></Image></OME>'
        )
        channel = np.ascontiguousarray(scene[..., c])
        tifffile.imwrite(tmp_path / f"{c}.ome.tif", channel, description=xml, metadata=None)
    with open_slide(tmp_path / "0.ome.tif") as slide:
        np.testing.assert_array_equal(slide.read_level(0, 0, 0, 900, 700), scene)


@pytest.mark.parametrize("name", ["macrophage CD68", "Unlabelled tissue", "slide 1 macrodissected"])
def test_a_slide_may_have_a_name_with_label_or_macro_in_it(tmp_path: Path, name: str, scene: RGB) -> None:
    path = tmp_path / "a.ome.tif"
    tifffile.imwrite(path, scene, photometric="rgb", metadata={"axes": "YXS", "Name": name}, ome=True)
    with open_slide(path) as slide:
        assert (slide.kind, slide.series[0].name) == ("slide", name)


def test_inverted_grey_of_12_bits_is_shown_the_right_way_round(tmp_path: Path, scene: RGB) -> None:
    grey = scene[..., 0].astype(np.uint16) * 16
    path = write_tiff(tmp_path / "a.tif", 4095 - grey, 1, photometric="miniswhite", tile=None)
    with open_slide(path) as slide:
        np.testing.assert_allclose(slide.read_level(0, 0, 0, 900, 700)[..., 0], scene[..., 0], atol=1)


def test_premultiplied_alpha_is_not_multiplied_again(tmp_path: Path, scene: RGB) -> None:
    alpha = np.full((*SHAPE, 1), 128, np.uint8)
    rgba = np.concatenate([(scene * 0.502).astype(np.uint8), alpha], axis=2)
    path = write_tiff(tmp_path / "a.tif", rgba, 1, extrasamples=["assocalpha"], tile=None)
    with open_slide(path) as slide:
        np.testing.assert_allclose(slide.read_level(0, 0, 0, 900, 700), scene * 0.502 + 127, atol=2)


def test_a_png_of_16_bits_keeps_its_greys(tmp_path: Path, scene: RGB) -> None:
    PIL.Image.fromarray(scene[..., 0].astype(np.uint16) * 257).save(tmp_path / "a.png")
    with open_slide(tmp_path / "a.png") as slide:
        np.testing.assert_array_equal(slide.read_level(0, 0, 0, 900, 700)[..., 2], scene[..., 0])


def test_pyramids_are_found_wherever_they_are_kept(tmp_path: Path, scene: RGB) -> None:
    for path in (
        write_tiff(tmp_path / "pages.tif", scene),
        write_tiff(tmp_path / "j2k.tif", scene, compression="jpeg2000"),
        write_ome_tiff(tmp_path / "sub.ome.tif", scene),
        write_omezarr(tmp_path / "a.zarr", scene),
    ):
        with open_slide(path) as slide:
            assert slide.level_dimensions == ((900, 700), (450, 350), (225, 175)), path.name
            np.testing.assert_allclose(slide.level_downsamples, (1, 2, 4))
            np.testing.assert_allclose(slide.read_level(2, 0, 0, 225, 175), shrink(scene, 4), atol=2)


def test_the_scale_is_known_from_each_kind_of_file(tmp_path: Path, scene: RGB) -> None:
    tiff = write_tiff(tmp_path / "a.tif", scene)
    for path, source in (
        (tiff, MppSource.RESOLUTION),
        (write_ome_tiff(tmp_path / "a.ome.tif", scene), MppSource.FILE),
        (write_omezarr(tmp_path / "a.zarr", scene), MppSource.FILE),
        (write_omezarr(tmp_path / "b.zarr", scene, "0.5"), MppSource.FILE),
    ):
        with open_slide(path) as slide:
            assert slide.mpp == pytest.approx(MPP, rel=1e-4)
            assert slide.mpp_source == source
    with open_slide(tiff, mpp=0.25) as slide:
        assert (slide.mpp, slide.mpp_source) == (0.25, MppSource.USER)


def test_a_slide_of_unknown_scale_can_be_looked_at_but_not_read_at_a_scale(
    tmp_path: Path, scene: RGB
) -> None:
    path = write_tiff(tmp_path / "a.tif", scene, resolution=(28.3, 28.3), resolutionunit="INCH")
    with open_slide(path) as slide:
        assert (slide.mpp, slide.mpp_source) == (None, MppSource.UNKNOWN)
        assert "897" in slide.notes[0]
        assert slide.thumbnail(100).shape == (78, 100, 3)
        with pytest.raises(SlideError, match=r"a\.tif.*--mpp"):
            slide.read(0, 0, 10, 10, 0.5)


def test_12_bit_samples_use_the_whole_range(tmp_path: Path, scene: RGB) -> None:
    path = write_tiff(tmp_path / "a.tif", scene.astype(np.uint16) * 16)
    with open_slide(path) as slide:
        np.testing.assert_allclose(slide.read_level(0, 0, 0, 900, 700), scene, atol=1)


def test_grey_slides_are_shown_grey(tmp_path: Path, scene: RGB) -> None:
    grey = scene[..., 0]
    path = write_tiff(tmp_path / "a.tif", grey, 1, photometric="minisblack")
    with open_slide(path) as slide:
        np.testing.assert_array_equal(slide.read_level(0, 0, 0, 900, 700), np.dstack([grey] * 3))


def test_transparency_is_laid_over_white(tmp_path: Path, scene: RGB) -> None:
    alpha = np.full((*SHAPE, 1), 255, np.uint8)
    alpha[:, 450:] = 0
    alpha[:, 300:450] = 128
    rgba = np.concatenate([scene, alpha], axis=2)
    write_tiff(tmp_path / "a.tif", rgba, 1, extrasamples=["unassalpha"], compression="jpeg2000")
    PIL.Image.fromarray(rgba).save(tmp_path / "a.png")
    for name in ("a.tif", "a.png"):
        with open_slide(tmp_path / name) as slide:
            pixels = slide.read_level(0, 0, 0, 900, 700)
        np.testing.assert_allclose(pixels[:, :300], scene[:, :300], atol=2)
        np.testing.assert_allclose(pixels[:, 300:450], 127 + scene[:, 300:450] / 2.0, atol=3)
        assert (pixels[:, 450:] == 255).all()


def test_a_file_with_a_label_opens_its_slide_and_the_label_only_when_asked(
    tmp_path: Path, scene: RGB
) -> None:
    path = write_ome_tiff(tmp_path / "a.ome.tif", scene)
    with open_slide(path) as slide:
        assert slide.dimensions == (900, 700)
        assert slide.kind == "slide"
        assert [(s.index, s.name, s.kind) for s in slide.series] == [
            (0, "label image", "label"),
            (1, "scan", "slide"),
        ]
        content = slide.content_hash
    with open_slide(path, series=0) as label:
        assert label.kind == "label"
        assert (label.read_level(0, 0, 0, 60, 40) == 7).all()
        assert label.content_hash != content
    with pytest.raises(SlideError, match=r"no image number 5.*1 \(scan\)"):
        open_slide(path, series=5)


def test_a_large_label_is_still_a_label(tmp_path: Path) -> None:
    small, large = make_scene(200, 200), make_scene(600, 600)
    root = tmp_path / "a.zarr"
    write_omezarr(root / "0", large)
    write_omezarr(root / "1", small)
    import zarr

    group = zarr.open_group(root, mode="a", zarr_format=2)
    group.attrs["bioformats2raw.layout"] = 3
    names = zarr.open_group(root / "OME", mode="w", zarr_format=2)
    names.attrs["series"] = ["0", "1"]
    xml = (
        '<OME xmlns="o"><Image Name="macro image"><Pixels/></Image><Image Name="scan"><Pixels/></Image></OME>'
    )
    (root / "OME" / "METADATA.ome.xml").write_text(xml)
    with open_slide(root) as slide:
        assert slide.dimensions == (200, 200)
        assert [s.kind for s in slide.series] == ["macro", "slide"]


def test_fluorescence_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.ome.tif"
    tifffile.imwrite(path, np.zeros((5, 300, 300), np.uint16), metadata={"axes": "CYX"}, ome=True)
    with pytest.raises(SlideError, match=r"a\.ome\.tif.*5 channels"):
        open_slide(path)
