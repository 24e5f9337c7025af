"""Answers as tables and annotations: the numbers of the screen, each region once, nothing that a spreadsheet runs."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from napari_fish.search import Results
from napari_fish.search.output.export import FORMATS, to_csv, to_geojson
from napari_fish.search.output.page import to_html
from napari_fish.search.verdict import closeness, matched_regions, regions_in_words
from napari_fish.store import Box
from tests.search.made_results import answer, fate, hit


@pytest.fixture
def results() -> Results:
    """Three slides, all matched by the same two regions of three; the third slide only from afar."""
    far = hit(3, distance=70, percentile=8.26, regions=(0, 1))
    near = hit(1, percentile=0.0031, regions=(0, 1)), hit(2, percentile=0.43, regions=(0, 1, 2))
    return answer(*near, far, fates=(fate(0), fate(1), fate(2)))


def table(results: Results, **options: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(results, **options))))


def test_a_region_that_matches_several_slides_is_one_annotation(results: Results) -> None:
    features = to_geojson(results)["features"]
    rings = [str(feature["geometry"]) for feature in features]
    assert len(rings) == len(set(rings)) == 3
    first = features[0]["properties"]
    assert first["name"] == "1. slide 1.svs (40)" and first["measurements"]["matches"] == 3
    assert [match["slide"] for match in first["matches"]] == ["s1", "s2", "s3"]
    assert [feature["properties"]["measurements"]["matches"] for feature in features] == [3, 3, 1]
    of_slide = to_geojson(results, "s2")["features"]
    assert len(of_slide) == 3 and {f["properties"]["slide"] for f in of_slide} == {"s2"}


class _Sizes:
    def query_size(self) -> tuple[int, int]:
        return 150, 80

    def hit_size(self, slide: str) -> tuple[int, int]:
        return 40, 12


def test_annotations_stay_on_the_slide_and_have_an_area(results: Results) -> None:
    one, two, three = results.hits
    nowhere = replace(one.matches[0], query_box=Box(0, 0, 0, 0))
    over = replace(one.matches[0], query_box=Box(-20, 10, 50, 50))
    sized = replace(results, hits=(replace(one, matches=(nowhere, over)), two, three), pictures=_Sizes())  # type: ignore[arg-type]
    rings = [feature["geometry"]["coordinates"][0] for feature in to_geojson(sized)["features"]]
    corners = [(ring[0], ring[2]) for ring in rings]
    assert corners == [([0, 10], [30, 60]), ([0, 0], [100, 80]), ([100, 0], [150, 80])]
    theirs = [feature["geometry"]["coordinates"][0] for feature in to_geojson(sized, "s2")["features"]]
    assert [(ring[0], ring[2]) for ring in theirs] == [([14, 0], [40, 12]), ([14, 9], [40, 12])]


def test_the_table_has_the_numbers_of_the_screen(results: Results) -> None:
    for line, shown in zip(table(results), results.hits, strict=True):
        said = f"closer than {float(line['closer_than_percent']):g} % of random pairs"
        assert said == closeness(shown.percentile)
        assert f"{line['n_matches']} of {line['n_regions']} regions" == regions_in_words(shown, results)
        assert int(line["n_matches"]) == matched_regions(shown, results)[0]
    assert [line["n_matches"] for line in table(results)] == ["2", "3", "0"]
    assert "3 of 3 regions of the query within the threshold" in to_html(results)


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "-", "+a"])
def test_text_that_a_spreadsheet_would_run_is_made_plain_text(results: Results, text: str) -> None:
    bad = replace(results.hits[0], name=text, patient=text, diagnosis=text, site=text, slide=text)
    (line,) = table(replace(results, query=text, hits=(bad,)), query=True)
    assert {line[name] for name in ("query", "name", "patient", "diagnosis", "site", "slide")} == {f"'{text}"}


def test_a_name_cannot_begin_another_line_of_the_table(results: Results) -> None:
    bad = replace(results.hits[0], name="\r=1+1", patient="a\r\n=2", site="\x1b[2J")
    text = to_csv(replace(results, hits=(bad,)))
    assert "\r" not in text and "\x1b" not in text
    (line,) = csv.DictReader(io.StringIO(text))
    assert (line["name"], line["patient"], line["site"]) == ("\\r=1+1", "a\\r\n=2", "\\x1b[2J")


def test_numbers_in_the_table_stay_numbers(results: Results) -> None:
    box = Box(-20, 10, 50, 50)
    first = replace(
        results.hits[0],
        patient="-12.5",
        site="+3e-4",
        matches=(replace(results.hits[0].matches[0], query_box=box),),
    )
    (line,) = table(replace(results, hits=(first,)))
    assert (line["patient"], line["site"], line["query_box"]) == ("-12.5", "+3e-4", "-20,10,50,50")
    assert float(line["distance"]) == 40 and line["rank"] == "1"


def test_every_format_is_named_where_people_read_of_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "databases.md").read_text(encoding="utf-8")
    for ending in FORMATS:
        assert f"``{ending}``" in (Results.save.__doc__ or "") and f"`{ending}`" in page
