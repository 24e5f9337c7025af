"""Text files: every delimiter, line end and encoding people write, and bytes that are no text."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_fish.errors import DatabaseError
from napari_fish.labels import text_rows
from napari_fish.labels.table import SlideLabels, read_labels
from tests.labels.files import csv_text, read, written


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends_of_all_programs_are_understood(tmp_path, delimiter, ending):
    rows = [["slide", "size", "diagnosis"], ["a.svs", "1.5", "KIRC"], ["b.svs", "2.5", "KIRP"]]
    table = read(tmp_path, ending.join(delimiter.join(row) for row in rows))
    assert [row.labels for row in table.rows] == [
        SlideLabels(diagnosis="KIRC", others={"size": "1.5"}),
        SlideLabels(diagnosis="KIRP", others={"size": "2.5"}),
    ]
    assert [row.line for row in table.rows] == [2, 3]


def test_a_german_table_with_decimal_commas_keeps_them(tmp_path):
    table = read(tmp_path, "slide;grösse;diagnosis, final\na.svs;1,5;x\nb.svs;2,5;y\n".encode("cp1252"))
    assert table.rows[0].labels.others == {"grösse": "1,5", "diagnosis, final": "x"}


def test_the_line_by_which_excel_declares_a_separator_is_no_header(tmp_path):
    table = read(tmp_path, "sep=;\r\nslide;a\r\nx.svs;1,2,3\r\n")
    assert table.rows[0].slide == "x.svs" and table.rows[0].line == 3
    assert table.rows[0].labels.others == {"a": "1,2,3"}


def test_quoted_cells_may_hold_delimiters_quotes_and_line_breaks(tmp_path):
    table = read(tmp_path, 'slide,a\nx.svs, "one, ""two""\nthree"\ny.svs,4\n')
    assert table.rows[0].labels.others["a"] == 'one, "two"\nthree'
    assert [row.line for row in table.rows] == [2, 4]


def test_a_quotation_mark_that_is_never_closed_is_an_error_with_its_line(tmp_path):
    with pytest.raises(DatabaseError, match="line 3 opens a quotation mark"):
        read(tmp_path, 'slide,a\nx.svs,1\ny.svs,"2\nz.svs,3\n')
    with pytest.raises(DatabaseError, match=r"line 2 .*quotation marks"):
        read(tmp_path, 'slide,a\nx.svs,"1\n' + "y.svs,2\n" * 50_000)


@pytest.mark.parametrize(
    ("encoding", "noted"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("cp1252", "Windows-1252"),
    ],
)
def test_every_usual_encoding_is_read_and_unusual_ones_are_noted(tmp_path, encoding, noted):
    table = read(tmp_path, "slide;patient;diagnosis\na.svs;Müller;Größe “3”\n".encode(encoding))
    assert table.understood["slide"] == "slide"
    assert table.rows[0].labels == SlideLabels("Müller", "", "Größe “3”")
    assert [noted in note for note in table.notes] == ([True] if noted else [])


CELL = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufeff"), max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(CELL, min_size=5, max_size=5), max_size=6),
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_any_text_comes_back_as_it_was_written(tmp_path, rows, delimiter, encoding, ending):
    header = ["slide", "patient", "site", "diagnosis", "stain", "ärger"]
    named = [[f"s{i}.svs", *row] for i, row in enumerate(rows)]
    text = csv_text([header, *named], delimiter=delimiter, lineterminator=ending)
    table = read(tmp_path, text.encode(encoding))
    got = [
        [r.slide, r.labels.patient, r.labels.site, r.labels.diagnosis, *r.labels.others.values()]
        for r in table.rows
    ]
    assert got == [[f"s{i}.svs", *(cell.strip() for cell in row)] for i, row in enumerate(rows)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.text("aZ 09,;éßÜ€“”", max_size=10), max_size=6))
def test_text_of_windows_comes_back_as_it_was_written(tmp_path, values):
    rows = [["slide", "Größe"], *([f"s{i}", value] for i, value in enumerate(values))]
    table = read(tmp_path, csv_text(rows, delimiter=";").encode("cp1252"))
    assert [row.labels.others["Größe"] for row in table.rows] == [value.strip() for value in values]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=200),
    before=st.sampled_from([b"", b"slide,a\n", b"PK\x03\x04", b"\xff\xfe", b"\xef\xbb\xbf"]),
)
def test_whatever_bytes_a_file_has_it_is_a_table_or_a_clear_error(tmp_path, data, before):
    try:
        table = read(tmp_path, before + data)
    except DatabaseError as error:
        assert "labels.csv" in str(error)
    else:
        assert "slide" in table.understood
        assert not any("\0" in row.slide for row in table.rows)


@pytest.mark.parametrize(
    "content",
    [
        random.Random(3).randbytes(5000),
        b"II*\0" + bytes(range(256)) * 20,
        b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(300),
        b"slide,patient\na.svs,P\x001\n",
        b"slide,patient\na.svs,\x81\x8d\x02\n",
        "slide,患者\n甲,乙丙丁戊\n".encode("utf-16-le") + b"\x00",
    ],
)
def test_binary_data_is_refused_with_the_file_and_a_remedy(tmp_path, content):
    with pytest.raises(DatabaseError, match=r"labels\.csv: this is no table.*Save the table as CSV"):
        read(tmp_path, content)


@pytest.mark.parametrize("ending", ["\r", "\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_letters_and_lines_on_the_edge_of_a_piece_stay_whole(tmp_path, monkeypatch, encoding, ending):
    monkeypatch.setattr(text_rows, "PIECE", 7)
    lines = ["slide,site", *(f'a{i},"Schädel{ending}und ü"' for i in range(50))]
    for last in ("", ending, f"{ending}\x1a", "\x1a\x1a"):
        table = read(tmp_path, (ending.join(lines) + last).encode(encoding))
        assert len(table.rows) == 50 and {row.labels.site for row in table.rows} == {f"Schädel{ending}und ü"}


def test_a_table_of_ten_million_rows_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(b"slide,patient\n" + b"a.svs,P1\n" * 10_000_000)
    with pytest.raises(DatabaseError, match=r"labels\.csv: too large for a table of labels \(1000000 rows"):
        read_labels(path)


def test_a_csv_file_is_read_line_by_line_and_never_kept_as_a_whole(tmp_path):
    row = "{}.svs," + " " * 10_000 + "P1\n"
    path = written(tmp_path, "slide,patient\n" + "".join(row.format(i) for i in range(3000)))
    read_labels(written(tmp_path, "slide\na\n", "other.csv"))
    tracemalloc.start()
    try:
        table = read_labels(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(table.rows) == 3000 and table.rows[-1].labels.patient == "P1"
    assert path.stat().st_size > 3 * most


def test_one_line_that_never_ends_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_rows, "LONGEST_LINE", 1000)
    assert read(tmp_path, "slide\n" + "a" * 998 + "\n").rows[0].slide == "a" * 998
    with pytest.raises(DatabaseError, match="too large for a table of labels"):
        read(tmp_path, "slide" + "," * 1000)
