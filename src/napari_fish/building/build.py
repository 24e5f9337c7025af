"""Build a database, resume one, extend one: the same call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from napari_fish.building.known import KnownSlides
from napari_fish.building.labelling import label_notes, labels_of, remember_patient_rule, with_labels
from napari_fish.building.masks import Masks, mask_again, masks_of, remember_folders, without_masks
from napari_fish.building.params import BuildParams
from napari_fish.building.settings import open_for_build
from napari_fish.building.slide_task import Known, Prepared, Refused, prepare
from napari_fish.building.strictness import as_asked, params_for
from napari_fish.building.summary import Fate, SlideDone, Summary, Under, Watch
from napari_fish.building.survey import Candidate, candidates, without_dismissed
from napari_fish.encode import Encoded, EncodeJob, Encoder, encode_slides
from napari_fish.errors import Cancelled, DatabaseError
from napari_fish.labels.table import SlideLabels, patient_rule, read_labels
from napari_fish.mosaic import MosaicParams
from napari_fish.mosaic.masks import marks_everything
from napari_fish.mosaic.reading import overlapped
from napari_fish.search.calibrate import calibrate
from napari_fish.slides.finding import told_unread
from napari_fish.slides.opening import expanded
from napari_fish.slides.pixels import to_jpeg
from napari_fish.store import EncodedSlide, Quarantined, SlideRecord
from napari_fish.store.latent_codes import remove_codes, save_codes
from napari_fish.store.opening import pictures_to_write
from napari_fish.store.places import is_there, place_of, recorded_path
from napari_fish.store.protocol import CataloguedStore
from napari_fish.texts import enumerated
from napari_fish.work import Progress, ShouldStop


def build(
    slides: str | Path | Sequence[Candidate],
    database: str | Path,
    labels: str | Path | None = None,
    params: BuildParams | None = None,
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
    watch: Watch | None = None,
    encoder: Encoder | None = None,
    columns: Mapping[str, str] | None = None,
    only: Container[str] | None = None,
) -> Summary:
    """Encode the slides of a folder into a database; run again, it goes on where it was.

    Parameters
    ----------
    slides
        A folder, searched with its subfolders, or one slide; or what was found before.
    database
        ``NAME.fish``; made where missing, else extended. A changed slide is encoded again, an unchanged one skipped.
    labels
        CSV, TSV or Excel file with what is known of the slides.
    params
        How to build.
    progress
        Called with slides done and all slides.
    should_stop
        Asked often; a yes ends the build with :class:`~napari_fish.errors.Cancelled`, finished slides kept.
    watch
        More to call while it runs.
    encoder
        One that is loaded already.
    columns
        Which column of the labels file is slide, patient, site, diagnosis or stain, where the guess is wrong.
    only
        Ids of slides to look at, such as those to try again; by default all that are found.

    Returns
    -------
    Summary
        What was done, and which slides could not be.
    """
    start = time.perf_counter()
    params, watch = params or BuildParams(), watch or Watch()
    folder = expanded(database)
    unread: Counter[str] = Counter()
    found = candidates(expanded(slides), unread) if isinstance(slides, str | Path) else tuple(slides)
    found = without_masks(found, params.mask)
    table = read_labels(expanded(labels), columns=columns) if labels is not None else None
    patient_rule(params.patient, table)
    masks = masks_of(found, params, table)
    wanted = [one for one in found if only is None or one.slide in only]
    store, encoder, settings = open_for_build(folder, params, encoder)
    if params.batch:
        encoder.batch = params.batch
    with store:
        left = without_dismissed(wanted, store.catalogue)
        dismissed = [one.slide for one in wanted if one not in set(left)]
        matched = labels_of(found, table, params.patient, store.catalogue)
        run = _Run(store, encoder, settings.mosaic, params, matched.labels, masks, watch, should_stop)
        with store.catalogue.changing():
            try:
                if table is not None or params.patient is not None:
                    run.relabel(found)
                remember_patient_rule(store.catalogue, params.patient, table)
                remember_folders(store.catalogue, masks)
                if params.artefacts and only is None and settings.mosaic is not None:
                    # For slides to come, and for queries.
                    now = params_for(None, params.artefacts, settings.mosaic)
                    store.catalogue.remember(mosaic=now.to_dict())
                run.all(left, progress or (lambda done, total: None))
            except (Cancelled, KeyboardInterrupt):
                # What there is so far can be searched.
                _settled(store)
                raise
            finally:
                run.pictures.close()
        notes = [*label_notes(table, matched), *masks.notes, *run.notes, *_settled(store)]
        notes += [told_unread(unread)] if unread else []
        if dismissed:
            notes.append(f"Dismissed, and left alone until they change: {enumerated(dismissed)}.")
        quarantined = tuple(store.catalogue.quarantined)
        counts = int(store.slides.alive.sum()), int(store.patches_per_slide.sum())
    seconds = time.perf_counter() - start
    choices = {slide: record.choice for slide, record in run.known.records.items()}
    return Summary(folder, tuple(run.done), quarantined, *counts, seconds, tuple(notes), choices)


class _Run:
    """One walk over all slides of a folder."""

    def __init__(
        self,
        store: CataloguedStore,
        encoder: Encoder,
        mosaic: MosaicParams | None,
        params: BuildParams,
        labels: Mapping[str, SlideLabels],
        masks: Masks,
        watch: Watch,
        should_stop: ShouldStop | None,
    ) -> None:
        self.catalogue, self.folder, self.encoder, self.mosaic = (
            store.catalogue,
            store.folder,
            encoder,
            mosaic,
        )
        self.params, self.labels, self.watch, self.should_stop = params, labels, watch, should_stop
        # An image that is one patch is resized whatever its scale.
        mpp = params.mpp if mosaic is not None else None
        self.known = KnownSlides(self.catalogue, mpp, masks, params.artefacts)
        self.masks, self._all_marked = masks, list[str]()
        self.pictures = pictures_to_write(self.folder)
        self.done: list[SlideDone] = []
        self._open: set[Prepared] = set()
        self._report: Callable[[], None] = lambda: None
        self._quarantined = {bad.slide: bad.path for bad in self.catalogue.quarantined}
        self._twins: list[Known] = []

    @property
    def notes(self) -> list[str]:
        """What is to be said of the slides that were encoded."""
        if not self._all_marked:
            return []
        return [f"The mask marks the whole slide, glass included: {enumerated(self._all_marked)}."]

    def relabel(self, found: Sequence[Candidate]) -> None:
        """Give slides that are there already what the labels say now."""
        changed = [
            new
            for one in found
            if (record := self.known.at(one.path)) is not None
            and (new := with_labels(record, self.labels[one.slide])) != record
        ]
        if changed:
            self.catalogue.relabel(changed)
            self.known.update(changed)

    def all(self, found: Sequence[Candidate], progress: Progress) -> None:
        """Encode what is new or changed."""
        self._report = lambda: progress(len(self.done), len(found))
        self._report()
        is_done = {one: self.known.is_unchanged(one) for one in found}
        to_do = [one for one in found if not is_done[one]]
        self._agree([one for one in found if is_done[one]])
        for one in found:
            if is_done[one]:
                self._finish(SlideDone(one.slide, one.path, "unchanged"))
        # Files at new places first: one of them may be a slide that made room for another.
        to_do.sort(key=lambda one: self.known.at(one.path) is not None)
        while to_do:
            self._encode_all(to_do)
            to_do = self._copies_of_bad_ones()
        now = {done.slide for done in self.done if done.fate == "quarantined"}
        before = [bad for bad in self.catalogue.quarantined if bad.slide not in now]
        self.catalogue.release(bad.slide for bad in before if _is_gone(bad, self.folder))

    def _encode_all(self, to_do: Sequence[Candidate]) -> None:
        jobs = self._jobs(to_do)
        outcomes = encode_slides(
            jobs,
            self.encoder,
            keep_codes=self.params.store_codes,
            thumbnail_px=self.params.thumbnail_px,
            progress=self.watch.patches,
            should_stop=self.should_stop,
        )
        try:
            for outcome in outcomes:
                prepared = outcome.job.tag
                if outcome.encoded is None:
                    self._quarantine(prepared.source, str(outcome.error))
                else:
                    self._keep(prepared, outcome.encoded)
                self._close(prepared)
        finally:
            # A build that was stopped has slides open that were read ahead.
            jobs.close()
            for prepared in list(self._open):
                self._close(prepared)

    def _copies_of_bad_ones(self) -> list[Candidate]:
        """Deal with files that seemed to be on their way under another name; return those of which none arrived.

        Only samples of a file tell its content, so that a damaged copy may look like the good one.
        """
        twins, self._twins = self._twins, []
        self.known.forget_claims()
        left = [twin for twin in twins if self.known.with_hash(twin.content_hash) is None]
        for twin in twins:
            if twin not in left:
                self._recognise(twin)
        return [twin.source for twin in left]

    def _agree(self, unchanged: Sequence[Candidate]) -> None:
        """Note the setting that was asked for with slides that have the same patches with it."""
        known = [record for one in unchanged if (record := self.known.at(one.path)) is not None]
        changed = [new for record in known if (new := as_asked(record, self.params.artefacts)) != record]
        if changed:
            self.catalogue.relabel(changed)
            self.known.update(changed)

    def _jobs(self, to_do: Sequence[Candidate]) -> Generator[EncodeJob[Prepared], None, None]:
        """Open slides and choose patches one slide ahead of the encoder."""
        for item in overlapped(self._prepare, to_do, threads=1, should_stop=self.should_stop):
            if isinstance(item, Refused):
                self._quarantine(item.source, item.reason)
            elif isinstance(item, Known):
                self._recognise(item)
            else:
                self.watch.started(Under(item.source.slide, item.source.path, item.overview, item.mosaic))
                yield item.job()

    def _prepare(self, one: Candidate) -> Prepared | Refused | Known:
        mask, mosaic, own = self.masks.of.get(one.slide), self.mosaic, self.known.unaltered(one)
        if one.slide in self.masks.refused:
            return Refused(one, self.masks.refused[one.slide])
        if own is not None and own.choice.mask and not self.masks.asked:
            mask = mask_again(one.path, own, self.catalogue)
            if mask is None:
                name = own.choice.mask.rpartition("#")[0]
                return Refused(
                    one,
                    f"{one.path}: was built with the mask {name}, which is not where it was or was changed; "
                    "put it beside the slide, or state it again, --mask.",
                )
        if mosaic is not None:
            mosaic = params_for(self.known.at(one.path), self.params.artefacts, mosaic)
        found = prepare(
            one,
            mosaic,
            self.params.mpp or (own.mpp if own is not None else None) or None,
            lambda content: self.known.claim(content, one),
            self.should_stop,
            mask,
        )
        if isinstance(found, Prepared):
            self._open.add(found)
        return found

    def _close(self, prepared: Prepared) -> None:
        prepared.slide.close()
        self._open.discard(prepared)

    def _keep(self, prepared: Prepared, encoded: Encoded) -> None:
        """Write a slide: its pictures and codes first, so that whatever the catalogue has is whole."""
        source, slide, boxes = prepared.source, prepared.slide, prepared.boxes
        name = self.known.id_for(source, slide.content_hash)
        before = self.known.records.get(name)
        choice = prepared.choice
        fate: Fate = "added" if before is None else "replaced"
        record = replace(
            before or SlideRecord(name),
            name=source.path.name,
            path=recorded_path(source.path, self.folder),
            content_hash=slide.content_hash,
            size=source.size,
            mtime=source.mtime,
            mpp=0.0 if prepared.mosaic is None else prepared.mosaic.mpp,
            width=slide.dimensions[0],
            height=slide.dimensions[1],
            choice=choice,
        )
        said = self.labels[source.slide]
        if self.mosaic is None and not said.diagnosis:
            said = replace(said, diagnosis=_class_of(source))
        record = with_labels(record, said)
        if encoded.thumbnails is not None:
            jpegs = [to_jpeg(pixels) for pixels in encoded.thumbnails]
            self.pictures.save(name, to_jpeg(prepared.overview), boxes.tolist(), jpegs)
        if encoded.codes is not None:
            save_codes(self.folder, name, encoded.codes)
        else:
            # Those of the patches it had before are not those of the patches it has now.
            remove_codes(self.folder, name)
        keys = encoded.keys.astype("int64")
        self.catalogue.commit(EncodedSlide(record, keys, encoded.barcodes, boxes))
        self.known.update([record])
        if prepared.mosaic is not None and marks_everything(prepared.mosaic):
            self._all_marked.append(name)
        done = SlideDone(
            name, source.path, fate, len(keys), candidates=choice.candidates, left_out=choice.left_out
        )
        self._finish(done)

    def _recognise(self, item: Known) -> None:
        """Deal with a slide whose content is in the database."""
        source = item.source
        record = self.known.with_hash(item.content_hash)
        if record is None:
            self._twins.append(item)  # the other one of the two is still on its way, in this very run
            return
        here = place_of(record.path, self.folder) == source.path.resolve()
        if not here and self.known.is_in_place(record):
            reason = f"{source.path} is the same slide as {record.slide}; it was not added again."
            self._finish(SlideDone(source.slide, source.path, "twice", reason=reason))
            return
        path = recorded_path(source.path, self.folder)
        record = replace(record, name=source.path.name, path=path, size=source.size, mtime=source.mtime)
        record = as_asked(with_labels(record, self.labels[source.slide]), self.params.artefacts)
        self.catalogue.relabel([record])
        self.known.update([record])
        self._finish(SlideDone(record.slide, source.path, "unchanged" if here else "moved"))

    def _quarantine(self, source: Candidate, reason: str) -> None:
        self.catalogue.quarantine(Quarantined(source.slide, recorded_path(source.path, self.folder), reason))
        self._finish(SlideDone(source.slide, source.path, "quarantined", reason=reason))

    def _finish(self, done: SlideDone) -> None:
        was_bad = self._quarantined.get(done.slide) == recorded_path(done.path, self.folder)
        if was_bad and done.fate != "quarantined":
            self.catalogue.release([done.slide])
        self.done.append(done)
        self.watch.finished(done)
        self._report()
        if self.should_stop and self.should_stop():
            raise Cancelled("the build was stopped.")


def _class_of(source: Candidate) -> str:
    """Return the class of a patch image: the folder it is in."""
    folder = source.slide.rpartition("/")[0] or source.path.parent.name
    return folder.rpartition("/")[2]


def _is_gone(bad: Quarantined, folder: Path) -> bool:
    return not is_there(place_of(bad.path, folder))


def _settled(store: CataloguedStore) -> list[str]:
    """Bring snapshot and calibration up to date; return what is to be said of the calibration."""
    store.settle()
    try:
        # Always: a build that was killed may have added slides after the last time.
        store.calibration = made = calibrate(store)
    except DatabaseError as error:
        return [str(error)]
    return [made.note] if made.note else []
