"""How strictly artefacts are left out: the database says, and a slide may have its own way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from napari_fish.building.params import BuildParams
from napari_fish.errors import DatabaseError
from napari_fish.mosaic import MosaicParams
from napari_fish.mosaic.left_out import spoiled
from napari_fish.mosaic.params import ARTEFACTS
from napari_fish.store.records import Choice, SlideRecord


def check_artefacts(params: BuildParams, patches: bool) -> None:
    """Refuse what is no setting, or has no meaning for images that are one patch each."""
    if params.artefacts is None:
        return
    if params.artefacts not in ARTEFACTS:
        raise DatabaseError(
            f"Artefacts cannot be left out {params.artefacts!r}; choose one of {', '.join(ARTEFACTS)}."
        )
    if patches:
        raise DatabaseError("Of images that are one patch each nothing is left out: do not state artefacts.")


def could_differ(choice: Choice, asked: str | None) -> bool:
    """Whether a slide may have other patches with the setting asked for than it has; None asks for its own."""
    if asked is None or choice.artefacts == asked:
        return False
    known = choice.artefacts in ARTEFACTS
    # From the strictest on: what nothing was left out of has the same patches with any more lenient setting.
    if known and ARTEFACTS.index(asked) > ARTEFACTS.index(choice.artefacts):
        return spoiled(choice.left_out) > 0
    return True


def params_for(record: SlideRecord | None, asked: str | None, mosaic: MosaicParams) -> MosaicParams:
    """Return how the patches of a slide are chosen: as asked for, else its own way, else the database's."""
    own = record.choice.artefacts if record is not None else ""
    setting = asked or own
    return replace(mosaic, artefacts=cast(Any, setting)) if setting in ARTEFACTS else mosaic


def as_asked(record: SlideRecord, asked: str | None) -> SlideRecord:
    """Return what is known of a slide to which the setting asked for makes no difference."""
    return record if not asked else replace(record, choice=replace(record.choice, artefacts=asked))
