"""Whose slide it is: as the labels say, as a column of theirs says, or as the name of the file does."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace

from napari_fish.errors import DatabaseError
from napari_fish.labels.columns import listed
from napari_fish.labels.slide_names import without_ending
from napari_fish.labels.table import LabelTable, Matched, SlideLabels

PatientRule = Callable[[str, SlideLabels], str]
"""The patient of a slide, given by its id, and what the labels say of it."""


def patient_rule(text: str | None, table: LabelTable | None = None) -> PatientRule:
    """Return how to tell the patient of a slide.

    Parameters
    ----------
    text
        A column of the labels file; or else a regular expression to be searched in the file name, whose
        first group (or whole match, where it has no groups) is the patient. By default, and where empty,
        the patient is what the labels say.
    table
        The labels file, if there is one.

    Raises
    ------
    DatabaseError
        When the text is neither a column nor a valid expression.
    """
    if not text:
        return lambda slide, labels: labels.patient
    column = None if table is None else table.column(text)
    if column == "slide":
        return lambda slide, labels: without_ending(_file_name(slide))
    if column in ("patient", "site", "diagnosis"):
        return lambda slide, labels: str(getattr(labels, column))
    if column is not None:
        return lambda slide, labels: labels.others.get(column, "")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what may mean something else in a future Python
            expression = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise DatabaseError(
            f"--patient {text!r} is neither a column of the labels file ({_columns_of(table)}) nor a valid regular "
            f"expression ({error}). Name a column, or an expression that finds the patient in a file name, "
            r"such as ^(TCGA-\w\w-\w{4})."
        ) from error

    def searched(slide: str, labels: SlideLabels) -> str:
        match = expression.search(_file_name(slide))
        if match is None:
            return ""
        groups = match.groups() or (match[0],)
        return next((group.strip() for group in groups if group is not None), "")

    return searched


def label_slides(
    slides: Iterable[str], table: LabelTable | None = None, patient: str | None = None
) -> Matched:  # fmt: skip
    """Return what is known of every slide, those without a row included, with the patient as asked for.

    Parameters
    ----------
    slides
        Ids: POSIX paths with extension, relative to the folder of the slides.
    table
        The labels file, if there is one.
    patient
        A column or a regular expression, see `patient_rule`.
    """
    slides = tuple(dict.fromkeys(slides))
    rule = patient_rule(patient, table)
    matched = Matched({}, (), slides) if table is None else table.match(slides)
    labels = {slide: matched.labels.get(slide, SlideLabels()) for slide in slides}
    labels = {slide: replace(known, patient=rule(slide, known)) for slide, known in labels.items()}
    notes = matched.notes
    if patient and labels and not any(known.patient for known in labels.values()):
        note = (
            f"--patient {patient!r} gives no patient for any slide. Columns of the labels file: "
            f"{_columns_of(table)}; the file of the first slide is “{slides[0]}”."
        )
        notes = (*notes, note)
    return replace(matched, labels=labels, notes=notes)


def _file_name(slide: str) -> str:
    return slide.rpartition("/")[2]


def _columns_of(table: LabelTable | None) -> str:
    return "there is none" if table is None else listed([header for header, _ in table.kept_as])
