"""Long work: how it tells how far it is, and how it is asked to end."""

from __future__ import annotations

from collections.abc import Callable

from napari_fish.errors import Cancelled

Progress = Callable[[int, int], None]
"""Called with the work done and all the work."""
ShouldStop = Callable[[], bool]
"""Asked often; a yes ends the work."""


def stop_if_asked(should_stop: ShouldStop | None, said: str = "") -> None:
    """End the work with :class:`~napari_fish.errors.Cancelled`, which says so, if that is wanted."""
    if should_stop is not None and should_stop():
        raise Cancelled(said)
