"""How long it takes to read and encode slides of a database."""

from __future__ import annotations

from napari_fish.database.database import Database
from napari_fish.errors import Cancelled, FishError
from napari_fish.work import ShouldStop

# Slides encoded to say how long that takes.
_ENCODED = 3


def encoding_times(database: Database, should_stop: ShouldStop | None = None) -> list[float]:
    """Encode a few slides that are at hand, and return the ms each took; slides elsewhere are no reason to fail.

    Parameters
    ----------
    database
        Whose slides, and with whose encoder.
    should_stop
        Asked often; a yes ends it with :class:`~napari_fish.errors.Cancelled`.
    """
    times: list[float] = []
    for record in database.store.slides:
        if len(times) == _ENCODED:
            break
        if record.slide:
            try:
                asked = database.ask(database.place(record), mpp=record.mpp or None, should_stop=should_stop)
            except Cancelled:
                raise
            except FishError:
                continue
            times.append(sum(asked.elapsed_ms.values()))
    return times
