"""Where the pictures of an answer come from."""

from __future__ import annotations

from typing import Protocol

from napari_fish.store.records import Box


class Pictures(Protocol):
    """Pictures of a query and of the slides found; None wherever there is none."""

    def query(self, index: int) -> bytes | None:
        """Return the JPEG of a patch of the query."""
        ...

    def query_overview(self) -> bytes | None:
        """Return the JPEG of the whole query slide, with nothing drawn on it."""
        ...

    def query_size(self) -> tuple[int, int] | None:
        """Return width and height of the query slide in level-0 px, to place boxes on its overview."""
        ...

    def hit_size(self, slide: str) -> tuple[int, int] | None:
        """Return width and height of a slide of the database in level-0 px."""
        ...

    def hit(self, slide: str, box: Box) -> bytes | None:
        """Return the JPEG of a region, in level-0 px, of a slide of the database."""
        ...

    def thumbnail(self, slide: str, box: Box) -> bytes | None:
        """Return a small JPEG of a region at once, without opening the slide."""
        ...

    def field(self, slide: str, box: Box, times: float, px: int) -> bytes | None:
        """Return the JPEG, its longer side of ``px``, of a field so many times wider around a region."""
        ...

    def overview(self, slide: str) -> bytes | None:
        """Return the JPEG of a whole slide of the database."""
        ...
