"""A walk over the slides of a folder: each is encoded where that is needed, and what became of it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from napari_fish.building.known import KnownSlides
from napari_fish.building.labelling import with_labels
from napari_fish.building.masks import Masks, SlideMask, mask_again
from napari_fish.building.params import BuildParams
from napari_fish.building.runner import Runner
from napari_fish.building.slide_task import Begun, Desk, Known, Refused, SlideEncoded, SlideTask
from napari_fish.building.strictness import as_asked, params_for
from napari_fish.building.summary import Fate, SlideDone, Under, Watch
from napari_fish.building.survey import Candidate
from napari_fish.errors import Cancelled
from napari_fish.labels.table import SlideLabels
from napari_fish.mosaic import MosaicParams
from napari_fish.store import EncodedSlide, Quarantined, SlideRecord
from napari_fish.store.latent_codes import remove_codes, save_codes
from napari_fish.store.opening import pictures_to_write
from napari_fish.store.places import Location, is_there, place_of, recorded_path
from napari_fish.store.protocol import CataloguedStore
from napari_fish.texts import enumerated
from napari_fish.work import Progress, ShouldStop


class Walk:
    """One walk over all slides of a folder; the only one who writes."""

    def __init__(
        self,
        store: CataloguedStore,
        runner: Runner,
        mosaic: MosaicParams | None,
        params: BuildParams,
        labels: Mapping[str, SlideLabels],
        masks: Masks,
        watch: Watch,
        should_stop: ShouldStop,
    ) -> None:
        self.catalogue, self.location, self.runner, self.mosaic = (
            store.catalogue,
            store.location,
            runner,
            mosaic,
        )
        self.params, self.labels, self.watch = params, labels, watch
        self.should_stop = should_stop
        # An image that is one patch is resized whatever its scale.
        mpp = params.mpp if mosaic is not None else None
        self.known = KnownSlides(self.catalogue, mpp, masks, params.artefacts)
        self.masks, self._masked, self._all_marked = masks, dict[int, SlideMask](), list[str]()
        self.pictures = pictures_to_write(self.location)
        self.done: list[SlideDone] = []
        self._report: Callable[[], None] = lambda: None
        self._quarantined = {bad.slide: bad.path for bad in self.catalogue.quarantined}
        self._twins: list[tuple[Candidate, str]] = []

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
        self.catalogue.release(bad.slide for bad in before if _is_gone(bad, self.location))

    def _encode_all(self, to_do: Sequence[Candidate]) -> None:
        desk = Desk(
            claim=lambda number, content_hash: self.known.claim(content_hash, to_do[number]),
            begun=lambda begun: self.watch.started(_under(to_do[begun.number], begun)),
            encoded=lambda number, patches: self.watch.encoded(to_do[number].path, patches),
            should_stop=self.should_stop,
            paused=self.watch.paused,
        )
        with closing(self.runner.run(self._tasks(to_do), desk)) as outcomes:
            for outcome in outcomes:
                source = to_do[outcome.number]
                if isinstance(outcome, Refused):
                    self._quarantine(source, str(outcome.error))
                elif isinstance(outcome, Known):
                    self._recognise(source, outcome.content_hash)
                else:
                    self._keep(source, outcome)

    def _copies_of_bad_ones(self) -> list[Candidate]:
        """Deal with files that seemed to be on their way under another name; return those of which none arrived.

        Only samples of a file tell its content, so that a damaged copy may look like the good one.
        """
        twins, self._twins = self._twins, []
        self.known.forget_claims()
        left = [twin for twin, content_hash in twins if self.known.with_hash(content_hash) is None]
        for twin, content_hash in twins:
            if twin not in left:
                self._recognise(twin, content_hash)
        return left

    def _agree(self, unchanged: Sequence[Candidate]) -> None:
        """Note the setting that was asked for with slides that have the same patches with it."""
        known = [record for one in unchanged if (record := self.known.at(one.path)) is not None]
        changed = [new for record in known if (new := as_asked(record, self.params.artefacts)) != record]
        if changed:
            self.catalogue.relabel(changed)
            self.known.update(changed)

    def _tasks(self, to_do: Sequence[Candidate]) -> Iterator[SlideTask]:
        for number, one in enumerate(to_do):
            mask, own = self.masks.of.get(one.slide), self.known.unaltered(one)
            refused = self.masks.refused.get(one.slide)
            if own is not None and own.choice.mask and not self.masks.asked:
                mask = mask_again(one.path, own, self.catalogue)
                if mask is None:
                    name = own.choice.mask.rpartition("#")[0]
                    refused = (
                        f"{one.path}: was built with the mask {name}, which is not where it was or was changed; "
                        "put it beside the slide, or state it again, --mask."
                    )
            if refused is not None:
                self._quarantine(one, refused)
                continue
            if mask is not None:
                self._masked[number] = mask
            mosaic = self.mosaic
            if mosaic is not None:
                mosaic = params_for(self.known.at(one.path), self.params.artefacts, mosaic)
            yield SlideTask(
                number=number,
                source=one.path,
                mosaic=mosaic,
                mpp=self.params.mpp or (own.mpp if own is not None else None) or None,
                size=one.size,
                mask=None if mask is None else mask.file,
                picture_px=self.params.thumbnail_px,
                keep_codes=self.params.store_codes,
            )

    def _keep(self, source: Candidate, made: SlideEncoded) -> None:
        """Write a slide: its pictures and codes first, so that whatever the catalogue has is whole."""
        name = self.known.id_for(source, made.content_hash)
        before = self.known.records.get(name)
        fate: Fate = "added" if before is None else "replaced"
        choice = made.choice
        if (mask := self._masked.pop(made.number, None)) is not None:
            choice = replace(choice, mask=mask.identity, mask_class=mask.classes)
        record = replace(
            before or SlideRecord(name),
            name=source.path.name,
            path=recorded_path(source.path, self.location),
            content_hash=made.content_hash,
            size=source.size,
            mtime=source.mtime,
            mpp=made.mpp,
            width=made.dimensions[0],
            height=made.dimensions[1],
            choice=choice,
        )
        said = self.labels[source.slide]
        if self.mosaic is None and not said.diagnosis:
            said = replace(said, diagnosis=_class_of(source))
        record = with_labels(record, said)
        if made.pictures:
            self.pictures.save(name, made.overview, made.boxes.tolist(), made.pictures)
        if made.codes is not None:
            save_codes(self.location, name, made.codes)
        else:
            # Those of the patches it had before are not those of the patches it has now.
            remove_codes(self.location, name)
        self.catalogue.commit(EncodedSlide(record, made.keys, made.barcodes, made.boxes))
        self.known.update([record])
        if made.all_marked:
            self._all_marked.append(name)
        patches, candidates = len(made.keys), choice.candidates
        self._finish(
            SlideDone(name, source.path, fate, patches, candidates=candidates, left_out=choice.left_out)
        )

    def _recognise(self, source: Candidate, content_hash: str) -> None:
        """Deal with a slide whose content is in the database."""
        record = self.known.with_hash(content_hash)
        if record is None:
            # The other one of the two is still on its way, in this very run.
            self._twins.append((source, content_hash))
            return
        here = place_of(record.path, self.location) == source.path.resolve()
        if not here and self.known.is_in_place(record):
            reason = f"{source.path} is the same slide as {record.slide}; it was not added again."
            self._finish(SlideDone(source.slide, source.path, "twice", reason=reason))
            return
        path = recorded_path(source.path, self.location)
        record = replace(record, name=source.path.name, path=path, size=source.size, mtime=source.mtime)
        record = as_asked(with_labels(record, self.labels[source.slide]), self.params.artefacts)
        self.catalogue.relabel([record])
        self.known.update([record])
        self._finish(SlideDone(record.slide, source.path, "unchanged" if here else "moved"))

    def _quarantine(self, source: Candidate, reason: str) -> None:
        self.catalogue.quarantine(
            Quarantined(source.slide, recorded_path(source.path, self.location), reason)
        )
        self._finish(SlideDone(source.slide, source.path, "quarantined", reason=reason))

    def _finish(self, done: SlideDone) -> None:
        was_bad = self._quarantined.get(done.slide) == recorded_path(done.path, self.location)
        if was_bad and done.fate != "quarantined":
            self.catalogue.release([done.slide])
        self.done.append(done)
        self.watch.finished(done)
        self._report()
        if self.should_stop():
            raise Cancelled("the build was stopped.")


def _under(source: Candidate, begun: Begun) -> Under:
    return Under(source.slide, source.path, begun.overview, begun.dimensions, begun.boxes)


def _class_of(source: Candidate) -> str:
    """Return the class of a patch image: the folder it is in."""
    folder = source.slide.rpartition("/")[0] or source.path.parent.name
    return folder.rpartition("/")[2]


def _is_gone(bad: Quarantined, folder: Location) -> bool:
    return not is_there(place_of(bad.path, folder))
