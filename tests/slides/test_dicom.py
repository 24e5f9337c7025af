"""DICOM: which files are one slide is read from their headers, and from nothing else."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pydicom
import pytest
from pydicom.uid import UID, DeflatedExplicitVRLittleEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

from napari_fish.errors import SlideError
from napari_fish.slides import find_slides, open_slide
from napari_fish.slides.dicom import HEADS, dicom_series
from napari_fish.slides.identity import hash_files
from tests.slides.conftest import refer_to, write_dicom_header


def referring(folder: Path, home: Path, case: str) -> Path:
    """Copy a slide as another case, its files referring to series that are not theirs, each to another."""
    home.mkdir(parents=True)
    for number, file in enumerate(sorted(folder.glob("*.dcm"))):
        header = pydicom.dcmread(file)
        refer_to(header, [f"1.2.999.{number}"])
        header.SeriesInstanceUID = case
        header.PatientID = case
        header.save_as(home / file.name)
    return home


def test_each_dicom_series_of_a_flat_folder_is_a_slide(tmp_path: Path) -> None:
    for number, series in enumerate(("1.2.3", "1.2.3", "1.2.4")):
        write_dicom_header(tmp_path / f"{number}.DCM", series)
    assert [p.name for p in find_slides(tmp_path)] == ["0.DCM", "2.DCM"]


@pytest.mark.parametrize("undefined_length", [False, True])
@pytest.mark.parametrize("syntax", [ExplicitVRLittleEndian, ImplicitVRLittleEndian])
def test_series_that_are_only_referred_to_do_not_count(
    tmp_path: Path, syntax: UID, undefined_length: bool
) -> None:
    for number in range(4):
        write_dicom_header(
            tmp_path / f"{number}.dcm",
            "1.2.3",
            [f"1.2.999.{number}"],
            syntax=syntax,
            undefined_length=undefined_length,
        )
    assert {dicom_series(p) for p in tmp_path.iterdir()} == {"1.2.3"}
    assert list(find_slides(tmp_path)) == [tmp_path]


@pytest.mark.parametrize("undefined_length", [False, True])
def test_a_series_is_found_behind_very_many_references(tmp_path: Path, undefined_length: bool) -> None:
    many = [f"1.2.999.{number}" for number in range(3000)]
    path = write_dicom_header(tmp_path / "a.dcm", "1.2.3", many, undefined_length=undefined_length)
    assert path.stat().st_size > HEADS[0]
    assert dicom_series(path) == "1.2.3"


def test_cases_whose_files_refer_to_other_series_are_each_one_slide_with_its_own_hash(
    real_data: Path, tmp_path: Path
) -> None:
    original = real_data / "slides" / "cmu-1-small-region.dicom"
    one = referring(original, tmp_path / "s" / "one", "1.2.3")
    two = referring(original, tmp_path / "s" / "two", "1.2.4")
    assert list(find_slides(tmp_path / "s")) == [one, two]
    hashes = set()
    for folder in (one, two):
        with open_slide(folder) as slide:
            hashes.add(slide.content_hash)
            assert slide.content_hash == hash_files(folder.glob("*.dcm")), "all files of a slide count"
    assert len(hashes) == 2, "they differ in the patient, and so in content"


def test_the_hash_of_no_file_is_none() -> None:
    with pytest.raises(ValueError, match="tell one slide from another"):
        hash_files([])


def test_a_damaged_header_names_no_series_or_one_and_never_fails(tmp_path: Path) -> None:
    path = write_dicom_header(tmp_path / "a.dcm", "1.2.3", ["1.2.999.1"], undefined_length=True)
    whole = path.read_bytes()
    dice = random.Random(7)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(4):
            data[dice.randrange(132, len(data))] = dice.randrange(256)
        path.write_bytes(bytes(data)[: dice.randrange(132, len(data) + 1)])
        assert isinstance(dicom_series(path), str | None)
        with pytest.raises(SlideError, match=r"a\.dcm"):
            open_slide(path)


def test_a_compressed_header_is_not_inflated_without_bounds(tmp_path: Path) -> None:
    path = write_dicom_header(tmp_path / "a.dcm", "1.2.3", syntax=DeflatedExplicitVRLittleEndian)
    start = path.read_bytes()
    at = 144 + int.from_bytes(start[140:144], "little")  # behind what says how the rest is compressed
    inflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = inflate.compress(struct.pack("<HH2sHI", 8, 1, b"OB", 0, 2**27) + bytes(2**27))
    body += inflate.compress(struct.pack("<HH2sH", 0x20, 0xE, b"UI", 6) + b"1.2.3\0") + inflate.flush()
    path.write_bytes(start[:at] + body)
    assert path.stat().st_size > HEADS[0]
    assert dicom_series(path) is None
