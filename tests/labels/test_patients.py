"""Whose slide it is."""

from __future__ import annotations

import pytest

from napari_fish.errors import DatabaseError
from napari_fish.labels.patients import label_slides, patient_rule
from napari_fish.labels.table import SlideLabels
from tests.labels.files import TCGA, read


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
