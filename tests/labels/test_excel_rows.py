"""Excel workbooks: as a person sees them, and never more of one than can be held."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from datetime import date, datetime
from pathlib import Path

import pytest

from napari_fish.errors import DatabaseError
from napari_fish.labels import excel_rows, sheets
from napari_fish.labels.table import SlideLabels, read_labels
from tests.labels.files import workbook, written


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
    table = read_labels(workbook(tmp_path, [["slide", "site"], ["a", "kidney"]], {"XFD9000": "0"}))
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
from napari_fish.errors import DatabaseError
kept = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (kept + 2**29, -1))
try:
    labels.read_labels(Path(sys.argv[1]))
except DatabaseError as error:
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
    path = repacked(workbook(tmp_path, [["slide", "patient"]]), part, content, times)
    assert path.stat().st_size < 4 * 2**20
    run = subprocess.run(
        [sys.executable, "-c", READ_WITH_LITTLE, path], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-1000:]
    assert "bomb.xlsx: too large for a table of labels" in run.stdout


def test_of_a_workbook_with_too_many_rows_the_rest_is_not_read(tmp_path, monkeypatch):
    taken = []
    text_of = excel_rows._cell_text
    monkeypatch.setattr(
        excel_rows, "_cell_text", lambda cell, errors: taken.append(cell) or text_of(cell, errors)
    )
    monkeypatch.setattr(sheets, "MOST_ROWS", 10)
    path = workbook(tmp_path, [["slide"], *([f"{i}"] for i in range(500))])
    with pytest.raises(DatabaseError, match="too large for a table of labels"):
        read_labels(path)
    assert len(taken) < 20


def test_old_excel_files_are_refused_with_a_remedy(tmp_path):
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
    for name, content in (("labels.xls", ole), ("labels.xlsx", ole), ("labels.xls", b"\x09\x08\x00\x05" * 9)):
        with pytest.raises(DatabaseError, match=rf"{name}: .*old Excel.*[Ss]ave it as \.xlsx.*CSV"):
            read_labels(written(tmp_path, content, name))


def test_a_zip_file_that_is_no_workbook_is_refused(tmp_path):
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
