"""A database in a folder: the catalogue in SQLite, and a disposable snapshot for speed."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from filelock import BaseFileLock

from napari_fish.errors import DatabaseError
from napari_fish.index.arrays import Rows
from napari_fish.store.array_store import ArrayStore
from napari_fish.store.latent_codes import damaged_codes
from napari_fish.store.patch_rows import PatchRows
from napari_fish.store.places import Location
from napari_fish.store.protocol import Problem
from napari_fish.store.records import Calibration
from napari_fish.store.snapshot.deltas import Delta, delete_later, delete_others, open_deltas, part_folders
from napari_fish.store.snapshot.files import (
    SnapshotError,
    StaleSnapshot,
    first_damaged,
    read_through,
    verify_part,
)
from napari_fish.store.snapshot.main_part import MAIN, MainPart
from napari_fish.store.snapshot.verify import differences
from napari_fish.store.snapshot.view import View
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from napari_fish.store.sqlite.lock import write_lock
from napari_fish.store.sqlite.slides import CatalogueSlides

log = logging.getLogger(__name__)

SNAPSHOT = "snapshot"
#: With more patches than this outside the main part, the main part is written anew.
COMPACT_AT = 100_000


class SnapshotStore(ArrayStore):
    """Slides and patches in a folder; see :class:`~napari_fish.store.protocol.Store`.

    Parameters
    ----------
    folder
        ``NAME.fish``.
    writer
        Whether to change it; there can be one writer at a time. A reader writes nothing but a snapshot that is
        missing, stale or damaged, and only where nobody else is writing.
    """

    def __init__(self, folder: Path, *, writer: bool = False) -> None:
        self.folder = folder
        self.catalogue = SqliteCatalogue.open(folder, read_only=not writer)
        self._snapshot = folder / SNAPSHOT
        self._deltas: list[Delta] = []
        self._mended: list[str] = []
        self._lock: BaseFileLock | None = None
        self._is_closed = False
        self._checking, self._comparing = threading.Lock(), threading.Lock()
        self._damaged: tuple[MainPart, str] | None = None
        self._compared: MainPart | None = None
        try:
            self._lock = write_lock(folder) if writer else None
            self._shown, self._is_checked = self._load(), False
        except BaseException:
            self.close()
            raise
        self._describe(self._shown)

    @property
    def _view(self) -> View:
        """What is shown; before it is used for the first time, what could crash a search is looked for and mended."""
        if not self._is_checked:
            with self._checking:
                if not self._is_checked:
                    self._check()
        return self._shown

    @property
    def _patches(self) -> PatchRows:
        return self._view.rows

    def _check(self) -> None:
        main = self._shown.main
        if text := main.damage():
            self._mend(f"{self._snapshot / MAIN}: {text}")
        elif main.unread and main is not self._compared:
            # What opening has not read is compared beside the first searches; what is wrong is mended by the next refresh.
            threading.Thread(target=self._compare_content, args=(main,), daemon=True).start()
        self._is_checked = True

    def _mend(self, wrong: str) -> None:
        self._mended.append(wrong)
        log.warning("%s The snapshot is made again.", wrong)
        self._show_anew(self._make_main())

    def _compare_content(self, main: MainPart) -> None:
        """Compare all that the large files of a main part hold with its checksum; have it made again where it differs.

        Not here and now: rows and slides have other numbers after it, and a search may be under way.
        """
        with self._comparing:
            if main is self._compared:
                return
            self._compared = main
            wrong = first_damaged(main.unread, lambda: self._is_closed or self._shown.main is not main)
            if wrong:
                self._damaged = main, wrong

    def _show_anew(self, main: MainPart) -> None:
        self._deltas = []
        with self.catalogue.reading():
            self._shown = View(main, *self._beyond(main))
        self._describe(self._shown)

    def _load(self) -> View:
        """Open the snapshot, making what is missing, stale or damaged."""
        if self._lock is not None:
            delete_later(self._snapshot, self.catalogue.generation)
        with self.catalogue.reading():
            try:
                main = MainPart.open(self._snapshot, self.catalogue)
            except SnapshotError as error:
                log.info("%s The snapshot is made again.", error)
                if (self._snapshot / MAIN).exists() and not isinstance(error, StaleSnapshot):
                    self._mended.append(str(error))
                main = None
        if main is None:
            main = self._make_main()
        with self.catalogue.reading():
            self._deltas = open_deltas(self._snapshot, self.catalogue, main.generation, main.highest)
            return View(main, *self._beyond(main))

    def _beyond(self, main: MainPart) -> tuple[Delta, list[int]]:
        """Return what the catalogue has beyond the main part, and the slides of it that were removed."""
        covered = self._deltas[-1].generation if self._deltas else main.generation
        rest = Delta.from_truth(self.catalogue, covered)
        removed = self.catalogue.removed(main.generation)
        return Delta.joined([*self._deltas, rest]).without(removed), removed

    def _make_main(self) -> MainPart:
        threads = os.cpu_count() or 1
        try:
            lock = None if self._lock else write_lock(self.folder)
            try:
                return MainPart.make(self.catalogue, self._snapshot, threads)
            finally:
                if lock is not None:
                    lock.release()
        except (OSError, DatabaseError) as error:
            log.info("%s: the snapshot is kept in memory (%s)", self._snapshot, error)
        return MainPart.make(self.catalogue, None, threads)

    def _describe(self, view: View) -> None:
        self._slides = CatalogueSlides(self.catalogue, view.numbers, view.alive)
        self._calibration = self.catalogue.calibration
        self._paper_barcodes = self.catalogue.facts.paper_barcodes

    @property
    def slides(self) -> CatalogueSlides:
        """All slides; their positions are the numbers masks go by."""
        self._view  # noqa: B018 - slides may have other numbers after it
        return self._slides

    @property
    def calibration(self) -> Calibration | None:
        """The distances of random pairs, where they were measured."""
        return self._calibration

    @calibration.setter
    def calibration(self, made: Calibration) -> None:
        self.catalogue.calibration = made
        self._calibration = made

    @property
    def paper_barcodes(self) -> bool:
        """Whether barcodes are those of the paper, for which its threshold was chosen."""
        return self._paper_barcodes

    @property
    def location(self) -> Location:
        """Where the database is."""
        return self.folder

    def refresh(self) -> bool:
        """Show what was written since, by this or another program; return whether there was anything.

        A snapshot that was found damaged meanwhile is made again, too.
        """
        view = self._view
        if self._damaged and self._damaged[0] is view.main:
            self._mend(self._damaged[1])
            return True
        if self.catalogue.generation == view.generation:
            return False
        with self.catalogue.reading():
            self._shown = view.followed_by(*self._beyond(view.main))
        self._describe(self._shown)
        return True

    def save_delta(self) -> None:
        """Write what the parts of the snapshot lack as a delta, joined with smaller ones before it."""
        covered = self._deltas[-1].generation if self._deltas else self._view.main.generation
        if self._lock is None or covered == self._view.generation:
            return
        new = Delta.from_truth(self.catalogue, covered)
        kept = list(self._deltas)
        while kept and len(kept[-1]) <= 2 * len(new):
            new = Delta.joined([kept.pop(), new])
        try:
            new.write(self._snapshot)
        except OSError as error:
            log.warning("%s: no delta could be written (%s).", self._snapshot, error)
            return
        for old in self._deltas[len(kept) :]:
            old.delete(self._snapshot)
        self._deltas = [*kept, new]

    def settle(self) -> None:
        """Bring the snapshot up to date after many commits: as a delta, or compacted where that is large."""
        self.refresh()
        view = self._view
        dead = len(view.main.segment) - int(view.counts[: len(view.main.numbers)].sum())
        if len(view.delta) + dead > min(COMPACT_AT, len(view.main.segment)):
            self.compact()
        else:
            self.save_delta()

    def compact(self) -> None:
        """Write the main part anew from the catalogue: no deltas, no removed slides."""
        self._show_anew(self._make_main())
        self._is_checked = True
        if self._lock is not None and self._snapshot.is_dir():
            delete_others(self._snapshot, self._deltas)

    def verify(self) -> list[Problem]:
        """Read everything and return what is wrong; a writer makes a snapshot that is damaged again.

        Catalogue and snapshot are compared, too: SQLite itself does not notice a barcode in which a bit has flipped.
        """
        wrong = self.catalogue.integrity()
        if wrong:
            return [Problem(text) for text in wrong]
        self.refresh()
        mended, self._mended = self._mended, []
        bad = [text for _, _, path in part_folders(self._snapshot) for text in verify_part(path)]
        if not bad and (text := self._view.main.disagreement()):
            bad = [f"{self._snapshot / MAIN}: {text}"]
        if bad and self._lock is not None:
            shutil.rmtree(self._snapshot, ignore_errors=True)
            self.compact()
            mended, bad = [*mended, *bad], []
        said = [
            Problem(f"{text} It was made again from {self.catalogue.path.name}.", repaired=True)
            for text in mended
        ]
        bad = bad or differences(self.catalogue, self._view)
        return [*said, *map(Problem, [*bad, *damaged_codes(self.folder, self.catalogue.patch_counts())])]

    def digest(self) -> str:
        """Return a digest of the content, the same whatever the order in which slides came."""
        return self.catalogue.digest()

    def patch_rows(self, slide: int) -> Rows:
        """Return the rows of one slide in the order of its mosaic, which only the catalogue knows."""
        view = self._view
        rows, keys = view.rows.rows_of([slide]), self.catalogue.keys_of(int(view.numbers[slide]))
        if len(keys) != len(rows):
            raise DatabaseError(f"{self.folder}: was changed while it was read; try again.")
        placed = np.empty_like(rows)
        # Rows are in the order of keys, and where keys are equal in that of the mosaic.
        placed[np.argsort(keys, kind="stable")] = rows
        return placed

    def read_through(self) -> None:
        """Read the large arrays once, so that searches find them in memory, and compare them with their checksums.

        It takes seconds, and is for a thread of its own.
        """
        try:
            read_through(self._snapshot / MAIN, lambda: self._is_closed)
        except OSError as error:
            log.info("%s: not read beforehand (%s).", self._snapshot, error)
        self._compare_content(self._shown.main)

    def close(self) -> None:
        """Let go of the files."""
        self._is_closed = True
        self.catalogue.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
