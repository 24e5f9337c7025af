"""The labels file: what people know of their slides, read from a table and matched to the slides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from napari_fish.labels.columns import chosen_columns, folded, kept_names
from napari_fish.labels.sheets import read_sheet
from napari_fish.labels.slide_names import Found, SlideNames, clean_path
from napari_fish.texts import enumerated


@dataclass(frozen=True)
class SlideLabels:
    """What the labels say of a slide; empty where they say nothing.

    Attributes
    ----------
    patient, site, diagnosis
        Empty where not known.
    others
        Any further columns of the file, the stain under ``stain``.
    """

    patient: str = ""
    site: str = ""
    diagnosis: str = ""
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelRow:
    """One row of the file: its line (from 1), the slide as written there, what it says."""

    line: int
    slide: str
    labels: SlideLabels


@dataclass(frozen=True)
class Matched:
    """Labels that found their slides.

    Attributes
    ----------
    labels
        By id of the slide.
    unknown
        Slides of the file, as written there, that are not among the slides.
    unlabelled
        Ids of slides that no row is about.
    notes
        What was not applied, and why.
    """

    labels: dict[str, SlideLabels]
    unknown: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelTable:
    """A labels file as it was understood.

    Attributes
    ----------
    path
        Where it was read from.
    understood
        Which column of the file was taken as slide, patient, site, diagnosis and stain.
    others
        Names of the further columns, as they are kept.
    rows
        One for each slide.
    notes
        What had to be guessed, renamed or left out.
    kept_as
        What each column of the file, in its order, is kept as.
    """

    path: Path
    understood: dict[str, str]
    others: tuple[str, ...]
    rows: tuple[LabelRow, ...]
    notes: tuple[str, ...]
    kept_as: tuple[tuple[str, str], ...]

    def describe(self) -> str:
        """Say in a line what was understood."""
        words = ", ".join(f"{own} = “{header}”" for own, header in self.understood.items())
        return words + (f"; further columns: {', '.join(self.others)}" if self.others else "")

    def column(self, name: str) -> str | None:
        """Return what a column is kept as, given by its name in the file or else here, in any case."""
        names = {own: own for own in self.understood} | {other: other for other in self.others}
        by_name = {folded(key): kept for key, kept in reversed([*self.kept_as, *names.items()])}
        return by_name.get(folded(name))

    def match(self, slides: Iterable[str]) -> Matched:
        """Give the rows to slides.

        Parameters
        ----------
        slides
            Ids: POSIX paths with extension, relative to the folder of the slides.

        See Also
        --------
        SlideNames.find : how names are compared.
        """
        slides = tuple(dict.fromkeys(slides))
        names = SlideNames(slides)
        claims: dict[str, list[tuple[Found, LabelRow]]] = {}
        unknown: list[LabelRow] = []
        ambiguous: list[str] = []
        for row in self.rows:
            found = names.find(row.slide)
            if len(found.slides) == 1:
                claims.setdefault(found.slides[0], []).append((found, row))
            elif found.slides:
                ambiguous.append(f"“{row.slide}” in line {row.line} ({', '.join(found.slides[:3])})")
            else:
                unknown.append(row)
        labels: dict[str, SlideLabels] = {}
        contradictions: list[str] = []
        moved: list[str] = []
        for slide, claim in claims.items():
            best, row = min(claim, key=lambda item: item[0].looseness)
            labels[slide] = row.labels
            if best.elsewhere:
                moved.append(f"{slide} (“{row.slide}”)")
            lost = [other for found, other in claim if found.elsewhere and other is not row]
            unknown += lost
            against = [o for _, o in claim if o not in lost and o.labels != row.labels]
            if against:
                lines = ", ".join(str(other.line) for other in against)
                contradictions.append(f"{slide} (line {row.line} applied, not {lines})")
        notes: list[str] = []
        if ambiguous:
            notes.append(
                f"Not applied, as several slides fit: {enumerated(ambiguous)}. Write their folders too."
            )
        if contradictions:
            notes.append(f"Rows that contradict each other: {enumerated(contradictions)}.")
        if moved:
            notes.append(f"Matched by file name, though the folder is another: {enumerated(moved)}.")
        if self.rows and slides and not labels:
            notes.append(
                f"No row fits any slide. “{self.understood['slide']}” was taken as the slide "
                f"(the first is “{self.rows[0].slide}”); the file of the first slide is “{slides[0]}”."
            )
        unlabelled = tuple(slide for slide in slides if slide not in labels)
        in_order = tuple(row.slide for row in sorted(unknown, key=lambda row: row.line))
        return Matched(labels, in_order, unlabelled, tuple(notes))


def read_labels(path: Path, *, columns: Mapping[str, str] | None = None) -> LabelTable:
    """Read a labels file: CSV, TSV or Excel, one row a slide.

    Parameters
    ----------
    path
        The file.
    columns
        Which column of the file is the slide, patient, site, diagnosis or stain, where a guess would be
        wrong; an empty name means that none is.

    Raises
    ------
    DatabaseError
        When the file cannot be read, or has no column for the slides.
    """
    path = Path(path)
    sheet = read_sheet(path)
    notes = list(sheet.notes)
    chosen = chosen_columns(path, sheet.header, columns or {})
    names = kept_names(sheet, chosen, notes)
    rows: dict[str, LabelRow] = {}
    nameless: list[str] = []
    contradictions: dict[str, list[str]] = {}
    for line, cells in sheet.rows:
        own = {name: cells[number] for name, number in chosen.items()}
        slide = own.pop("slide")
        if not clean_path(slide):
            nameless.append(str(line))
            continue
        stain = {"stain": own.pop("stain")} if "stain" in own else {}
        labels = SlideLabels(**own, others=stain | {name: cells[number] for number, name in names.items()})
        first = rows.setdefault(clean_path(slide), LabelRow(line, slide, labels))
        if first.labels != labels:
            contradictions.setdefault(clean_path(slide), []).append(str(line))
    if nameless:
        notes.append(f"Rows without a slide were left out ({len(nameless)}): line {enumerated(nameless)}.")
    if contradictions:
        found = [
            f"{rows[k].slide} (line {rows[k].line} kept, not {', '.join(v)})"
            for k, v in contradictions.items()
        ]
        notes.append(f"Rows that contradict each other: {enumerated(found)}.")
    if not rows:
        notes.append("The file has no row about a slide, only the names of columns.")
    own_of = {number: own for own, number in reversed(chosen.items())}
    return LabelTable(
        path=path,
        understood={own: sheet.header[number] for own, number in chosen.items()},
        others=tuple(names.values()),
        rows=tuple(rows.values()),
        notes=tuple(notes),
        kept_as=tuple(
            (sheet.header[n], kept) for n, kept in sorted((names | own_of).items()) if sheet.header[n]
        ),
    )
