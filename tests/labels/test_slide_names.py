"""Which slide a name means, and what must never be taken for it."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_fish.labels.slide_names import without_ending
from napari_fish.labels.table import SlideLabels
from tests.labels.files import TCGA, csv_text, read


def matched_slide(folder: Path, name: str, slides: list[str]) -> str | None:
    """Return the slide that a name in a labels file finds."""
    table = read(folder, csv_text([["slide", "site"], [name, "x"]]))
    return next(iter(table.match(slides).labels), None)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "sub/a.svs",
            r"sub\a.svs",
            "a.svs",
            "sub/a",
            "a",
            "./sub/a.svs",
            "slides/sub/a.svs",
            "A.SVS",
            "SUB/a",
        ),
        *("/data/old/sub/a.svs", r"C:\scans\sub\a.svs", r"\\server\share\sub\a", "file:///x/sub/a.svs"),
    ],
)
def test_a_slide_is_found_by_any_way_to_write_its_name(tmp_path, name):
    assert matched_slide(tmp_path, name, ["sub/a.svs", "sub/b.svs", "other/ab.svs"]) == "sub/a.svs"


@pytest.mark.parametrize("name", ["other/a.svs", "b", "a.svs.bak", "sub", "svs", ".svs", "/", "a.x"])
def test_names_of_other_things_find_nothing(tmp_path, name):
    assert matched_slide(tmp_path, name, ["sub/a.svs", "sub/c.d.svs"]) is None


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("x/a.ome.tif", "x/a"),
        ("a.OME.TIFF", "a"),
        ("a.ome.zarr", "a"),
        ("a.ome.zarr.zip", "a"),
        ("a.zarr", "a"),
        ("a.b.svs", "a.b"),
        ("a.svs.svs", "a.svs"),
        ("a.tar", "a.tar"),
        ("v1.5", "v1.5"),
        (".svs", ".svs"),
        ("x/.svs", "x/.svs"),
        ("x.svs/a", "x.svs/a"),
        (TCGA, TCGA[:-4]),
    ],
)
def test_only_extensions_of_slides_are_stripped_and_compound_ones_as_a_whole(path, stem):
    assert without_ending(path) == stem


def test_a_converted_slide_is_found_by_its_former_extension(tmp_path):
    assert matched_slide(tmp_path, "a.svs", ["a.ome.tif"]) == "a.ome.tif"
    assert matched_slide(tmp_path, "a.svs", ["a.ome.tif", "a.svs"]) == "a.svs"


def test_a_tcga_slide_is_found_with_and_without_the_part_behind_the_dot(tmp_path):
    for name in (TCGA, TCGA[:-4], "TCGA-DU-6399-01Z-00-DX1", "tcga-du-6399-01z-00-dx1.svs"):
        assert matched_slide(tmp_path, name, [f"x/{TCGA}", "x/other.svs"]) == f"x/{TCGA}"
    other = TCGA.replace("11111111", "99999999")
    assert matched_slide(tmp_path, other, [TCGA]) is None
    assert matched_slide(tmp_path, "TCGA-DU-6399-01Z-00-DX1", [TCGA, other]) is None


def test_letters_with_accents_match_however_the_computer_writes_them(tmp_path):
    apart = unicodedata.normalize("NFD", "Präparat é.svs")
    assert matched_slide(tmp_path, "Präparat é", [apart]) == apart
    assert matched_slide(tmp_path, apart, ["Präparat é.svs"]) == "Präparat é.svs"


def test_case_is_overlooked_only_as_a_last_resort(tmp_path):
    matched = read(tmp_path, "slide,site\na.svs,x\nA.svs,y\n").match(["A.svs", "a.svs"])
    assert matched.labels == {"a.svs": SlideLabels(site="x"), "A.svs": SlideLabels(site="y")}


def test_the_folder_decides_between_slides_of_one_name(tmp_path):
    matched = read(tmp_path, "slide,site\na/1,x\n/data/b/1.svs,y\n1.svs,z\n").match(
        ["a/1.svs", "b/1.svs", "1.svs"]
    )
    assert {slide: known.site for slide, known in matched.labels.items()} == {
        "a/1.svs": "x", "b/1.svs": "y", "1.svs": "z",
    }  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    slides=st.lists(
        st.builds("{}{}{}".format, st.sampled_from(["", "a/", "b/", "a/b/"]), st.text("xyX.1", min_size=1, max_size=3),
                  st.sampled_from([".svs", ".ome.tif", ".tif", ""])).filter(lambda s: s.split("/")[-1].strip(".")),
        unique=True, min_size=1, max_size=12,
    )
)  # fmt: skip
def test_every_slide_finds_the_row_with_its_own_path(tmp_path, slides):
    table = read(tmp_path, csv_text([["slide", "site"], *([slide, slide] for slide in slides)]))
    matched = table.match(reversed(slides))
    assert {slide: known.site for slide, known in matched.labels.items()} == {
        slide: slide for slide in slides
    }
    assert matched.unknown == matched.unlabelled == ()


def steps_of(work: Callable[[], object]) -> int:
    """Count the lines that Python runs for it: unlike seconds they are the same on a busy machine."""
    steps = 0

    def traced(frame: FrameType, event: str, _: object) -> Callable[..., object]:
        nonlocal steps
        steps += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def test_the_work_to_match_grows_no_faster_than_the_number_of_slides(tmp_path):
    def matching(n: int) -> int:
        slides = [f"batch{i % 50}/case{i}/S-{i}.svs" for i in range(n)]
        table = read(tmp_path, "slide,site\n" + "".join(f"s-{i},x\n" for i in range(n)))
        assert len(table.match(slides).labels) == n
        return steps_of(lambda: table.match(slides))

    few, many = matching(100), matching(400)
    assert few > 1000 and many < 4.4 * few
