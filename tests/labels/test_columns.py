"""Which column means what."""

from __future__ import annotations

import pytest

from napari_fish.errors import DatabaseError
from napari_fish.store.records import SlideRecord
from tests.labels.files import read


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
