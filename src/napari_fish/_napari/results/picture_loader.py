"""Pictures come in the background: first the small ones that were kept, then sharp ones from the slides."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

from qtpy.QtCore import QObject, Signal
from qtpy.QtGui import QImage

from napari_fish.search.output.pictures import Pictures
from napari_fish.store.records import Box

log = logging.getLogger(__name__)

KEPT = 500
"""Pictures that are kept in memory."""
FIELD, FIELD_PX = 4.0, 512
"""How many times wider the field around a region is, and how many px its picture has."""
# One thread each, so that a slow slide never holds up the pictures that are at hand, nor the one that is asked for now.
_LANES = ("kept", "slide", "field")

Key = tuple[Hashable, ...]


class PictureLoader(QObject):
    """Pictures of one answer after the other; ask again after :attr:`ready`."""

    ready = Signal(object)
    """The key of a picture that has come, or that is known not to exist."""
    _loaded = Signal(int, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pictures: Pictures | None = None
        self._answer = 0
        self._images: OrderedDict[Key, QImage | None] = OrderedDict()
        self._waiting: dict[Key, Future[None]] = {}
        self._lanes = {name: ThreadPoolExecutor(1, f"napari-fish-{name}") for name in _LANES}
        self._loaded.connect(self._keep)

    def use(self, pictures: Pictures | None) -> None:
        """Load the pictures of an answer from now on; what is still wanted of another one is not any more."""
        self._answer += 1
        self._pictures = pictures
        for future in self._waiting.values():
            future.cancel()
        self._waiting.clear()
        self._images.clear()

    def close(self) -> None:
        """Load nothing any more, for good."""
        self.use(None)
        for lane in self._lanes.values():
            lane.shutdown(wait=False, cancel_futures=True)

    @property
    def busy(self) -> bool:
        """Whether a picture is still to come."""
        return bool(self._waiting)

    def known(self, key: Key) -> bool:
        """Whether a picture has come, or is known not to exist."""
        return key in self._images

    def region(self, slide: str, box: Box) -> QImage | None:
        """Return a region of a hit, as sharp as it is at hand; a sharper one is on its way."""
        pictures = self._pictures
        if pictures is None:
            return None
        small, sharp = ("thumbnail", slide, box), ("hit", slide, box)
        if sharp not in self._images:
            if self._image(small, "kept", lambda: pictures.thumbnail(slide, box)) is None and (
                small not in self._images
            ):
                return None
            self._image(sharp, "slide", lambda: pictures.hit(slide, box))
        return self._images.get(sharp) or self._images.get(small)

    def query(self, index: int) -> QImage | None:
        """Return a region of the query."""
        pictures = self._pictures
        if pictures is None:
            return None
        return self._image(("query", index), "kept", lambda: pictures.query(index))

    def field(self, slide: str, box: Box) -> QImage | None:
        """Return a field around a region; known and None where its slide is not at hand."""
        pictures = self._pictures
        if pictures is None:
            return None
        return self._image(
            field_key(slide, box), "field", lambda: pictures.field(slide, box, FIELD, FIELD_PX)
        )

    def _image(self, key: Key, lane: str, read: Callable[[], bytes | None]) -> QImage | None:
        if key in self._images:
            self._images.move_to_end(key)
            return self._images[key]
        if key not in self._waiting:
            self._waiting[key] = self._lanes[lane].submit(self._load, self._answer, key, read)
        return None

    def _load(self, answer: int, key: Key, read: Callable[[], bytes | None]) -> None:
        """Read a picture; runs in another thread."""
        image = None
        if answer == self._answer:
            try:
                jpeg = read()
                image = QImage.fromData(jpeg) if jpeg else None
            except Exception as error:  # noqa: BLE001 - whatever it is, a card must not wait for ever
                log.info("no picture of %s: %s", key, error)
        try:
            self._loaded.emit(answer, key, image)
        except RuntimeError:  # the widget is gone
            log.debug("nobody waits for %s any more", key)

    def _keep(self, answer: int, key: Key, image: QImage | None) -> None:
        if answer != self._answer:
            return
        self._waiting.pop(key, None)
        self._images[key] = None if image is None or image.isNull() else image
        while len(self._images) > KEPT:
            self._images.popitem(last=False)
        self.ready.emit(key)


def field_key(slide: str, box: Box) -> Key:
    """Return the key of the field around a region."""
    return ("field", slide, box)
