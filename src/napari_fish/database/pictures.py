"""Pictures of an answer: of the query as it was asked, of hits from their slides or from the thumbnails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from napari_fish.database.questions import PICTURE_PX, Asked
from napari_fish.errors import FishError
from napari_fish.slides import open_slide
from napari_fish.slides.pixels import to_jpeg
from napari_fish.store.opening import pictures_of
from napari_fish.store.places import place_of
from napari_fish.store.protocol import KeptPictures
from napari_fish.store.records import Box, SlideRecord


class ArchivePictures:
    """The pictures of one answer; see :class:`~napari_fish.search.output.pictures.Pictures`.

    Parameters
    ----------
    asked
        The query.
    folder
        The database.
    records
        What is known of the slides of the answer, by id.
    """

    def __init__(self, asked: Asked, folder: Path, records: Mapping[str, SlideRecord]) -> None:
        self._asked, self._folder, self._records = asked, folder, records
        self._thumbnails: KeptPictures | None = None
        self._opened = False

    def _kept(self) -> KeptPictures | None:
        if not self._opened:
            self._thumbnails, self._opened = pictures_of(self._folder), True
        return self._thumbnails

    def query(self, index: int) -> bytes | None:
        """Return the JPEG of a patch of the query."""
        asked = self._asked
        own = len(asked.query) - len(asked.added)
        if own <= index < len(asked.query):
            return self.hit(*asked.added[index - own])
        if index < len(asked.pictures):
            return asked.pictures[index]
        if asked.query.slide and index < len(asked.query):
            return self.hit(asked.query.slide, Box(*asked.query.boxes[index].tolist()))
        return None

    def query_overview(self) -> bytes | None:
        """Return the JPEG of the whole query slide."""
        return self._asked.overview or (
            self.overview(self._asked.query.slide) if self._asked.query.slide else None
        )

    def query_size(self) -> tuple[int, int] | None:
        """Return width and height of the query slide in level-0 px."""
        return self._asked.size

    def hit_size(self, slide: str) -> tuple[int, int] | None:
        """Return width and height of a slide of the database in level-0 px."""
        record = self._records.get(slide)
        return (record.width, record.height) if record is not None and record.width else None

    def hit(self, slide: str, box: Box) -> bytes | None:
        """Return the JPEG of a region: sharp from the slide where it is at hand, else as it was kept."""
        return self._read(slide, box, PICTURE_PX) or self.thumbnail(slide, box)

    def field(self, slide: str, box: Box, times: float, px: int) -> bytes | None:
        """Return the JPEG of what lies around a region; None where the slide is not at hand."""
        width, height = round(box.width * times), round(box.height * times)
        left, top = box.x + (box.width - width) // 2, box.y + (box.height - height) // 2
        return self._read(slide, Box(left, top, width, height), px)

    def _read(self, slide: str, box: Box, px: int) -> bytes | None:
        """Return the JPEG of a region as its slide shows it, its longer side of so many px."""
        record = self._records.get(slide)
        place = None if record is None else place_of(record.path, self._folder)
        longer = max(box.width, box.height)
        if record is None or place is None or longer <= 0 or not _is_still(place, record):
            return None
        mpp = record.mpp or 1.0
        width, height = (max(1, round(px * side / longer)) for side in (box.width, box.height))
        try:
            with open_slide(place, mpp=mpp) as opened:
                return to_jpeg(opened.read(box.x, box.y, width, height, mpp * longer / px))
        except (FishError, OSError):
            return None  # the picture that was kept must do

    def thumbnail(self, slide: str, box: Box) -> bytes | None:
        """Return the JPEG of a region that was kept, in no time."""
        kept = self._kept()
        return None if kept is None else kept.patch(slide, box)

    def overview(self, slide: str) -> bytes | None:
        """Return the JPEG of a whole slide of the database."""
        kept = self._kept()
        return None if kept is None else kept.overview(slide)


def _is_still(place: Path, record: SlideRecord) -> bool:
    """Whether a slide is there and has not become another one, as far as its size tells."""
    return place.is_dir() or (place.is_file() and record.size in (0, place.stat().st_size))
