"""Searching on the command line: exit codes, JSON fields, tables and files."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.building.test_build import NAMES
from tests.building.test_masks import geojson
from tests.cli.test_cli import run
from tests.slides.conftest import write_image
from tests.tiny import tissue, write_empty_slide, write_slide

pytestmark = pytest.mark.usefixtures("quick")
FIELDS = ["query", "mode", "ranking", "k", "elapsed_ms", "threshold", "notes", "results"]
HIT = ["rank", "slide", "patient", "diagnosis", "site", "distance", "percentile", "matches"]


@pytest.fixture
def database(tiny_home: Path) -> Path:
    return tiny_home / "a b.fish"


def test_search_writes_one_json_document_with_the_promised_fields(
    database: Path, tmp_path: Path, capsys
) -> None:
    query = write_slide(tmp_path / "Anfrage ü 1.tif", "lymphoma", 112)
    code, out, _ = run(capsys, "search", database, query, "-k", 3, "--json")
    said = json.loads(out, parse_constant=pytest.fail)
    assert code == 0 and set(FIELDS) <= set(said)
    assert (said["query"], said["mode"], said["k"], len(said["results"])) == (
        "Anfrage ü 1.tif",
        "exact",
        3,
        3,
    )
    assert set(said["elapsed_ms"]) == {"read", "encode", "search", "rank"}
    hit = said["results"][0]
    assert set(HIT) <= set(hit) and {"query_box", "hit_box", "distance"} <= set(hit["matches"][0])
    assert (hit["rank"], hit["diagnosis"], hit["site"]) == (1, "lymphoma", "lymph node")
    assert [len(hit["matches"][0][box]) for box in ("query_box", "hit_box")] == [4, 4]
    assert 0 <= hit["percentile"] <= 100


def test_a_person_gets_a_table_the_reasons_and_on_request_the_explanation(database: Path, capsys) -> None:
    code, out, _ = run(capsys, "search", database, f"id:{NAMES[0]}", "--explain")
    lines = out.splitlines()
    assert code == 0 and lines[0].startswith("P00-0 ü.tif: mode exact")
    assert lines[1].split()[:4] == ["rank", "slide", "diagnosis", "site"]
    assert "carcinoma/P01-0 ü.tif" in lines[2] and "P01" in lines[2]
    assert "note: " in out and "query regions voted" in out


def test_same_patient_filters_modes_and_rankings_are_options(database: Path, capsys) -> None:
    def found(*options: object) -> list[dict[str, object]]:
        code, out, err = run(capsys, "search", database, f"id:{NAMES[0]}", "--json", *options)
        assert code == 0, err
        return json.loads(out)["results"]

    assert "P00" not in {hit["patient"] for hit in found("-k", 9)}
    assert found("--include-patient")[0]["slide"] == NAMES[0]
    assert {hit["diagnosis"] for hit in found("--where", "diagnosis=LYMPHOMA")} == {"lymphoma"}
    kept = found("-k", 9, "--where", "site!=lymph node", "--where", "diagnosis!=normal")
    assert {hit["diagnosis"] for hit in kept} == {"carcinoma"}
    for mode in ("exact", "clustered", "guided", "released"):
        assert isinstance(found("--mode", mode), list)
    for ranking in ("fish", "fish-naive", "fish-weighted", "fish-clean", "released", "label-free"):
        assert found("--ranking", ranking)[0]["diagnosis"] == "carcinoma"
    assert found("--target", "site")[0]["diagnosis"] == "carcinoma"


def test_a_box_an_image_and_a_scale_are_options(
    database: Path, tiny_home: Path, tmp_path: Path, capsys
) -> None:
    slide = tiny_home / "Schnitte ü" / NAMES[0]
    _, out, _ = run(capsys, "search", database, slide, "--box", "100,100,256,256", "--json")
    said = json.loads(out)
    assert said["query"] == "P00-0 ü.tif [100,100,256,256]"
    assert said["results"][0]["matches"][0]["query_box"] == [100, 100, 256, 256]
    image = write_image(tmp_path / "a.png", tissue("normal", 5, 300))
    _, out, _ = run(capsys, "search", database, image, "--json")
    assert "one patch" in json.loads(out)["notes"][0]
    _, out, _ = run(capsys, "search", database, image, "--mpp", "2", "--json")
    assert not any("one patch" in note for note in json.loads(out)["notes"])


def test_a_bad_query_in_a_batch_does_not_cost_the_others(database: Path, tmp_path: Path, capsys) -> None:
    glass = write_empty_slide(tmp_path / "glass.tif")
    queries = (f"id:{NAMES[0]}", glass, f"id:{NAMES[3]}")
    table = tmp_path / "alle.csv"
    code, out, err = run(capsys, "search", database, *queries, "--json", "--csv", table, "-k", 2)
    said = json.loads(out)
    assert code == 1 and "no tissue" in err and str(glass) in err
    assert [len(one["results"]) for one in said] == [2, 0, 2]
    assert "no tissue" in said[1]["error"] and said[1]["query"] == str(glass)
    rows = list(csv.DictReader(table.open(encoding="utf-8")))
    assert [row["query"] for row in rows] == ["P00-0 ü.tif"] * 2 + ["P10-0 ü.tif"] * 2
    code, out, _ = run(capsys, "search", database, queries[0], queries[2], "--json", "-k", 2)
    alone = json.loads(run(capsys, "search", database, queries[2], "--json", "-k", 2)[1])
    assert code == 0 and json.loads(out)[1]["results"] == alone["results"], "a batch answers as one by one"


def test_answers_are_written_as_csv_geojson_and_one_page(
    database: Path, tiny_home: Path, tmp_path: Path, capsys
) -> None:
    files = [tmp_path / name for name in ("a.csv", "b.geojson", "Seite ü.html")]
    slide = tiny_home / "Schnitte ü" / NAMES[0]
    code, out, err = run(
        capsys, "search", database, slide, "--csv", files[0], "--geojson", files[1], "--html", files[2]
    )
    assert code == 0 and out.startswith("P00-0") and err.count("Written: ") == 3
    rows = list(csv.DictReader(files[0].open(encoding="utf-8")))
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4", "5"] and rows[0]["patient"] == "P01"
    features = json.loads(files[1].read_text(encoding="utf-8"))["features"]
    ring = features[0]["geometry"]["coordinates"][0]
    assert ring[0] == ring[-1] and len(ring) == 5
    assert features[0]["properties"]["objectType"] == "annotation"
    page = files[2].read_text(encoding="utf-8")
    assert page.count("data:image/jpeg;base64") >= 5 and "P01-0 ü" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "<script src" not in page
    code, _, err = run(capsys, "search", database, slide, "--html", tmp_path / "nowhere" / "a.html")
    assert code == 1 and "Cannot write" in err


def test_regions_of_several_queries_are_written_to_a_file_each(
    database: Path, tmp_path: Path, capsys
) -> None:
    queries = [f"id:{NAMES[0]}", f"id:{NAMES[1]}", f"id:{NAMES[0]}"]
    code, _, err = run(capsys, "search", database, *queries, "--geojson", tmp_path / "r.geojson")
    names = [Path(name).name for name in NAMES]
    assert code == 0 and err.count("Written: ") == 3 and not (tmp_path / "r.geojson").exists()
    for file, name in ((f"r-{names[0]}-1", 0), (f"r-{names[1]}", 1), (f"r-{names[0]}-3", 0)):
        features = json.loads((tmp_path / f"{file}.geojson").read_text(encoding="utf-8"))["features"]
        assert {feature["properties"]["query"] for feature in features} == {names[name]}


def test_the_threshold_is_an_option(database: Path, capsys) -> None:
    code, out, _ = run(
        capsys, "search", database, f"id:{NAMES[0]}", "--mode", "exact", "--threshold", 0, "--json"
    )
    document = json.loads(out)
    assert code == 0 and document["threshold"] == 0
    assert all(match["distance"] == 0 for hit in document["results"] for match in hit["matches"])


def test_recall_of_the_mode_in_use_is_measured(database: Path, capsys) -> None:
    code, out, _ = run(capsys, "search", database, f"id:{NAMES[0]}", "--recall", "--mode", "exact")
    assert code == 0 and "of mode exact against exact search" in out and out.rstrip().endswith("1.000")
    strict = ("search", database, f"id:{NAMES[0]}", "--recall", "--mode", "guided", "--threshold", "0")
    code, out, _ = run(capsys, *strict, "--json")
    # No patch is nearer than the threshold itself, which the paper's search leaves out.
    assert json.loads(out)["recall"] == {"mode": "guided", "k": 10, "recall": None, "queries": 0}
    code, out, _ = run(capsys, *strict)
    assert code == 0 and "0 patches of this database: -, as none" in out


@pytest.mark.parametrize(
    "arguments",
    [["--mode", "best"], ["--ranking", "best"], ["--box", "1,2,3"], ["--box", "a,b,c,d"], ["-k", "0"]],
    ids=" ".join,
)
def test_wrong_usage_of_search_is_exit_code_2(database: Path, arguments: list[str], capsys) -> None:
    code, out, err = run(capsys, "search", database, f"id:{NAMES[0]}", *arguments)
    assert (code, out) == (2, "") and "Usage" in err
    assert run(capsys, "search", database)[0] == 2


def test_errors_of_search_are_one_line_and_exit_code_1(
    database: Path, tiny_home: Path, tmp_path: Path, capsys
) -> None:
    slide = tiny_home / "Schnitte ü" / NAMES[0]
    broken = tmp_path / "broken.svs"
    broken.write_bytes(b"rubbish")
    for arguments, said in (
        ((slide, "--box", "9000,0,10,10"), "outside the slide"),
        ((slide, "--box", "10,10,2,2"), "at least 16 px"),
        ((slide, "--where", "nonsense"), "column=value"),
        ((slide, "--target", "grade"), "no column 'grade'"),
        ((slide, "--mpp", "-1"), "positive"),
        ((broken,), "broken.svs"),
        (("id:nobody",), "no slide 'nobody'"),
        ((write_empty_slide(tmp_path / "glass.tif"),), "no tissue"),
    ):
        code, out, err = run(capsys, "search", database, *arguments, "--json")
        assert (code, out) == (1, ""), arguments
        message = [line for line in err.splitlines() if line.startswith("napari-fish: ")]
        assert len(message) == 1 and said in message[0] and "Traceback" not in err


@pytest.mark.skipif(os.name != "posix", reason="such names exist on POSIX only")
def test_a_query_whose_name_is_not_unicode_is_answered_and_written(
    database: Path, tmp_path: Path, capsys
) -> None:
    query = write_slide(tmp_path / "a.tif", "normal", 5).rename(tmp_path / os.fsdecode(b"\xff\xfe.tif"))
    files = [tmp_path / name for name in ("a.csv", "b.geojson", "c.html")]
    code, _, err = run(
        capsys, "search", database, query, "--csv", files[0], "--geojson", files[1], "--html", files[2]
    )
    assert code == 0, err
    assert all(file.stat().st_size for file in files)


def test_the_demo_prints_two_tables_says_how_well_it_answers_and_writes_a_page(
    tiny_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def paint(folder: Path, progress: object) -> list[Path]:
        shutil.copytree(tiny_home / "Schnitte ü", folder)
        return [folder / name for name in NAMES]

    monkeypatch.setattr("napari_fish.slides.demo.write_demo", paint)
    code, out, _ = run(capsys, "demo", "--no-gui", "--out", tmp_path / "demo")
    assert code == 0
    assert f"Which slides are like {Path(NAMES[0]).name}?" in out and "Which are like the box " in out
    assert out.count("rank  slide") == 2 and "9 slides" in out
    share = float(re.search(r"left out, ([\d.]+) of 5 slides found", out)[1])
    assert share == pytest.approx(1.33, abs=0.01), (
        "there are one or two slides of the same diagnosis to be found"
    )
    page = (tmp_path / "demo" / "results.html").read_text(encoding="utf-8")
    assert "Answers to 2 queries" in page and "data:image/jpeg" in page


def test_a_mask_says_which_part_of_the_query_is_searched(database: Path, tmp_path: Path, capsys) -> None:
    query = write_slide(tmp_path / "query.tif", "lymphoma", 112)
    mask = geojson(tmp_path / "mask.geojson")
    code, out, _ = run(capsys, "search", database, query, "--mask", mask, "--mask-class", "tumor", "--json")
    said = json.loads(out)
    assert code == 0 and said["results"][0]["diagnosis"] == "lymphoma"
    assert "Only what the mask marks was searched." in said["notes"]
    boxes = [match["query_box"] for hit in said["results"] for match in hit["matches"]]
    assert boxes and all(x + width / 2 < 400 for x, _, width, _ in boxes)
    code, out, _ = run(capsys, "search", database, f"id:{NAMES[0]}", "--mask", mask, "--json")
    assert code == 0 and "Only what the mask marks was searched." in json.loads(out)["notes"]


def test_a_mask_with_a_box_with_several_queries_or_of_an_image_is_an_error_that_says_why(
    database: Path, tmp_path: Path, capsys
) -> None:
    query, mask = write_slide(tmp_path / "query.tif"), geojson(tmp_path / "mask.geojson")
    code, _, err = run(capsys, "search", database, query, "--mask", mask, "--box", "0,0,300,300")
    assert code == 1 and "Leave out the mask or the box" in err
    code, _, err = run(capsys, "search", database, query, query, "--mask", mask)
    assert code == 2 and "one slide" in err
    image = write_image(tmp_path / "image.png", tissue("lymphoma", 3))
    code, _, err = run(capsys, "search", database, image, "--mask", mask)
    assert code == 1 and "one patch" in err
    code, _, err = run(capsys, "search", database, query, "--mask", tmp_path / "no.png")
    assert code == 1 and "no such mask file" in err


@pytest.mark.parametrize("mode", ["guided", "released"])
def test_the_papers_tree_gives_the_answers_of_sorted_keys(database: Path, capsys, mode: str) -> None:
    asked = ("search", database, f"id:{NAMES[0]}", "--mode", mode, "--threshold", 400, "--json")
    on_keys, on_tree = (
        json.loads(run(capsys, *asked, "--index", index)[1])["results"] for index in ("sorted", "veb")
    )
    assert on_keys == on_tree != []


@pytest.mark.parametrize("wrong", [("--index", "veb"), ("--index", "hash", "--mode", "guided")])
def test_an_index_that_the_mode_does_not_walk_along_is_wrong_usage(
    database: Path, capsys, wrong: tuple[str, ...]
) -> None:
    code, _, said = run(capsys, "search", database, f"id:{NAMES[0]}", *wrong)
    assert code == 2 and "index" in said
