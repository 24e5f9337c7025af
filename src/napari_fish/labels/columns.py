"""Which column of a labels file means what, when people name columns as they please."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from napari_fish.errors import DatabaseError
from napari_fish.labels.sheets import Sheet
from napari_fish.names import OWN_COLUMNS
from napari_fish.texts import enumerated

_WORDS = {
    "slide": (
        "slide slideid slidename slidefile slidefilename slidepath slidebarcode slidesubmitterid "
        "wsi wsiid wsiname wsifile wsifilename wsipath svs svsfile svsname svspath "
        "filename file filepath image imageid imagename imagefile imagefilename imagepath path"
    ),
    "patient": (
        "patient patientid patientcode patientnumber patientno patientbarcode bcrpatientbarcode "
        "casesubmitterid casessubmitterid case caseid casenumber casebarcode subject subjectid "
        "participant participantid donor donorid individual individualid mrn pid submitterid"
    ),
    "site": (
        "site primarysite organ organsite anatomicalsite anatomicsite tissue tissuesite "
        "tissueororganoforigin bodysite bodypart topography"
    ),
    "diagnosis": (
        "diagnosis primarydiagnosis finaldiagnosis histologicaldiagnosis histologicdiagnosis dx label class "
        "classname classlabel subtype cancersubtype cancertype tumortype tumourtype histology "
        "histologicaltype histologictype diseasetype disease oncotreecode oncotree projectid"
    ),
    "stain": "stain stainname staintype staining stainingtype stainingmethod",
}
SYNONYMS: Mapping[str, tuple[str, ...]] = {own: tuple(words.split()) for own, words in _WORDS.items()}
"""Names of columns that are understood, without blanks and punctuation, the likeliest first."""


def chosen_columns(path: Path, header: tuple[str, ...], columns: Mapping[str, str]) -> dict[str, int]:
    """Return the number of the column for slide, patient, site, diagnosis and stain, where there is one."""
    for own, name in columns.items():
        if own not in SYNONYMS:
            raise DatabaseError(f"{path}: a column can be named for {', '.join(SYNONYMS)}, not for {own!r}.")
        if name and folded(name) not in map(folded, header):
            raise DatabaseError(f"{path}: there is no column {name!r}. It has {listed(header)}.")
    named = {own: [folded(h) for h in header].index(folded(name)) for own, name in columns.items() if name}
    plain = [re.sub(r"[\W_]", "", folded(name)) for name in header]
    free = {name: number for number, name in reversed([*enumerate(plain)]) if number not in named.values()}
    guessed = {
        own: next(free[name] for name in names if name in free)
        for own, names in SYNONYMS.items()
        if own not in columns and not free.keys().isdisjoint(names)
    }
    chosen = {own: (named | guessed)[own] for own in SYNONYMS if own in named or own in guessed}
    if "slide" not in chosen:
        raise DatabaseError(
            f"{path}: no column for the slides. It has {listed(header)}. Call the column with the file names "
            '“slide” in the first row, or say which one it is (columns={"slide": …} in Python).'
        )
    return chosen


def kept_names(sheet: Sheet, chosen: Mapping[str, int], notes: list[str]) -> dict[int, str]:
    """Return names for the further columns, by their number; none is like another or like one of ours."""
    taken = {*OWN_COLUMNS, *chosen}
    taken_later = {folded(name) for name in sheet.header}
    names: dict[int, str] = {}
    renamed: list[str] = []
    for number, header in enumerate(sheet.header):
        if number in chosen.values() or not (header or any(cells[number] for _, cells in sheet.rows)):
            continue
        name, count = header or f"column {number + 1}", 1
        while folded(name) in taken or (name != header and folded(name) in taken_later):
            count += 1
            name = f"{header or f'column {number + 1}'}_{count}"
        if name != header:
            renamed.append(f"column {number + 1}, “{header}”, is “{name}”")
        taken.add(folded(name))
        names[number] = name
    if renamed:
        notes.append(f"Renamed, to tell it from others: {enumerated(renamed)}.")
    return names


def folded(name: str) -> str:
    """Return a name as it is compared with others."""
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def listed(header: Iterable[str]) -> str:
    """Join the names of columns for a message."""
    return enumerated([f"“{name[:40]}”" for name in header if name]) or "no columns"
