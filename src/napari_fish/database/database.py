"""One object for a database: search it from Python, from the command line and from the viewer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from napari_fish.building.build import build as build_database
from napari_fish.building.choosing import check_question
from napari_fish.building.params import BuildParams
from napari_fish.building.settings import choose_encoder, recorded_mosaic
from napari_fish.building.slide_task import Region
from napari_fish.building.summary import Summary
from napari_fish.database.care import find_slide, remove_slides
from napari_fish.database.pictures import ArchivePictures
from napari_fish.database.questions import Asked, Question, encode_question
from napari_fish.encode import Encoder, check_same_encoder
from napari_fish.errors import DatabaseError, FishError
from napari_fish.labels.patients import patient_rule
from napari_fish.labels.table import SlideLabels
from napari_fish.mosaic import MosaicParams
from napari_fish.mosaic.masks import MaskLike, mask_of
from napari_fish.names import OWN_COLUMNS
from napari_fish.search import Query, Results, SearchParams, search_many
from napari_fish.search.filters import check_values
from napari_fish.slides import Slide, open_slide
from napari_fish.slides.image import array_slide
from napari_fish.slides.opening import expanded
from napari_fish.store import SlideRecord
from napari_fish.store.opening import open_store
from napari_fish.store.places import is_there, place_of
from napari_fish.texts import noted
from napari_fish.work import Progress, ShouldStop

log = logging.getLogger(__name__)
# Searches begun anew because a slide was replaced meanwhile.
_ATTEMPTS = 4


class Database:
    """An open database.

    Parameters
    ----------
    path
        ``NAME.fish``.
    device
        Where queries are encoded: auto, cuda, mps, xpu or cpu.

    Notes
    -----
    May be used from several threads; they take turns where they must.
    """

    def __init__(self, path: str | Path, device: str = "auto") -> None:
        self.path = expanded(path)
        self.device = device
        self.store = open_store(self.path)
        self._encoder: Encoder | None = None
        self._turn, self._loading = threading.RLock(), threading.Lock()

    @property
    def encoder(self) -> Encoder:
        """The encoder the database was built with, loaded when first needed."""
        with self._loading:
            if self._encoder is None:
                self._encoder = choose_encoder(self.store.catalogue, device=self.device).load()
            return self._encoder

    def use_encoder(self, encoder: Encoder) -> None:
        """Use an encoder that is loaded already, if it is the right one."""
        facts = self.store.catalogue.facts
        check_same_encoder(facts.encoder, facts.weights_hash, encoder.card, str(self.path))
        with self._loading:
            self._encoder = encoder

    def search(
        self,
        question: Question,
        box: Region | None = None,
        k: int | None = None,
        *,
        mpp: float | None = None,
        mask: MaskLike | None = None,
        mask_class: str | None = None,
        params: SearchParams | None = None,
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
        **options: Any,
    ) -> Results:
        """Find the slides most similar to a slide, a box in it, an image or a slide of the database.

        Parameters
        ----------
        question
            A file, ``id:`` and the id of a slide in the database, an open slide, or an RGB image.
        box
            x, y, width, height in level-0 px of the slide; None for all of it.
        k
            Slides wanted; by default 5, or what ``params`` say.
        mpp
            Micrometres per level-0 px of the question, where its file does not say or is wrong.
        mask
            Where the tissue of the whole slide is: an image or GeoJSON file, an array or polygons; by default it is found.
        mask_class
            Classes of annotations of a GeoJSON mask that count, separated by commas; by default all.
        params
            How to search; k and options count more.
        progress, should_stop
            Called with patches encoded and all patches; asked before each.
        **options
            Fields of :class:`~napari_fish.search.SearchParams`, such as ``mode="exact"``.
        """
        params = replace(params or SearchParams(), **options)
        if k is not None:
            params = replace(params, k=k)
        asked = self.ask(
            question,
            box,
            mpp=mpp,
            mask=mask,
            mask_class=mask_class,
            progress=progress,
            should_stop=should_stop,
        )
        return self.answer([asked], params)[0]

    def ask(
        self,
        question: Question,
        box: Region | None = None,
        *,
        mpp: float | None = None,
        mask: MaskLike | None = None,
        mask_class: str | None = None,
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> Asked:
        """Encode a question, to be answered by :meth:`answer` once or several times; parameters as in :meth:`search`."""
        given = mask_of(mask, mask_class)
        if isinstance(question, str) and question.startswith("id:"):
            with self._turn, self.store.catalogue.reading():
                number, record = self._slide(question.removeprefix("id:"))
                if box is None and given is None:
                    return self._from_store(number, record)
            question, mpp = self.place(record), mpp or record.mpp or None
        if isinstance(question, Slide):
            return self._encode(question, box, given, progress, should_stop)
        with self._opened(question, mpp) as opened:
            return self._encode(opened, box, given, progress, should_stop)

    def check(
        self,
        question: str | Path,
        box: Region | None = None,
        *,
        mpp: float | None = None,
        mask: MaskLike | None = None,
        mask_class: str | None = None,
    ) -> str:
        """Raise at once what :meth:`ask` would raise after the encoder was loaded; return what the query will be called."""
        given = mask_of(mask, mask_class)
        place = question
        if isinstance(question, str) and question.startswith("id:"):
            with self._turn, self.store.catalogue.reading():
                _, record = self._slide(question.removeprefix("id:"))
            if box is None and given is None:
                return record.name or record.slide
            place, mpp = self.place(record), mpp or record.mpp or None
        with self._opened(place, mpp) as opened:
            check_question(opened, box, self._mosaic(), given)
            return _called(opened.path.name, box)

    def check_params(self, params: SearchParams) -> None:
        """Raise at once what :meth:`answer` would raise: columns and values that are not there."""
        with self._turn:
            self.store.refresh()
            self._check(params)

    def _opened(self, question: str | Path | NDArray[np.uint8], mpp: float | None) -> Slide:
        """Open a file or an image; where a file does not say its scale, the database may know it."""
        if isinstance(question, np.ndarray):
            return array_slide(question, mpp)
        opened = open_slide(question, mpp=mpp)
        if opened.mpp is None:
            own = self.store.catalogue.with_hash(opened.content_hash)
            if own and own[0].mpp:
                opened.close()
                return open_slide(question, mpp=own[0].mpp)
        return opened

    def _encode(
        self,
        slide: Slide,
        box: Region | None,
        mask: MaskLike | None,
        progress: Progress | None,
        should_stop: ShouldStop | None,
    ) -> Asked:
        asked = encode_question(
            slide,
            self.encoder,
            box=box,
            mosaic=self._mosaic(),
            mask=mask,
            progress=progress,
            should_stop=should_stop,
        )
        own = self.store.catalogue.with_hash(slide.content_hash)
        patient = (own[0].patient if own else "") or self._patient(slide.path.name)
        name = _called(asked.query.name, box)
        query = replace(asked.query, name=name, slide=own[0].slide if own else "", patient=patient)
        return replace(asked, query=query)

    def _from_store(self, number: int, record: SlideRecord) -> Asked:
        """Ask with what the database has of one of its slides."""
        rows = self.store.patch_rows(number)
        keys, barcodes = self.store.encoded(rows)
        boxes = np.array([one.box for one in self.store.regions(rows)], np.int32).reshape(-1, 4)
        query = Query(
            record.name or record.slide, keys, barcodes, boxes, slide=record.slide, patient=record.patient
        )
        return Asked(query, size=(record.width, record.height) if record.width else None)

    def answer(self, asked: Sequence[Asked], params: SearchParams | None = None) -> list[Results]:
        """Answer questions; several share each pass over the database."""
        params = params or SearchParams()
        with self._turn:
            found = self._answered([one.query for one in asked], params)
            shown = {hit.slide for results in found for hit in results.hits} | {
                one.query.slide for one in asked
            }
            records = {slide: record for slide in shown if (record := self.record(slide)) is not None}
        return [
            replace(
                results,
                notes=(*noted("query", one.notes), *results.notes),
                elapsed_ms={"read": 0.0, "encode": 0.0, **one.elapsed_ms, **results.elapsed_ms},
                pictures=ArchivePictures(one, self.path, records),
            )
            for one, results in zip(asked, found, strict=True)
        ]

    def _answered(self, queries: Sequence[Query], params: SearchParams) -> list[Results]:
        """Search; where a build replaced a slide of the answer meanwhile, look again at what there is now."""
        self.store.refresh()
        for _ in range(_ATTEMPTS):
            try:
                self._check(params)
                return search_many(self.store, queries, params)
            except DatabaseError:
                # Holding the catalogue still for the whole search would hold up whoever writes.
                if not self.store.refresh():
                    raise
        return search_many(self.store, queries, params)

    def _check(self, params: SearchParams) -> None:
        """Refuse columns and values that the database does not have."""
        target, columns = params.target, self.store.slides.columns
        check_values(self.store.slides, params.where)
        if target.lower() not in OWN_COLUMNS and target.lower() not in columns:
            raise FishError(f"{self.path}: no column {target!r} to rank by; there are: {', '.join(columns)}.")

    def record(self, slide: str) -> SlideRecord | None:
        """Return what is known of a slide, given by id."""
        with self.store.catalogue.reading():
            number = self.store.catalogue.number(slide)
            return None if number is None else self.store.catalogue.record(number)

    def place(self, record: SlideRecord) -> Path:
        """Return where a slide is, or say that it is not there."""
        place = place_of(record.path, self.path)
        if place is None or not is_there(place):
            raise FishError(
                f"{record.name or record.slide}: is not at {place or 'any known place'} any more. "
                f"If it was moved: napari-fish relocate {self.path.name} FOLDER."
            )
        return place

    def _slide(self, name: str) -> tuple[int, SlideRecord]:
        self.store.refresh()
        slide = find_slide(self.store, name)
        number = self.store.slides.number(slide)
        if number is None:
            raise DatabaseError(f"{self.path}: no slide {name!r} in this database.")
        return number, self.store.slides[number]

    def _mosaic(self) -> MosaicParams | None:
        mosaic, patches = recorded_mosaic(self.store.catalogue)
        return None if patches else mosaic

    def _patient(self, name: str) -> str:
        """Return the patient of a slide that is not in the database, as the file name tells, if it does."""
        rule = self.store.catalogue.facts.patient
        return patient_rule(rule)(name, SlideLabels()) if rule else ""

    def add(
        self,
        slides: str | Path,
        labels: str | Path | None = None,
        params: BuildParams | None = None,
        **callbacks: Any,
    ) -> Summary:
        """Add a slide, or the slides of a folder; see :func:`~napari_fish.database.build`."""
        summary = build_database(slides, self.path, labels, params, encoder=self.encoder, **callbacks)
        self.refresh()
        return summary

    def remove(self, *slides: str) -> list[str]:
        """Forget slides, given by id or a name that fits only one; return their ids."""
        removed = remove_slides(self.path, slides)
        self.refresh()
        return removed

    def refresh(self) -> bool:
        """Show what was written since the database was opened; return whether there was anything."""
        with self._turn:
            return self.store.refresh()

    def __len__(self) -> int:
        return int(self.store.slides.alive.sum())

    def __repr__(self) -> str:
        return (
            f"<Database {self.path}: {len(self)} slides, {int(self.store.patches_per_slide.sum())} patches>"
        )

    def close(self) -> None:
        """Let go of the files."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _called(name: str, box: Region | None) -> str:
    return name if box is None else name + " [{:.0f},{:.0f},{:.0f},{:.0f}]".format(*box)


def open_database(path: str | Path, device: str = "auto") -> Database:
    """Open a database; see :class:`Database`."""
    return Database(path, device)


def build(
    slides: str | Path,
    database: str | Path,
    labels: str | Path | None = None,
    params: BuildParams | None = None,
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
    **options: Any,
) -> Database:
    """Build a database, resume or extend it, and open it.

    Parameters
    ----------
    slides
        A folder, searched with its subfolders, or one slide.
    database
        ``NAME.fish``.
    labels
        CSV, TSV or Excel file with what is known of the slides.
    params
        How to build; options count more.
    progress, should_stop
        Called with slides done and all slides; asked often.
    **options
        Fields of :class:`~napari_fish.building.params.BuildParams`, such as ``encoder="fish-paper"``.
    """
    params = replace(params or BuildParams(), **options)
    summary = build_database(slides, database, labels, params, progress=progress, should_stop=should_stop)
    for bad in summary.quarantined:
        log.warning("quarantined: %s", bad.reason)
    return Database(database, params.device)
