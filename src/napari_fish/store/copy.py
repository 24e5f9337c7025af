"""A copy of a database to give away: whole, or without anything that names a person."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_fish.errors import DatabaseError
from napari_fish.store.facts import Facts
from napari_fish.store.latent_codes import FOLDER as CODES
from napari_fish.store.latent_codes import has_codes, read_codes, save_codes
from napari_fish.store.places import place_of, recorded_path
from napari_fish.store.records import EncodedSlide, Quarantined, SlideRecord
from napari_fish.store.snapshot.store import SNAPSHOT, SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from napari_fish.store.sqlite.lock import LOCK, write_lock
from napari_fish.store.sqlite.pictures import FILE as THUMBNAILS
from napari_fish.store.sqlite.pictures import Thumbnails
from napari_fish.store.sqlite.schema import FILE
from napari_fish.texts import file_stem
from napari_fish.work import Progress, ShouldStop, stop_if_asked

_KEPT_COLUMNS = ("stain",)
OURS = (FILE, LOCK, SNAPSHOT, THUMBNAILS, CODES)
"""With what the names of everything in a database begin."""
_PART = re.compile(r".+\.[0-9a-f]{8}\.part", re.DOTALL)


def export(
    source: Path,
    target: Path,
    *,
    deidentify: bool = False,
    keep: Iterable[str] = (),
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[Path]:
    """Copy a database; the copy appears under its name only when it is complete.

    What an export that was killed left beside it is removed first, and returned.

    Parameters
    ----------
    source, target
        The folders; the target must not be there yet, or be empty.
    deidentify
        Leave out patient ids, names of files (those of masks, too), paths, times, content hashes, pictures of whole slides (a pen may have
        written on the glass) and every further column but ``stain``; slides, patients and the classes of patch images
        (names of folders) get pseudonyms, in random order, that are the same throughout the copy.
    keep
        Further columns to keep all the same, or ``diagnosis`` to keep the classes of patch images.
    progress, should_stop
        Called with slides copied and all slides; asked before each slide.
    """
    if target.resolve() == source.resolve():
        raise DatabaseError(f"{target}: is the database itself; choose another name.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DatabaseError(f"{target}: is there already; choose another name for the copy.")
    old = SqliteCatalogue.open(source, read_only=True)
    # A name of its own: whatever else lies there is not ours to delete.
    part = target.with_name(f"{file_stem(target.name, 14)}.{secrets.token_hex(4)}.part")
    lock = None
    try:
        removed = remove_left(target.parent)
        part.mkdir(parents=True)
        # Held as long as the copy grows: a part whose lock is free is what a killed program left.
        lock = write_lock(part)
        with old.reading():
            _Copy(old, part, target, deidentify, keep).run(progress, should_stop)
        lock.release()
        SnapshotStore(part, writer=True).close()
        if target.exists():
            target.rmdir()
        part.rename(target)
        return removed
    except OSError as error:
        raise DatabaseError(f"{target}: cannot be written to ({error.strerror}).") from error
    finally:
        old.close()
        if lock is not None:
            lock.release()
        shutil.rmtree(part, ignore_errors=True)


def remove_left(folder: Path) -> list[Path]:
    """Remove the unfinished copies that killed exports left in a folder, as they hold names of people; return them."""
    removed = []
    for part in sorted(folder.glob("*.part")):
        if not _PART.fullmatch(part.name) or part.is_symlink() or not part.is_dir():
            continue
        # Whatever else lies there is not ours to delete.
        if not all(path.name.startswith(OURS) for path in part.iterdir()):
            continue
        try:
            write_lock(part).release()
        except DatabaseError:
            continue  # it is growing, or not ours
        shutil.rmtree(part, ignore_errors=True)
        removed.append(part)
    return removed


class _Copy:
    """One walk over all slides of a database."""

    def __init__(
        self, old: SqliteCatalogue, part: Path, target: Path, deidentify: bool, keep: Iterable[str]
    ) -> None:
        self.old, self.part, self.target, self.deidentify = old, part, target, deidentify
        self.rename: Callable[[SlideRecord], SlideRecord] = self._moved
        if deidentify:
            self.rename = _Pseudonyms((*_KEPT_COLUMNS, *keep), classes=old.facts.patches)

    def run(self, progress: Progress | None, should_stop: ShouldStop | None) -> None:
        """Copy everything; see :func:`export`."""
        old, slides = self.old, self.old.slides()
        if self.deidentify:
            slides = [slides[i] for i in np.random.default_rng().permutation(len(slides))]
        facts = self._facts()
        new = SqliteCatalogue.create(
            self.part, words=facts.words, encoder=facts.encoder, weights_hash=facts.weights_hash, parameters=facts.parameters
        )  # fmt: skip
        pictures = Thumbnails.open_to_read(old.folder)
        copies = Thumbnails.open_to_write(self.part) if pictures else None
        try:
            with new.changing():
                for done, (number, record) in enumerate(slides):
                    stop_if_asked(should_stop, "the export was stopped.")
                    patches, copy = old.patches_of(number), self.rename(record)
                    if pictures and copies:
                        found = pictures.patches(record.slide)
                        overview = b"" if self.deidentify else pictures.overview(record.slide) or b""
                        copies.save(
                            copy.slide, overview, [box for box, _ in found], [jpeg for _, jpeg in found]
                        )
                    if has_codes(old.folder, record.slide):
                        save_codes(self.part, copy.slide, read_codes(old.folder, record.slide))
                    new.commit(EncodedSlide(copy, patches.keys, patches.barcodes, patches.boxes))
                    if progress:
                        progress(done + 1, len(slides))
                for bad in () if self.deidentify else old.quarantined:
                    new.quarantine(Quarantined(bad.slide, self._path(bad.path), bad.reason))
                if old.calibration is not None:
                    new.calibration = old.calibration
        finally:
            new.close()
            for file in (copies, pictures):
                if file:
                    file.close()

    def _facts(self) -> Facts:
        facts = self.old.facts
        if self.deidentify:
            return facts.public()
        return replace(
            facts,
            bundle=self._path(facts.bundle),
            mask_folders=tuple(map(self._path, facts.mask_folders)),
            dismissed={self._path(path): said for path, said in facts.dismissed.items()},
            identity="",
        )

    def _moved(self, record: SlideRecord) -> SlideRecord:
        return replace(record, path=self._path(record.path))

    def _path(self, path: str) -> str:
        """Return a path, relative to the database, as it is seen from where the copy will be."""
        return recorded_path(place_of(path, self.old.folder), self.target)


class _Pseudonyms:
    """Names slides and patients, and on request diagnoses, anew, in the order in which they are seen."""

    def __init__(self, keep: Iterable[str], classes: bool) -> None:
        self._keep = {name.lower() for name in keep}
        self._pseudonymous_classes = classes and "diagnosis" not in self._keep
        self._patients: dict[str, str] = {"": ""}
        self._classes: dict[str, str] = {}
        self._slides = 0

    def __call__(self, record: SlideRecord) -> SlideRecord:
        self._slides += 1
        name = f"slide-{self._slides:06d}"
        patient = self._patients.setdefault(record.patient.casefold(), f"patient-{len(self._patients):06d}")
        labels = {k: v for k, v in record.labels.items() if k.lower() in self._keep}
        masked = "mask" if record.choice.mask else ""
        choice = replace(record.choice, mask=masked, mask_class="")
        return replace(
            record, slide=name, name=name, patient=patient, diagnosis=self._diagnosis(record), labels=labels, path="",
            content_hash="", size=0, mtime=0, choice=choice,
        )  # fmt: skip

    def _diagnosis(self, record: SlideRecord) -> str:
        if not self._pseudonymous_classes or not record.diagnosis:
            return record.diagnosis
        return self._classes.setdefault(record.diagnosis.casefold(), f"class-{len(self._classes) + 1:06d}")
