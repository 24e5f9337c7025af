"""Before a build: what is there, what the labels say, how long it will take. Plain values, no widgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_fish._napari.database.build_job import Choices
from napari_fish._napari.jobs.notify import as_in_widgets, in_words
from napari_fish.building.outlook import Outlook, outlook
from napari_fish.building.settings import ChosenEncoder, choose_encoder
from napari_fish.errors import DatabaseError, FishError
from napari_fish.labels.patients import label_slides
from napari_fish.labels.sheets import read_sheet
from napari_fish.labels.table import read_labels
from napari_fish.slides.finding import told_unread
from napari_fish.slides.opening import expanded
from napari_fish.store.opening import open_catalogue
from napari_fish.texts import count, duration, enumerated, in_bytes

ROLES = ("slide", "patient", "site", "diagnosis", "stain")
"""What a column of a labels file can be."""


@dataclass(frozen=True)
class Understood:
    """A labels file as it was understood.

    Attributes
    ----------
    header
        Its columns.
    columns
        Which of them is slide, patient, site, diagnosis and stain, as far as known.
    labelled, slides
        Slides that a row is about, and all slides.
    patients
        How many there are.
    notes
        What the user should know.
    problem
        Why it cannot be used; empty if it can.
    """

    header: tuple[str, ...] = ()
    columns: Mapping[str, str] | None = None
    labelled: int = 0
    slides: int = 0
    patients: int = 0
    notes: tuple[str, ...] = ()
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        text = f"{self.labelled} of {self.slides} slides labelled, {self.patients} patients."
        return " ".join([text, *self.notes])


def understand(
    labels: str, columns: Mapping[str, str], slides: tuple[str, ...], patient: str | None
) -> Understood:
    """Read a labels file and match it to slides, given by id; a file that cannot be used says why."""
    path = expanded(labels) if labels else None
    header: tuple[str, ...] = ()
    try:
        header = read_sheet(path).header if path else ()
        table = read_labels(path, columns=columns) if path else None
        matched = label_slides(slides, table, patient)
    except DatabaseError as error:
        return Understood(header, columns, problem=in_words(error))
    notes = [*(table.notes if table else ()), *matched.notes]
    if table is not None and matched.unlabelled and len(matched.unlabelled) < len(slides):
        notes.append(f"Without labels: {enumerated(matched.unlabelled[:4])}.")
    patients = {known.patient.casefold() for known in matched.labels.values() if known.patient}
    return Understood(
        header=header,
        columns=table.understood if table else {},
        labelled=len(slides) - len(matched.unlabelled),
        slides=len(slides),
        patients=len(patients),
        notes=tuple(as_in_widgets(note) for note in notes),
    )


@dataclass(frozen=True)
class Prospect:
    """What a build will be like.

    Attributes
    ----------
    outlook
        Slides, patches, bytes.
    labels
        What the labels say; None where there is neither a labels file nor a patient rule.
    rate
        Patches per second, as measured on this machine.
    device
        Where: cpu, cuda, …
    """

    outlook: Outlook
    labels: Understood | None
    rate: float | None
    device: str

    @property
    def seconds(self) -> float | None:
        """How long the build will take, about."""
        return None if self.rate is None else self.outlook.patches / self.rate

    def __str__(self) -> str:
        seen = self.outlook
        lines = [f"{count(len(seen.found), 'slide')} found, {seen.done} already done, {seen.to_do} to do."]
        if seen.unread:
            lines.append(told_unread(seen.unread))
        if seen.patches:
            what = f"About {count(seen.patches, 'patch')}"
            if self.seconds is not None:
                what += f", {duration(self.seconds)} on {self.device.upper()} ({self.rate:.2g} a second, measured here)"
            lines.append(f"{what}; about {in_bytes(seen.size)} on disk, {in_bytes(seen.free)} free.")
        if seen.size > seen.free:
            lines.append("There is too little room on this disk.")
        if seen.quarantined:
            lines.append(f"{count(len(seen.quarantined), 'slide')} could not be read by an earlier build.")
        return "\n".join(lines)


def look(choices: Choices, *, progress: Any, should_stop: Any) -> Prospect:
    """Look what a build would do; takes seconds, and minutes the first time on a slow machine."""
    seen = outlook(
        choices.slides, choices.database, choices.params, progress=progress, should_stop=should_stop
    )
    names = tuple(one.slide for one in seen.found)
    labels = None
    if choices.labels or choices.params.patient:
        labels = understand(choices.labels, choices.columns, names, choices.params.patient)
    params, place = choices.params_there, expanded(choices.database)
    catalogue = open_catalogue(place) if seen.encoder else None
    try:
        chosen = choose_encoder(catalogue, params.encoder, params.device)
    finally:
        if catalogue is not None:
            catalogue.close()
    rate, device = measured_rate(chosen, seen.to_do > 0)
    return Prospect(seen, labels, rate, device)


def measured_rate(chosen: ChosenEncoder, measure: bool) -> tuple[float | None, str]:
    """Return patches per second of an encoder, and on which device; measured if need be."""
    from napari_fish.encode.bundle.device import keep_triton_out, load_torch_libraries, pick_device
    from napari_fish.encode.rate import known_rate, measure_rate, remember_rate

    load_torch_libraries()
    keep_triton_out()
    kind = str(pick_device(chosen.device))
    rate = known_rate(chosen.card.sha256, kind)
    if rate is None and measure:
        try:
            rate = measure_rate(chosen.load())
        except FishError:
            return None, kind  # the build will say what is wrong, and it can be another's business to mend it
        remember_rate(chosen.card.sha256, kind, rate)
    return rate, kind


def suggested_place(slides: str) -> str:
    """Return where the database of a folder of slides may go: beside it."""
    folder = Path(slides)
    return str(folder.parent / f"{folder.name if folder.is_dir() else folder.stem}.fish") if slides else ""


def suggested_labels(slides: str) -> str:
    """Return the labels file that lies among slides; empty where there is none."""
    places = (Path(slides) / f"labels{ending}" for ending in (".csv", ".tsv", ".xlsx"))
    return next((str(place) for place in places if place.is_file()), "") if slides else ""
