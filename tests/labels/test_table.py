"""The labels file as a whole: its rows and the slides they find; nothing happens silently."""

from __future__ import annotations

from napari_fish.labels.table import SlideLabels, read_labels
from tests.labels.files import read


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


def test_rows_without_a_slide_are_left_out_and_counted(tmp_path):
    table = read(tmp_path, "slide,patient\n,P1\na.svs,P2\n ,P3\n")
    assert [row.slide for row in table.rows] == ["a.svs"]
    assert any("(2): line 2, 4" in note for note in table.notes)


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


def test_a_row_that_fits_several_slides_is_not_applied_but_named(tmp_path):
    slides = ["a/1.svs", "b/1.svs", "b/2.svs"]
    matched = read(tmp_path, "slide,site\n1,x\n2,y\n").match(slides)
    assert matched.labels == {"b/2.svs": SlideLabels(site="y")}
    assert matched.unlabelled == ("a/1.svs", "b/1.svs") and matched.unknown == ()
    assert "“1” in line 2 (a/1.svs, b/1.svs)" in matched.notes[0]


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
