"""Files that are not what they should be: the others do not suffer, and nothing is passed over without a word."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import tifffile

from napari_fish.building.build import build
from napari_fish.building.masks import MaskFile
from napari_fish.building.outlook import outlook
from napari_fish.building.params import BuildParams
from napari_fish.building.survey import candidates, survey
from napari_fish.database.care import remove_slides
from napari_fish.errors import DatabaseError, FishError, SlideError
from napari_fish.slides import find_slides, open_slide
from napari_fish.slides.identity import EDGE_BYTES, stamp
from tests.building.test_build import fates, records
from tests.cli.test_cli import run
from tests.slides.conftest import make_scene, write_image, write_omezarr
from tests.tiny import write_empty_slide, write_slide

pytestmark = pytest.mark.usefixtures("quick")
IN_2300 = 10_413_792_000 * 10**9


def damaged_copy(good: Path, copy: Path) -> Path:
    """Copy a slide with damage where its content is not sampled."""
    shutil.copy(good, copy)
    with tifffile.TiffFile(good) as tiff:
        page = tiff.pages[0]
        tiles = list(zip(page.dataoffsets, page.databytecounts, strict=True))
    with copy.open("r+b") as file:
        for offset, count in tiles:
            if offset < EDGE_BYTES:
                continue
            before = _hash(copy)
            file.seek(offset)
            kept = file.read(count)
            file.seek(offset)
            file.write(b"\xff" * count)
            file.flush()
            if _hash(copy) == before:
                return copy
            file.seek(offset)
            file.write(kept)
            file.flush()
    raise AssertionError("every tile is sampled")


def _hash(path: Path) -> str:
    with open_slide(path) as slide:
        return slide.content_hash


@pytest.mark.parametrize(("bad", "good"), [("a.tif", "b.tif"), ("b.tif", "a.tif")])
def test_a_damaged_copy_does_not_keep_the_good_one_out(tmp_path: Path, bad: str, good: str) -> None:
    slides, database = tmp_path / "s", tmp_path / "x.fish"
    write_slide(slides / good)
    damaged_copy(slides / good, slides / bad)
    assert _hash(slides / bad) == _hash(slides / good), "otherwise this shows nothing"
    summary = build(slides, database)
    assert summary.slides == 1
    assert fates(summary)[good] == "added"
    assert records(database)[good].path == f"s/{good}"


def test_three_copies_of_which_the_last_is_good_give_one_slide(tmp_path: Path) -> None:
    slides = tmp_path / "s"
    write_slide(slides / "c.tif")
    for name in ("a.tif", "b.tif"):
        damaged_copy(slides / "c.tif", slides / name)
    summary = build(slides, tmp_path / "x.fish")
    assert fates(summary) == {"a.tif": "quarantined", "b.tif": "quarantined", "c.tif": "added"}


def test_a_file_of_the_year_2300_is_built_and_known_again(tmp_path: Path) -> None:
    path = write_slide(tmp_path / "s" / "a.tif")
    os.utime(path, ns=(IN_2300, IN_2300))
    if path.stat().st_mtime_ns != IN_2300:
        pytest.skip("this file system keeps no such times")
    assert build(tmp_path / "s", tmp_path / "x.fish").counts == {"added": 1}
    assert build(tmp_path / "s", tmp_path / "x.fish").counts == {"unchanged": 1}


def test_links_in_a_circle_inside_a_slide_are_followed_once(tmp_path: Path) -> None:
    path = write_omezarr(tmp_path / "a.zarr", make_scene(64, 64), levels=1)
    before = stamp(path)[0]
    for name in ("one", "two", "three"):
        (path / name).symlink_to(path, target_is_directory=True)
    assert stamp(path)[0] == before


@pytest.mark.parametrize("use", ["slide", "labels", "mask", "vms", "dicom"])
def test_a_pipe_is_refused_at_once_wherever_it_is(tmp_path: Path, real_data: Path, use: str) -> None:
    pipe = tmp_path / "pipe.tif"
    os.mkfifo(pipe)
    slide = write_slide(tmp_path / "s" / "a.tif")
    if use == "slide":
        summary = build(pipe, tmp_path / "x.fish")
        assert "neither a file nor a folder" in summary.quarantined[0].reason
    elif use == "labels":
        with pytest.raises(DatabaseError, match=r"pipe\.tif: this is no ordinary file"):
            build(slide, tmp_path / "x.fish", pipe)
    elif use == "mask":
        summary = build(slide, tmp_path / "x.fish", params=BuildParams(mask=str(pipe)))
        assert "no ordinary file" in summary.quarantined[0].reason
        with pytest.raises(FishError, match="no ordinary file"):
            MaskFile(pipe).read()
    elif use == "vms":
        (tmp_path / "a.vms").write_text("[Virtual Microscope Specimen]\nImageFile=pipe.tif\n")
        with pytest.raises(SlideError, match=r"a\.vms: pipe\.tif is no ordinary file"):
            open_slide(tmp_path / "a.vms")
    else:
        folder = shutil.copytree(real_data / "slides" / "cmu-1-small-region.dicom", tmp_path / "d")
        folder.chmod(0o755)
        os.mkfifo(folder / "pipe.dcm")
        with pytest.raises(SlideError, match=r"pipe\.dcm is no ordinary file"):
            open_slide(folder)


def test_only_the_pictures_that_a_vms_slide_names_belong_to_it(tmp_path: Path) -> None:
    (tmp_path / "a.vms").write_bytes(
        b"[Virtual Microscope Specimen]\r\nImageFile=A-0.jpg\r\nImageFile(1,0)=a-1.jpg\r\nMapFile=a_map2.jpg\r\n"
        b"MacroImage=a_macro.jpg\r\nOptimisationFile=a.opt\r\n"
    )
    for name in ("a-0.jpg", "a-1.jpg", "a_macro.jpg", "a_map2.jpg", "another.jpg", "x.jpeg"):
        (tmp_path / name).touch()
    assert [p.name for p in find_slides(tmp_path)] == ["a.vms", "another.jpg", "x.jpeg"]


@pytest.mark.parametrize("ending", [".ptif", ".ptiff", ".qptiff"])
def test_pyramids_of_any_ending_are_built(tmp_path: Path, ending: str) -> None:
    write_slide(tmp_path / "s" / f"a{ending}")
    assert fates(build(tmp_path / "s", tmp_path / "x.fish")) == {f"a{ending}": "added"}


def test_files_of_formats_that_are_not_read_are_counted_and_named(tmp_path: Path) -> None:
    slides, told = tmp_path / "s", "4 files of formats that are not read: 2 .vsi, 1 .bmp, 1 .lif."
    write_slide(slides / "a.tif")
    for name in ("a.vsi", "sub/B.VSI", "c.lif", "d.bmp", "notes.txt", "labels.csv"):
        (slides / name).parent.mkdir(exist_ok=True)
        (slides / name).touch()
    assert dict(survey(slides, tmp_path / "x.fish").unread) == {".vsi": 2, ".lif": 1, ".bmp": 1}
    assert dict(outlook(slides, tmp_path / "x.fish").unread) == {".vsi": 2, ".lif": 1, ".bmp": 1}
    summary = build(slides, tmp_path / "x.fish")
    assert told in map(str, summary.notes) and told in str(summary)
    (slides / "a.tif").unlink()
    with pytest.raises(SlideError, match=r"no slides.*2 \.vsi"):
        candidates(slides)


def test_a_bad_file_is_no_failure_of_a_run_that_does_not_meet_it(tmp_path: Path, capsys) -> None:
    write_slide(tmp_path / "one" / "a.tif")
    write_empty_slide(tmp_path / "one" / "glass.tif")
    write_slide(tmp_path / "two" / "b.tif", "normal", 2)
    database = tmp_path / "x.fish"
    assert run(capsys, "build", tmp_path / "one", "-o", database)[0] == 3
    code, out, _ = run(capsys, "add", database, tmp_path / "two")
    assert code == 0
    assert "quarantined  glass.tif" in out and f"napari-fish remove {database} FILE" in out
    assert run(capsys, "add", database, tmp_path / "one")[0] == 3, "it was tried again"


def test_a_dismissed_file_is_left_alone_until_it_changes(tmp_path: Path, capsys) -> None:
    slides, database = tmp_path / "s", tmp_path / "x.fish"
    write_slide(slides / "a.tif")
    (slides / "sub").mkdir()
    write_empty_slide(slides / "sub" / "glass.tif")
    assert run(capsys, "build", slides, "-o", database)[0] == 3
    code, out, _ = run(capsys, "remove", database, slides / "sub" / "glass.tif")
    assert (code, out.strip()) == (0, "Removed: sub/glass.tif")
    code, out, _ = run(capsys, "build", slides, "-o", database)
    assert code == 0 and "quarantined" not in out
    assert "left alone until they change: sub/glass.tif" in out
    assert survey(slides, database).to_do == ()
    write_slide(slides / "sub" / "glass.tif", "normal", 3)
    assert build(slides, database).counts == {"unchanged": 1, "added": 1}


def test_what_is_neither_a_slide_nor_in_quarantine_cannot_be_removed(tmp_path: Path) -> None:
    slides, database = tmp_path / "s", tmp_path / "x.fish"
    write_slide(slides / "a.tif")
    write_empty_slide(slides / "glass.tif")
    build(slides, database)
    with pytest.raises(DatabaseError, match="no slide 'other'"):
        remove_slides(database, ["glass", "other"])
    assert [bad.slide for bad in build(slides, database).quarantined] == ["glass.tif"], "all or nothing"
    assert remove_slides(database, ["glass", "a.tif"]) == ["a.tif", "glass.tif"]
    assert build(slides, database).counts == {"added": 1}


def test_a_folder_with_nothing_but_pictures_of_a_named_file_is_read_as_that_file(tmp_path: Path) -> None:
    path = write_image(tmp_path / "a.png", make_scene(64, 64))
    assert [one.path for one in candidates(path)] == [path]
