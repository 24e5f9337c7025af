"""Care of a database beside the viewer: each a plain function that says what it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from napari_fish._napari.jobs.notify import as_in_widgets
from napari_fish.database import care
from napari_fish.errors import DatabaseError
from napari_fish.store.copy import export
from napari_fish.store.opening import open_store
from napari_fish.texts import count, enumerated


def remove(path: Path, slides: Sequence[str], *, progress: Any, should_stop: Any) -> str:
    """Forget slides."""
    gone = care.remove_slides(path, slides)
    return f"{count(len(gone), 'slide')} removed; their files stay where they are."


def verify(path: Path, *, progress: Any, should_stop: Any) -> str:
    """Read everything; a damaged snapshot is made again, a damaged catalogue is an error."""
    with open_store(path, writer=True) as store:
        wrong = store.verify()
        digest = store.digest()
        slides, patches = int(store.slides.alive.sum()), int(store.patches_per_slide.sum())
    beyond = [problem.text for problem in wrong if not problem.repaired]
    if beyond:
        raise DatabaseError(f"{' '.join(beyond)} Restore it from a copy, or build it again.")
    said = " ".join(map(str, wrong)) or "All is well:"
    return f"{said} {count(slides, 'slide')}, {count(patches, 'patch')}, digest {digest[:16]}."


def compact(path: Path, *, progress: Any, should_stop: Any) -> str:
    """Write the snapshot anew."""
    with open_store(path, writer=True) as store:
        store.compact()
        return f"Compacted: {count(len(store), 'patch')} in one part."


def relocate(path: Path, folder: str, *, progress: Any, should_stop: Any) -> str:
    """Find slides that were moved."""
    done = care.relocate(path, folder, progress=progress, should_stop=should_stop)
    text = f"{count(len(done.found), 'slide')} found again, {done.in_place} where they were."
    return text + (f" Still missing: {enumerated(done.missing)}." if done.missing else "")


def import_labels(
    path: Path,
    labels: str,
    columns: Mapping[str, str],
    patient: str | None,
    *,
    progress: Any,
    should_stop: Any,
) -> str:
    """Give slides what a file says of them."""
    table, matched = care.import_labels(path, labels, columns=columns, patient=patient)
    labelled = len(matched.labels) - len(matched.unlabelled)
    notes = [as_in_widgets(note) for note in (*table.notes, *matched.notes)]
    return " ".join([f"{count(labelled, 'slide')} labelled: {table.describe()}.", *notes])


def copy(path: Path, target: Path, deidentify: bool, *, progress: Any, should_stop: Any) -> str:
    """Copy a database, whole or without anything that names a person."""
    left = export(path, target, deidentify=deidentify, progress=progress, should_stop=should_stop)
    how = "without anything that names a person, a file or a folder" if deidentify else "whole"
    said = f"Copied to {target}, {how}."
    return said + (
        f" Removed what a killed export had left: {enumerated([p.name for p in left])}." if left else ""
    )


STOPPABLE = (relocate, copy)
"""The others are short, or must not be left half done."""
