"""The figure of an answer: what is on it and where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageColor

from napari_fish.errors import FishError
from napari_fish.search import Results
from napari_fish.search.output.colours import Colours
from napari_fish.search.output.figure import draw_figure
from napari_fish.search.output.page_parts import FATES
from napari_fish.slides.pixels import to_jpeg
from napari_fish.store import Box
from napari_fish.texts import Note
from tests.search.made_results import answer, fate, hit


def _plain(colour: tuple[int, int, int]) -> bytes:
    return to_jpeg(np.full((64, 64, 3), colour, np.uint8), quality=95)


class Plain:
    """Pictures of one colour each: the query's regions, its overview, the hits' regions."""

    query_colour, overview_colour, hit_colour = (200, 60, 200), (230, 230, 180), (60, 200, 200)

    def query(self, index: int) -> bytes | None:
        return _plain(self.query_colour)

    def query_overview(self) -> bytes | None:
        return _plain(self.overview_colour)

    def query_size(self) -> tuple[int, int] | None:
        return (1000, 500)

    def hit(self, slide: str, box: Box) -> bytes | None:
        return None if slide == "s2" else _plain(self.hit_colour)

    def thumbnail(self, slide: str, box: Box) -> bytes | None:
        return None

    def field(self, slide: str, box: Box, times: float, px: int) -> bytes | None:
        return None

    def overview(self, slide: str) -> bytes | None:
        return None


def pixels_of(picture: Image.Image, colour: str | tuple[int, int, int], near: int = 8) -> int:
    array: NDArray[np.int16] = np.asarray(picture.convert("RGB"), np.int16)
    wanted = ImageColor.getrgb(colour) if isinstance(colour, str) else colour
    return int((np.abs(array - np.array(wanted, np.int16)).max(axis=2) <= near).sum())


@pytest.fixture
def results() -> Results:
    """Three slides, of which the second has no pictures; one region counted, one was dropped."""
    fates = (fate(0), fate(1, "PRAD", 1.0, kind="distance"))
    made = answer(hit(1, "KIRC", regions=(0, 1)), hit(2, "PRAD"), hit(3, "KIRC"), fates=fates)
    return replace(made, pictures=Plain())


def test_each_pair_shows_the_query_beside_the_slide(results: Results) -> None:
    page = draw_figure(results)
    patch = pixels_of(page, Plain.query_colour)
    # Four pairs on the page; the slide without pictures leaves its half empty, and frames take a few px.
    assert pixels_of(page, Plain.hit_colour) == pytest.approx(patch * 3 / 4, rel=0.12)
    assert patch == pytest.approx(4 * 190**2, rel=0.02)


def test_diagnoses_and_fates_have_their_colours(results: Results) -> None:
    page, colours = draw_figure(results), Colours.of_answers([results])
    assert pixels_of(page, colours.of("KIRC"), 2) > pixels_of(page, colours.of("PRAD"), 2) > 1000
    assert pixels_of(page, colours.of("BLCA"), 2) < 50
    assert pixels_of(page, FATES["kept"][1], 2) > 300 and pixels_of(page, FATES["distance"][1], 2) > 300
    assert pixels_of(page, FATES["vote"][1], 2) < 50


def test_boxes_lie_where_the_regions_are(results: Results) -> None:
    page = np.asarray(draw_figure(results), np.int16)
    kept = np.array(ImageColor.getrgb(FATES["kept"][1]))
    rows, columns = np.nonzero(np.abs(page[:500, :808] - kept).max(axis=2) <= 2)
    # The overview is 760 px wide for 1000 px of slide, and begins at the left margin of 48 px.
    assert columns.min() == pytest.approx(48, abs=3) and columns.max() == pytest.approx(48 + 76, abs=3)
    assert rows.max() - rows.min() == pytest.approx(76, abs=3)


def test_the_page_grows_with_the_slides_up_to_the_number_wanted(results: Results) -> None:
    many = replace(results, hits=tuple(hit(i) for i in range(1, 21)))
    heights = [draw_figure(many, top).height for top in (4, 6, 20)]
    assert heights[0] < heights[1] < heights[2]
    assert draw_figure(many).height == draw_figure(many, 8).height


def test_a_figure_is_saved_as_png_and_pdf(results: Results, tmp_path: Path) -> None:
    with Image.open(results.save(tmp_path / "schöne Figur.PNG")) as png:
        assert png.format == "PNG" and png.size == draw_figure(results).size
        assert png.info["dpi"][0] == pytest.approx(200, abs=0.1)
    assert results.save(tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")


def test_names_that_are_long_or_no_unicode_do_not_cost_the_figure(results: Results, tmp_path: Path) -> None:
    odd = "slide \udcff " + 300 * "long"
    named = replace(results.hits[0], name=odd, diagnosis=odd, site=odd, patient=odd)
    made = replace(results, query=odd, hits=(named,), notes=(Note("query", odd),))
    page = draw_figure(made)
    assert page.width == draw_figure(results).width
    made.save(tmp_path / "a.pdf")


@pytest.mark.parametrize("broken", [None, b"", b"no jpeg"])
def test_without_pictures_there_are_empty_fields(results: Results, broken: bytes | None) -> None:
    class Broken(Plain):
        def query(self, index: int) -> bytes | None:
            return broken

        def query_overview(self) -> bytes | None:
            return broken

        def query_size(self) -> tuple[int, int] | None:
            return None

    for pictures in (None, Broken()):
        assert pixels_of(draw_figure(replace(results, pictures=pictures)), "#e9ebee", 0) > 4 * 30_000
    nothing = draw_figure(replace(results, hits=(), query_boxes=()))
    assert nothing.height > 200


def test_a_place_that_cannot_be_written_to_is_named(results: Results, tmp_path: Path) -> None:
    for ending in ("png", "pdf"):
        with pytest.raises(FishError, match="missing"):
            results.save(tmp_path / "missing" / f"a.{ending}")
    with pytest.raises(FishError, match=r"\.png"):
        results.save(tmp_path / "a.doc")
