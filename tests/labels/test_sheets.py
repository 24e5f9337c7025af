"""Tables as cells of text, whatever they were read from."""

from __future__ import annotations

import pytest

from napari_fish.errors import DatabaseError
from napari_fish.labels.table import SlideLabels, read_labels
from tests.labels.files import read, workbook, written


def test_blank_cells_are_empty_and_values_are_stripped(tmp_path):
    table = read(tmp_path, " slide , Patient,site,x\n\n  a.svs ,\u00a0 ,  kidney  \n , , ,\n")
    assert table.rows[0].slide == "a.svs"
    assert table.rows[0].labels == SlideLabels(site="kidney", others={"x": ""})
    assert len(table.rows) == 1 and table.notes == ()


def test_cells_beyond_the_header_are_reported(tmp_path):
    table = read(tmp_path, "slide,patient\na.svs,P1,lost\nb.svs,P2\nc.svs,P3\n")
    assert any("beyond the last named column" in note and "line 2" in note for note in table.notes)


def test_a_single_column_is_enough(tmp_path):
    assert [row.slide for row in read(tmp_path, "slide\na.svs\nb.svs\n").rows] == ["a.svs", "b.svs"]


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


def test_a_table_with_thousands_of_columns_is_refused(tmp_path):
    with pytest.raises(DatabaseError, match="1000 columns at most"):
        read(tmp_path, "slide" + ",gene" * 2000 + "\na.svs" + ",1" * 2000 + "\n")


def test_a_workbook_is_known_by_its_content_not_by_its_name(tmp_path):
    path = workbook(tmp_path, [["slide"], ["a"]]).rename(tmp_path / "labels.csv")
    assert read_labels(path).rows[0].slide == "a"
    assert read_labels(written(tmp_path, "slide\tsite\nb\tx\n", "labels.xls")).rows[0].slide == "b"
