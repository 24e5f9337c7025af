"""Nothing that was found is lost: what is checked first, what is written when, and how a batch goes on."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from napari_fish.building import settings
from napari_fish.search.output.writing import UNFINISHED, one_each
from napari_fish.texts import file_stem, json_safe, one_line, printable
from tests.building.test_build import NAMES
from tests.cli.test_cli import run
from tests.slides.conftest import write_tiff
from tests.tiny import DOOM, QuickEncoder, picture, write_slide

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def database(tiny_home: Path) -> Path:
    return tiny_home / "a b.fish"


@pytest.fixture
def queries(tmp_path: Path) -> list[Path]:
    kinds = ("lymphoma", "carcinoma", "normal")
    return [write_slide(tmp_path / f"{kind}.tif", kind, 7 + i) for i, kind in enumerate(kinds)]


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Patches of each batch that was encoded since."""
    batches: list[int] = []

    class Counting(QuickEncoder):
        def encode(self, patches: Any, keep_codes: bool = False) -> Any:
            batches.append(len(patches))
            return super().encode(patches, keep_codes)

    monkeypatch.setattr(settings, "load_encoder", lambda *_: Counting())
    return batches


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--where", "grade=3"], "No column 'grade'"),
        (["--where", "nonsense"], "column=value"),
        (["--target", "grade"], "no column 'grade'"),
        (["--box", "9000,0,100,100"], "outside the slide"),
        (["--box", "10,10,2,2"], "at least 16 px"),
        (["--mpp", "-1"], "positive"),
        (["--mask", "no.png"], "no such mask file"),
        (["--csv", "nowhere/a.csv"], "Cannot write nowhere/a.csv: there is no folder nowhere"),
        (["--html", "."], "Cannot write .: it is a folder"),
        (["--csv", "a.txt", "--html", "a.txt"], "Cannot write a.txt: it is used already"),
        (["--geojson", "lymphoma.tif"], "Cannot write lymphoma.tif: it is used already"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_said_before_an_encoder_is_loaded(
    database: Path, queries: list[Path], arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:  # fmt: skip
    def load(*_: object) -> None:
        pytest.fail("an encoder was loaded")

    monkeypatch.setattr(settings, "load_encoder", load)
    monkeypatch.chdir(queries[0].parent)
    before = queries[0].read_bytes()
    code, out, err = run(capsys, "search", database, "lymphoma.tif", *arguments)
    assert (code, out) == (1, "") and said in err
    assert queries[0].read_bytes() == before


def test_a_slide_without_a_scale_is_refused_before_an_encoder_is_loaded(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(settings, "load_encoder", lambda *_: pytest.fail("an encoder was loaded"))
    unknown = write_tiff(tmp_path / "unknown.tif", picture("normal", 3), 2, resolution=(1, 1))
    code, out, err = run(capsys, "search", database, unknown)
    assert (code, out) == (1, "") and "--mpp" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_an_answer_is_printed_before_a_file_that_cannot_be_written_fails(
    database: Path, queries: list[Path], tmp_path: Path, capsys
) -> None:
    page = tmp_path / "a.html"
    code, out, err = run(capsys, "search", database, queries[0], "--csv", "/dev/full", "--html", page)
    assert code == 1 and "Cannot write /dev/full" in err
    assert "rank  slide" in out and "lymphoma" in out
    assert "Slides similar to lymphoma.tif" in page.read_text(encoding="utf-8")
    code, out, err = run(capsys, "search", database, queries[0], "--json", "--csv", "/dev/full")
    assert code == 1 and json.loads(out)["results"]


def test_a_killed_batch_has_written_what_it_found_and_goes_on_where_it_was(
    database: Path, queries: list[Path], tmp_path: Path, encoded: list[int], capsys
) -> None:
    table, regions, page = tmp_path / "a.csv", tmp_path / "r.geojson", tmp_path / "a.html"
    arguments = ["search", str(database), *map(str, queries), "--csv", str(table), "--geojson", str(regions)]
    arguments += ["--html", str(page)]
    doomed = subprocess.run(
        [sys.executable, "-m", "tests.tiny", *arguments],
        check=False,
        env={**os.environ, DOOM: "4:0"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        timeout=200,
    )
    assert doomed.returncode < 0, "the second slide begins with the fourth batch"
    assert {row["query"] for row in rows(table)} == {"lymphoma.tif"}
    assert (tmp_path / "r-lymphoma.tif.geojson").is_file() and b"lymphoma.tif: mode" in doomed.stdout
    kept = tmp_path / f"a.csv{UNFINISHED}"
    assert kept.is_file()

    code, out, err = run(capsys, *arguments)
    assert code == 0 and "1 answers are there from before" in err
    assert len(encoded) == 6, "the first slide was not encoded again"
    assert [out.index(f"{query.name}: mode") for query in queries] == sorted(
        out.index(f"{query.name}: mode") for query in queries
    )
    assert [row["query"] for row in rows(table)][::5] == [query.name for query in queries]
    assert all((tmp_path / f"r-{query.name}.geojson").is_file() for query in queries)
    text = page.read_text(encoding="utf-8")
    assert "Answers to 3 queries" in text and text.count("<section") == 3
    assert not kept.exists()


def test_a_batch_that_is_not_the_same_begins_anew(
    database: Path, queries: list[Path], tmp_path: Path, encoded: list[int], capsys
) -> None:
    broken = tmp_path / "broken.svs"
    broken.write_bytes(b"rubbish")
    table = tmp_path / "a.csv"
    arguments = ["search", database, *queries[:2], broken, "--csv", table]
    code, out, _ = run(capsys, *arguments)
    assert code == 1 and len(encoded) == 6 and (tmp_path / f"a.csv{UNFINISHED}").exists()
    assert run(capsys, *arguments)[1] == out and len(encoded) == 6, "only what failed is tried again"
    assert len(rows(table)) == 10
    assert run(capsys, *arguments, "-k", 2)[0] == 1
    assert len(encoded) == 12 and len(rows(table)) == 4


def test_a_batch_as_json_is_one_document_with_what_was_refused_in_its_place(
    database: Path, queries: list[Path], tmp_path: Path, capsys
) -> None:
    broken = tmp_path / "broken.svs"
    broken.write_bytes(b"rubbish")
    asked = [queries[0], broken, f"id:{NAMES[0]}", queries[1]]
    code, out, err = run(capsys, "search", database, *asked, "--json")
    documents = json.loads(out)
    assert code == 1 and "broken.svs" in err
    assert [Path(one["query"]).name for one in documents] == [
        "lymphoma.tif", "broken.svs", Path(NAMES[0]).name, "carcinoma.tif"
    ]  # fmt: skip
    assert [bool(one["results"]) for one in documents] == [True, False, True, True]


@pytest.mark.skipif(os.name != "posix", reason="such names exist on POSIX only")
def test_names_cannot_steer_the_terminal(database: Path, tmp_path: Path, capsys) -> None:
    name = "a\x1b]0;owned\x07\x9b2J\r\nrank.tif"
    slide = write_slide(tmp_path / "a.tif", "normal", 5).rename(tmp_path / name)
    for arguments in (("info", slide), ("search", database, slide), ("mosaic", slide), ("info", f"{slide}x")):
        _, out, err = run(capsys, *arguments)
        assert "a\\x1b]0;owned\\x07\\x9b2J\\r" in out + err or "rank.tif" not in out + err
        assert not set(out + err) & {"\x1b", "\x07", "\x9b", "\r"}, arguments
    assert (
        len([line for line in run(capsys, "search", database, slide)[1].splitlines() if "rank" in line]) == 2
    )
    for arguments in (("info", slide), ("search", database, slide)):
        _, out, _ = run(capsys, *arguments, "--json")
        said = json.loads(out)
        assert Path(said.get("path", said.get("query"))).name == name
        assert not set(out) & {"\x1b", "\x07", "\x9b", "\r"}


def test_names_as_long_as_the_system_allows_give_files_that_can_be_written(
    database: Path, queries: list[Path], tmp_path: Path, capsys
) -> None:
    longest = [f"{'ü' * 123}{i}.tif" for i in range(2)]
    slides = [queries[i].rename(tmp_path / name) for i, name in enumerate(longest)]
    assert len(longest[0].encode()) == 251
    code, _, err = run(capsys, "search", database, *slides, "--geojson", tmp_path / "regions.geojson")
    assert code == 0, err
    written = sorted(tmp_path.glob("regions-*.geojson"))
    assert len(written) == 2
    asked = {json.loads(f.read_text(encoding="utf-8"))["features"][0]["properties"]["query"] for f in written}
    assert asked == set(longest)


def test_files_of_several_queries_never_share_a_name() -> None:
    names = ["a", "a", "a-1", "A", "b/c", "b:c", "x" * 300 + "1", "x" * 300 + "2"]
    files = one_each(Path("r.geojson"), names)
    assert len({file.name.casefold() for file in files}) == len(names)
    assert max(len(file.name.encode()) for file in files) <= 255


def test_texts_are_made_safe_and_what_is_safe_stays() -> None:
    assert printable("é ü 漢\tx\n") == "é ü 漢\tx\n" and printable("\x1b[2J\u202e") == "\\x1b[2J\\u202e"
    assert one_line("a\nb\tc") == "a\\nb\\tc"
    assert json.loads(json_safe(json.dumps("\x7f\x9b\u2028", ensure_ascii=False))) == "\x7f\x9b\u2028"
    assert file_stem("Fall 7 (ü).tif", 10) == "Fall 7 (ü).tif" and file_stem("../..", 0) == "_"
