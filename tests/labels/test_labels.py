"""The labels file: every way people write one, and what must never happen silently."""

from __future__ import annotations

import csv
import io
import random
import subprocess
import sys
import tracemalloc
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_fish.errors import DatabaseError
from napari_fish.labels import sheets
from napari_fish.labels.slide_names import without_ending
from napari_fish.labels.table import (
    LabelTable,
    SlideLabels,
    label_slides,
    patient_rule,
    read_labels,
)
from napari_fish.store.records import SlideRecord

TCGA = "TCGA-DU-6399-01Z-00-DX1.11111111-2222-3333-4444-555555555555.svs"


def written(folder: Path, content: str | bytes, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, content: str | bytes, **options: dict[str, str]) -> LabelTable:
    return read_labels(written(folder, content), **options)


def workbook(folder: Path, rows: Sequence[Sequence[object]], formats: dict[str, str] | None = None) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, number_format in (formats or {}).items():
        book.active[cell].number_format = number_format
    book.save(folder / "labels.xlsx")
    return folder / "labels.xlsx"


# Reading


def test_a_plain_csv_file_is_read_column_by_column(tmp_path):
    table = read(tmp_path, "slide,patient,site,diagnosis,stain,Age\na.svs,P1,kidney,KIRC,HE,61\n")
    assert table.understood == {
        own: own for own in ("slide", "patient", "site", "diagnosis", "stain")
    }  # fmt: skip
    assert table.others == ("Age",)
    assert [(row.line, row.slide) for row in table.rows] == [(2, "a.svs")]
    assert table.rows[0].labels == SlideLabels("P1", "kidney", "KIRC", {"stain": "HE", "Age": "61"})
    assert table.notes == ()


def test_the_labels_of_the_demo_slides_fit_the_demo_slides(tmp_path):
    from napari_fish.slides.demo import demo_specs
    from napari_fish.slides.demo.files import _write_labels

    specs = tuple(demo_specs())
    _write_labels(tmp_path / "labels.csv", specs)
    matched = read_labels(tmp_path / "labels.csv").match([f"{spec.name}.tif" for spec in specs])
    assert (matched.unknown, matched.unlabelled, matched.notes) == ((), (), ())
    for spec in specs:
        assert matched.labels[f"{spec.name}.tif"] == SlideLabels(spec.patient, spec.site, spec.diagnosis)


@pytest.mark.parametrize(
    ("own", "header"),
    [
        *(("slide", h) for h in ("Slide_ID", "slideid", "slide name", " FILENAME ", "File", "file_name")),
        *(("slide", h) for h in ("Image", "image-id", "path", "WSI", "svs")),
        *(("patient", h) for h in ("case", "Case_ID", "case_submitter_id", "cases.submitter_id", "MRN")),
        *(("patient", h) for h in ("PatientID", "patient_id", "Subject")),
        *(("site", h) for h in ("Organ", "tissue", "primary_site", "Anatomical Site")),
        *(("diagnosis", h) for h in ("label", "Class", "SUBTYPE", "dx", "oncotree_code", "project_id")),
        ("stain", "Staining"),
    ],
)
def test_synonyms_are_understood_in_any_case_and_reported(tmp_path, own, header):
    table = read(tmp_path, f"{header},x\nv,1\n" if own == "slide" else f"slide,{header},x\nv,w,1\n")
    assert table.understood[own] == header.strip()
    assert table.others == ("x",)
    assert f"{own} = “{header.strip()}”" in table.describe()


def test_the_likelier_of_two_synonyms_is_taken_and_the_other_kept(tmp_path):
    table = read(tmp_path, "filename,slide_id,label,diagnosis\nf.svs,s,l,d\n")
    assert table.understood == {"slide": "slide_id", "diagnosis": "diagnosis"}
    assert table.others == ("filename", "label")


def test_columns_can_be_named_where_the_guess_would_be_wrong(tmp_path):
    content = "slide,file,site,organ\n1,a.svs,Vienna,kidney\n"
    table = read(tmp_path, content, columns={"slide": "FILE", "site": "Organ"})
    assert table.understood == {"slide": "file", "site": "organ"}
    assert table.rows[0].slide == "a.svs" and table.rows[0].labels.site == "kidney"
    assert table.others == ("slide_2", "site_2")


def test_an_empty_name_means_that_no_column_is_taken(tmp_path):
    table = read(tmp_path, "slide,label\na,7\n", columns={"diagnosis": ""})
    assert table.understood == {"slide": "slide"} and table.others == ("label",)


def test_naming_a_column_that_is_not_there_lists_those_that_are(tmp_path):
    with pytest.raises(DatabaseError, match=r"no column 'nope'.*“slide”, “age”"):
        read(tmp_path, "slide,age\na,1\n", columns={"patient": "nope"})
    with pytest.raises(DatabaseError, match="not for 'colour'"):
        read(tmp_path, "slide,age\na,1\n", columns={"colour": "age"})


def test_a_file_without_a_slide_column_is_refused_with_its_columns_and_a_remedy(tmp_path):
    with pytest.raises(DatabaseError, match=r"labels\.csv.*“age”, “sex”.*Call the column"):
        read(tmp_path, "age,sex\n1,f\n")


def test_columns_that_would_be_mistaken_for_others_get_names_of_their_own(tmp_path):
    table = read(tmp_path, "slide,Name,age,AGE,age_2,Slide\na,n,1,2,3,x\n")
    assert table.others == ("Name_2", "age", "AGE_3", "age_2", "Slide_2")
    assert table.rows[0].labels.others == {
        "Name_2": "n", "age": "1", "AGE_3": "2", "age_2": "3", "Slide_2": "x",
    }  # fmt: skip
    assert any("“Name_2”" in note and "“AGE_3”" in note for note in table.notes)
    record = SlideRecord("a.svs", name="a.svs", labels=table.rows[0].labels.others)
    assert [record.column(name) for name in table.others] == ["n", "1", "2", "3", "x"]


def test_columns_without_a_name_are_dropped_when_empty_and_kept_when_not(tmp_path):
    table = read(tmp_path, "slide,,,age,,\na,,x,1,,\n")
    assert table.others == ("column 3", "age")
    assert table.rows[0].labels.others == {"column 3": "x", "age": "1"}


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


def test_blank_cells_are_empty_and_values_are_stripped(tmp_path):
    table = read(tmp_path, " slide , Patient,site,x\n\n  a.svs ,\u00a0 ,  kidney  \n , , ,\n")
    assert table.rows[0].slide == "a.svs"
    assert table.rows[0].labels == SlideLabels(site="kidney", others={"x": ""})
    assert len(table.rows) == 1 and table.notes == ()


def test_rows_without_a_slide_are_left_out_and_counted(tmp_path):
    table = read(tmp_path, "slide,patient\n,P1\na.svs,P2\n ,P3\n")
    assert [row.slide for row in table.rows] == ["a.svs"]
    assert any("(2): line 2, 4" in note for note in table.notes)


def test_cells_beyond_the_header_are_reported(tmp_path):
    table = read(tmp_path, "slide,patient\na.svs,P1,lost\nb.svs,P2\nc.svs,P3\n")
    assert any("beyond the last named column" in note and "line 2" in note for note in table.notes)


def test_rows_that_repeat_are_one_and_rows_that_contradict_are_named(tmp_path):
    table = read(tmp_path, "slide,site\na,x\nb,y\na,x\nb,z\nb,w\n")
    assert [(row.slide, row.labels.site) for row in table.rows] == [("a", "x"), ("b", "y")]
    assert table.notes == ("Rows that contradict each other: b (line 3 kept, not 5, 6).",)


def test_long_lists_in_notes_are_cut(tmp_path):
    rows = "".join(f"s{i},x\ns{i},y\n" for i in range(25))
    (note,) = read(tmp_path, "slide,site\n" + rows).notes
    assert "s9 " in note and "s10 " not in note and "and 15 more" in note


def test_a_header_alone_is_a_table_without_rows(tmp_path):
    table = read(tmp_path, "slide;patient\n")
    assert table.rows == () and table.understood == {"slide": "slide", "patient": "patient"}
    assert "no row" in table.notes[0]
    matched = table.match(["a.svs"])
    assert (matched.labels, matched.unlabelled) == ({}, ("a.svs",))


def test_a_single_column_is_enough(tmp_path):
    assert [row.slide for row in read(tmp_path, "slide\na.svs\nb.svs\n").rows] == ["a.svs", "b.svs"]


# Encodings


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
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=ending)
    writer.writerow(["slide", "patient", "site", "diagnosis", "stain", "ärger"])
    writer.writerows([f"s{i}.svs", *row] for i, row in enumerate(rows))
    table = read(tmp_path, buffer.getvalue().encode(encoding))
    got = [
        [r.slide, r.labels.patient, r.labels.site, r.labels.diagnosis, *r.labels.others.values()]
        for r in table.rows
    ]
    assert got == [[f"s{i}.svs", *(cell.strip() for cell in row)] for i, row in enumerate(rows)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.text("aZ 09,;éßÜ€“”", max_size=10), max_size=6))
def test_text_of_windows_comes_back_as_it_was_written(tmp_path, values):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=";")
    writer.writerows([["slide", "Größe"], *([f"s{i}", value] for i, value in enumerate(values))])
    table = read(tmp_path, buffer.getvalue().encode("cp1252"))
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


@pytest.mark.parametrize("content", [b"", b"\n \r\n,,\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused_with_what_it_needs(tmp_path, content):
    with pytest.raises(DatabaseError, match=r"labels\.csv: the file is empty"):
        read(tmp_path, content)


def test_files_that_are_not_there_or_are_folders_are_clear_errors(tmp_path):
    with pytest.raises(DatabaseError, match="there is no such file"):
        read_labels(tmp_path / "labels.csv")
    with pytest.raises(DatabaseError, match="this is a folder"):
        read_labels(tmp_path)


def test_a_stray_control_character_does_not_reach_the_database(tmp_path):
    table = read(
        tmp_path, "slide,patient,note\na.svs,P1,\x1b[31mred and a longer text without any more\n" * 3
    )
    assert table.rows[0].labels.others["note"].startswith("[31mred")


# Excel


def test_excel_cells_read_as_a_person_sees_them(tmp_path):
    rows = [
        ["Slide", "Patient", "number", "date", "moment", "share", "yes", "empty"],
        ["a.svs", 12, 12.0, date(2020, 1, 5), datetime(2020, 1, 5, 10, 30), 0.1 + 0.2, True, None],
    ]
    labels = read_labels(workbook(tmp_path, rows, {"B2": "00000"})).rows[0].labels
    assert labels == SlideLabels(
        patient="00012",
        others={
            "number": "12",
            "date": "2020-01-05",
            "moment": "2020-01-05T10:30:00",
            "share": "0.3",
            "yes": "TRUE",
            "empty": "",
        },
    )


def test_excel_rows_keep_their_numbers_past_empty_ones(tmp_path):
    table = read_labels(workbook(tmp_path, [[], ["slide", "site"], [], ["a", "x"], ["a", "y"]]))
    assert table.rows[0].line == 4 and "line 4 kept, not 5" in table.notes[0]


def test_cells_with_an_excel_error_are_empty_and_named(tmp_path):
    table = read_labels(workbook(tmp_path, [["slide", "site"], ["a", "#N/A"]]))
    assert table.rows[0].labels.site == "" and "B2 (#N/A)" in table.notes[0]


def test_the_first_sheet_with_something_in_it_is_read_and_named(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    book.create_sheet("hidden one").append(["slide", "site"])
    book["hidden one"].sheet_state = "hidden"
    book.create_sheet("cases").append(["slide", "organ"])
    book["cases"].append(["a", "kidney"])
    book.create_sheet("more").append(["x"])
    book.save(tmp_path / "labels.xlsx")
    table = read_labels(tmp_path / "labels.xlsx")
    assert table.rows[0].labels.site == "kidney"
    assert table.notes == ("Of 3 sheets only “cases” was read.",)


def test_a_cell_at_the_far_corner_of_a_sheet_costs_nothing(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["slide", "site"])
    book.active.append(["a", "kidney"])
    book.active["XFD9000"].number_format = "0"
    book.save(tmp_path / "labels.xlsx")
    table = read_labels(tmp_path / "labels.xlsx")
    assert len(table.rows) == 1 and table.others == ()


def repacked(path: Path, part: str, content: bytes, times: int) -> Path:
    """Write one part of a workbook anew, its middle repeated; what repeats takes next to no room in the file."""
    new = path.with_name("bomb.xlsx")
    before, middle, after = content.split(b"|")
    with (
        zipfile.ZipFile(path) as old,
        zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bomb,
    ):
        for info in old.infolist():
            if info.filename != part:
                bomb.writestr(info.filename, old.read(info))
        with bomb.open(part, "w") as file:
            file.write(before)
            for _ in range(times // 10_000):
                file.write(middle * 10_000)
            file.write(after)
    return new


SHEET = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>|%s|</sheetData></worksheet>'
STRINGS = b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">|<si><t>a</t></si>|</sst>'
READ_WITH_LITTLE = """
import resource, sys
from pathlib import Path
import openpyxl, napari_fish.labels.table as labels
kept = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (kept + 2**29, -1))
try:
    labels.read_labels(Path(sys.argv[1]))
except labels.DatabaseError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("part", "content", "times"),
    [
        ("xl/sharedStrings.xml", STRINGS, 5_000_000),
        ("xl/worksheets/sheet1.xml", SHEET % b"<row><c><v>1</v></c></row>", 12_000_000),
        ("xl/worksheets/sheet1.xml", SHEET % b'<row><c r="ALM1"><v>1</v></c></row>', 10_000),
        ("xl/worksheets/sheet1.xml", SHEET % b'<row r="999999999"><c><v>1</v></c></row>', 10_000),
    ],
)
def test_a_small_workbook_that_unfolds_to_gigabytes_is_refused(tmp_path, part, content, times):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["slide", "patient"])
    book.save(tmp_path / "a.xlsx")
    path = repacked(tmp_path / "a.xlsx", part, content, times)
    assert path.stat().st_size < 4 * 2**20
    run = subprocess.run(
        [sys.executable, "-c", READ_WITH_LITTLE, path], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-1000:]
    assert "bomb.xlsx: too large for a table of labels" in run.stdout


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


def test_of_a_workbook_with_too_many_rows_the_rest_is_not_read(tmp_path, monkeypatch):
    taken = []
    text_of = sheets._cell_text
    monkeypatch.setattr(
        sheets, "_cell_text", lambda cell, errors: taken.append(cell) or text_of(cell, errors)
    )
    monkeypatch.setattr(sheets, "MOST_ROWS", 10)
    path = workbook(tmp_path, [["slide"], *([f"{i}"] for i in range(500))])
    with pytest.raises(DatabaseError, match="too large for a table of labels"):
        read_labels(path)
    assert len(taken) < 20


@pytest.mark.parametrize("ending", ["\r", "\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_letters_and_lines_on_the_edge_of_a_piece_stay_whole(tmp_path, monkeypatch, encoding, ending):
    monkeypatch.setattr(sheets, "PIECE", 7)
    lines = ["slide,site", *(f'a{i},"Schädel{ending}und ü"' for i in range(50))]
    for last in ("", ending, f"{ending}\x1a", "\x1a\x1a"):
        table = read(tmp_path, (ending.join(lines) + last).encode(encoding))
        assert len(table.rows) == 50 and {row.labels.site for row in table.rows} == {f"Schädel{ending}und ü"}


def test_one_line_that_never_ends_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sheets, "LONGEST_LINE", 1000)
    assert read(tmp_path, "slide\n" + "a" * 998 + "\n").rows[0].slide == "a" * 998
    with pytest.raises(DatabaseError, match="too large for a table of labels"):
        read(tmp_path, "slide" + "," * 1000)


def test_a_table_with_thousands_of_columns_is_refused(tmp_path):
    with pytest.raises(DatabaseError, match="1000 columns at most"):
        read(tmp_path, "slide" + ",gene" * 2000 + "\na.svs" + ",1" * 2000 + "\n")


def test_a_workbook_is_known_by_its_content_not_by_its_name(tmp_path):
    path = workbook(tmp_path, [["slide"], ["a"]]).rename(tmp_path / "labels.csv")
    assert read_labels(path).rows[0].slide == "a"
    assert read_labels(written(tmp_path, "slide\tsite\nb\tx\n", "labels.xls")).rows[0].slide == "b"


def test_old_excel_files_are_refused_with_a_remedy(tmp_path):
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
    for name, content in (("labels.xls", ole), ("labels.xlsx", ole), ("labels.xls", b"\x09\x08\x00\x05" * 9)):
        with pytest.raises(DatabaseError, match=rf"{name}: .*old Excel.*[Ss]ave it as \.xlsx.*CSV"):
            read_labels(written(tmp_path, content, name))


def test_a_zip_file_that_is_no_workbook_is_refused(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "labels.xlsx", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    with pytest.raises(DatabaseError, match=r"labels\.xlsx: this is no Excel workbook.*Save the table"):
        read_labels(tmp_path / "labels.xlsx")
    truncated = workbook(tmp_path, [["slide"], ["a"]]).read_bytes()[:1500]
    with pytest.raises(DatabaseError, match="no Excel workbook"):
        read_labels(written(tmp_path, truncated, "labels.xlsx"))


def test_without_openpyxl_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    path = workbook(tmp_path, [["slide"], ["a"]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DatabaseError, match="pip install openpyxl"):
        read_labels(path)


def test_excel_is_not_imported_until_it_is_needed():
    code = "import sys, napari_fish.labels.table; sys.exit('openpyxl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Matching


def matched_slide(folder: Path, name: str, slides: list[str]) -> str | None:
    """Return the slide that a name in a labels file finds."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([["slide", "site"], [name, "x"]])
    labels = read(folder, buffer.getvalue()).match(slides).labels
    return next(iter(labels), None)


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


def test_a_row_that_fits_several_slides_is_not_applied_but_named(tmp_path):
    slides = ["a/1.svs", "b/1.svs", "b/2.svs"]
    matched = read(tmp_path, "slide,site\n1,x\n2,y\n").match(slides)
    assert matched.labels == {"b/2.svs": SlideLabels(site="y")}
    assert matched.unlabelled == ("a/1.svs", "b/1.svs") and matched.unknown == ()
    assert "“1” in line 2 (a/1.svs, b/1.svs)" in matched.notes[0]


def test_the_folder_decides_between_slides_of_one_name(tmp_path):
    matched = read(tmp_path, "slide,site\na/1,x\n/data/b/1.svs,y\n1.svs,z\n").match(
        ["a/1.svs", "b/1.svs", "1.svs"]
    )
    assert {slide: known.site for slide, known in matched.labels.items()} == {
        "a/1.svs": "x", "b/1.svs": "y", "1.svs": "z",
    }  # fmt: skip


def test_case_is_overlooked_only_as_a_last_resort(tmp_path):
    matched = read(tmp_path, "slide,site\na.svs,x\nA.svs,y\n").match(["A.svs", "a.svs"])
    assert matched.labels == {"a.svs": SlideLabels(site="x"), "A.svs": SlideLabels(site="y")}


def test_letters_with_accents_match_however_the_computer_writes_them(tmp_path):
    apart = unicodedata.normalize("NFD", "Präparat é.svs")
    assert matched_slide(tmp_path, "Präparat é", [apart]) == apart
    assert matched_slide(tmp_path, apart, ["Präparat é.svs"]) == "Präparat é.svs"


def test_an_absolute_path_from_another_computer_finds_a_moved_file_and_says_so(tmp_path):
    table = read(tmp_path, "slide,site\n/old/kidney/a.svs,x\nliver/b.svs,y\n")
    matched = table.match(["new/a.svs", "new/b.svs"])
    assert matched.labels == {"new/a.svs": SlideLabels(site="x")}
    assert matched.unknown == ("liver/b.svs",)
    assert "new/a.svs (“/old/kidney/a.svs”)" in matched.notes[0]


def test_a_moved_file_never_takes_the_place_of_the_right_one(tmp_path):
    table = read(tmp_path, "slide,site\n/old/b/1.svs,wrong\n/old/a/1.svs,right\n")
    matched = table.match(["a/1.svs"])
    assert matched.labels == {"a/1.svs": SlideLabels(site="right")}
    assert matched.unknown == ("/old/b/1.svs",) and matched.notes == ()


def test_rows_that_name_one_slide_in_two_ways_and_contradict_are_named(tmp_path):
    matched = read(tmp_path, "slide,site\na,x\na.svs,y\nb,z\nb.svs,z\n").match(["a.svs", "b.svs"])
    assert matched.labels == {"a.svs": SlideLabels(site="y"), "b.svs": SlideLabels(site="z")}
    assert matched.notes == ("Rows that contradict each other: a.svs (line 3 applied, not 2).",)


def test_rows_and_slides_without_each_other_are_told_apart(tmp_path):
    matched = read(tmp_path, "slide,site\na,x\ngone,y\n").match(["a.svs", "new.svs"])
    assert matched.unknown == ("gone",) and matched.unlabelled == ("new.svs",)


def test_when_nothing_fits_the_note_shows_both_sides(tmp_path):
    matched = read(tmp_path, "slide_id,site\n17,x\n").match(["a.svs"])
    assert "“slide_id”" in matched.notes[0] and "“17”" in matched.notes[0] and "“a.svs”" in matched.notes[0]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    slides=st.lists(
        st.builds("{}{}{}".format, st.sampled_from(["", "a/", "b/", "a/b/"]), st.text("xyX.1", min_size=1, max_size=3),
                  st.sampled_from([".svs", ".ome.tif", ".tif", ""])).filter(lambda s: s.split("/")[-1].strip(".")),
        unique=True, min_size=1, max_size=12,
    )
)  # fmt: skip
def test_every_slide_finds_the_row_with_its_own_path(tmp_path, slides):
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([["slide", "site"], *([slide, slide] for slide in slides)])
    matched = read(tmp_path, buffer.getvalue()).match(reversed(slides))
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


# Patients


def test_a_column_of_the_file_in_any_case_is_the_patient(tmp_path):
    table = read(tmp_path, "slide,patient,Block No,organ\na.svs,P1,B7,liver\n")
    labels = table.match(["a.svs"]).labels["a.svs"]
    for text, patient in (
        ("block no", "B7"), ("PATIENT", "P1"), ("Organ", "liver"), ("site", "liver"), ("slide", "a"),
    ):  # fmt: skip
        assert patient_rule(text, table)("a.svs", labels) == patient


def test_a_column_of_the_file_goes_before_one_of_ours_of_the_same_name(tmp_path):
    table = read(tmp_path, "slide,Site,organ\na.svs,Vienna,liver\n", columns={"site": "organ"})
    labels = table.match(["a.svs"]).labels["a.svs"]
    assert labels.site == "liver" and patient_rule("site", table)("a.svs", labels) == "Vienna"


@pytest.mark.parametrize("text", [None, ""])
def test_without_a_rule_the_patient_is_what_the_labels_say(text):
    assert patient_rule(text)("a.svs", SlideLabels("P1")) == "P1"


@pytest.mark.parametrize(
    ("expression", "patient"),
    [
        (r"^(TCGA-\w\w-\w{4})", "TCGA-DU-6399"),
        (r"TCGA-\w\w-\w{4}", "TCGA-DU-6399"),
        (r"(nothing)|TCGA-(\w\w)", "DU"),
        (r"^folder", ""),
        (r"^(x)?TCGA", ""),
    ],
)
def test_an_expression_finds_the_patient_in_the_file_name(expression, patient):
    assert patient_rule(expression)(f"folder/{TCGA}", SlideLabels("P1")) == patient


@pytest.mark.parametrize("text", ["(", "[a", "a{99999999999999999999}", "*"])
def test_what_is_neither_a_column_nor_an_expression_is_refused_with_the_columns(tmp_path, text):
    table = read(tmp_path, "slide,Block\na,1\n")
    with pytest.raises(DatabaseError, match=r"neither a column.*“slide”, “Block”.*nor a valid regular"):
        patient_rule(text, table)
    with pytest.raises(DatabaseError, match="there is none"):
        patient_rule(text)


def test_every_slide_gets_its_final_labels_with_and_without_a_file(tmp_path):
    table = read(tmp_path, "slide,patient,diagnosis,age\nA-1,P1,KIRC,61\n")
    matched = label_slides(["x/A-1.svs", "B-2.svs"], table, r"^(\w)-")
    assert matched.labels == {
        "x/A-1.svs": SlideLabels("A", "", "KIRC", {"age": "61"}),
        "B-2.svs": SlideLabels("B"),
    }
    assert matched.unlabelled == ("B-2.svs",)
    assert label_slides(["A-1.svs"], patient=r"^\w").labels == {"A-1.svs": SlideLabels("A")}
    assert label_slides(["A-1.svs"]).labels == {"A-1.svs": SlideLabels()}


def test_a_rule_that_finds_no_patient_at_all_is_noted(tmp_path):
    table = read(tmp_path, "slide,block\na,1\n")
    (note,) = label_slides(["a.svs"], table, "blok").notes
    assert "'blok'" in note and "“block”" in note and "“a.svs”" in note
