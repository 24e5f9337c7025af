"""What a build makes of labels: which slide gets what, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from napari_fish.building.survey import Candidate
from napari_fish.labels.patients import label_slides, patient_rule
from napari_fish.labels.table import LabelTable, Matched, SlideLabels
from napari_fish.store import SlideRecord
from napari_fish.store.protocol import Catalogue
from napari_fish.store.records import with_values
from napari_fish.texts import enumerated

"""The parameter that keeps the expression by which file names tell the patient."""


def labels_of(
    found: Sequence[Candidate], table: LabelTable | None, patient: str | None, catalogue: Catalogue
) -> Matched:
    """Return what is known of slides; where nobody says who the patient is, the expression used before does."""
    matched = label_slides([one.slide for one in found], table, patient)
    remembered = catalogue.facts.patient
    if patient is not None or not remembered:
        return matched
    rule = patient_rule(remembered)
    labels = {
        slide: said if said.patient else replace(said, patient=rule(slide, said))
        for slide, said in matched.labels.items()
    }
    return replace(matched, labels=labels)


def remember_patient_rule(catalogue: Catalogue, rule: str | None, table: LabelTable | None) -> None:
    """Keep an expression that tells the patient by the file name: queries have file names, too."""
    if rule and (table is None or table.column(rule) is None):
        catalogue.remember(patient=rule)


def with_labels(record: SlideRecord, said: SlideLabels) -> SlideRecord:
    """Return a record with what labels say; where they say nothing, it stays as it was."""
    return replace(
        record,
        patient=said.patient or record.patient,
        site=said.site or record.site,
        diagnosis=said.diagnosis or record.diagnosis,
        labels=with_values(record.labels, {name: value for name, value in said.others.items() if value}),
    )


def label_notes(table: LabelTable | None, matched: Matched) -> list[str]:
    """Say what was made of the labels."""
    if table is None:
        return list(matched.notes)
    notes = [f"Labels understood: {table.describe()}.", *table.notes, *matched.notes]
    if matched.unknown:
        notes.append(f"Labels for slides that are not here: {enumerated(matched.unknown)}.")
    if matched.unlabelled:
        notes.append(f"Slides without labels: {enumerated(matched.unlabelled)}.")
    return notes
