"""Patches are judged beside the other patches of their slide, and in doubt they stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_fish.errors import NoTissue
from napari_fish.mosaic import MosaicParams
from napari_fish.mosaic.artefacts.beside import KINDS
from napari_fish.mosaic.artefacts.filters import Filters, Measured, Measurer, read_filters
from napari_fish.mosaic.artefacts.judge import doubtful, judged
from napari_fish.mosaic.artefacts.trees import Trees
from napari_fish.mosaic.values import Patch
from tests.mosaic.artefacts.test_measure import grain

NORMAL = MosaicParams()


def judged_as(
    monkeypatch: pytest.MonkeyPatch, kinds: list[str], odds: list[float], params: MosaicParams = NORMAL
) -> list[Patch]:
    """Judge patches of which the trees say what kind they show, and with which log odds beyond the normal limit."""
    shares = np.zeros((len(kinds), 16, len(KINDS)))
    for number, kind in enumerate(kinds):
        shares[number, :, KINDS.index(kind)] = 1
    limit = read_filters().limits["normal"]
    monkeypatch.setattr(Trees, "__call__", lambda self, rows: shares.reshape(-1, len(KINDS)))
    monkeypatch.setattr(Trees, "odds", lambda self, rows: limit + np.array(odds)[:, None])
    measurer = Measurer(params)
    measured = [measurer(grain(number)) for number in range(len(kinds))]
    places = np.stack([np.arange(len(kinds)) * 1024, np.zeros(len(kinds), np.int64)], axis=1)
    return judged(Path("a.svs"), places, measured, params)[0]


def test_the_reason_is_the_kind_of_artefact(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ["ink", "fold", "debris", "blur", *["ink"] * 6]
    patches = judged_as(monkeypatch, kinds, [3.0] * 4 + [-4.0] * 6)
    assert [p.reason for p in patches] == ["ink", "fold", "debris", "blur", *[""] * 6]


@pytest.mark.parametrize(("strictness", "dropped"), [("off", 0), ("normal", 1), ("strict", 2)])
def test_doubtful_patches_stay_unless_the_filter_is_strict(
    monkeypatch: pytest.MonkeyPatch, strictness: str, dropped: int
) -> None:
    params = replace(NORMAL, artefacts=strictness)
    patches = judged_as(monkeypatch, ["ink"] * 8, [0.5, -0.2, *[-6.0] * 6], params)
    assert sum(bool(p.reason) for p in patches) == dropped
    assert doubtful(patches[1], params) == (strictness != "off")
    assert not doubtful(patches[2], params)


def test_where_all_of_a_slide_is_suspicious_only_the_sure_go(monkeypatch: pytest.MonkeyPatch) -> None:
    patches = judged_as(monkeypatch, ["fold"] * 6, [1.0] * 5 + [3.0])
    assert [p.reason for p in patches] == [*[""] * 5, "fold"]


def test_what_is_inked_goes_though_it_is_most_of_a_slide_where_the_rest_is_beyond_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patches = judged_as(monkeypatch, ["ink"] * 8, [*[1.0] * 5, *[-6.0] * 3])
    assert [p.reason for p in patches] == [*["ink"] * 5, *[""] * 3]


def test_one_odd_tile_is_no_artefact(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = np.zeros((16, len(KINDS)))
    shares[:, 0] = 1
    shares[0, :2] = 0, 1
    monkeypatch.setattr(Trees, "__call__", lambda self, rows: shares)
    patches, rescued = judged(Path("a.svs"), np.zeros((1, 2), np.int64), [Measurer(NORMAL)(grain(0))], NORMAL)
    assert (patches[0].reason, rescued) == ("", False)


def test_a_slide_of_one_patch_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged_as(monkeypatch, ["blur"], [1.0])[0].reason == ""


@pytest.mark.parametrize("colour", [(0, 0, 0), (20, 40, 150), (200, 20, 30)])
def test_a_slide_that_is_all_ink_has_no_tissue(colour: tuple[int, int, int]) -> None:
    rgb = np.full((256, 256, 3), colour, np.uint8)
    measured = [Measurer(NORMAL)(rgb)] * 3
    with pytest.raises(NoTissue, match=r"a\.svs: no tissue found; all 3 patches show pen marks"):
        judged(Path("a.svs"), np.zeros((3, 2), np.int64), measured, NORMAL)


def test_a_dark_stain_all_over_the_slide_is_no_artefact() -> None:
    dark = [Measurer(NORMAL)((grain(i) * 0.45).astype(np.uint8)) for i in range(9)]
    patches, rescued = judged(Path("a.svs"), np.zeros((9, 2), np.int64), dark, NORMAL)
    assert not any(p.reason for p in patches)
    assert not rescued


def test_the_same_patch_is_judged_by_what_is_usual_on_its_slide() -> None:
    def likely(others: float) -> float:
        rows = [grain(0) * 0.4, *(grain(i) * others for i in range(1, 12))]
        measured = [Measurer(NORMAL)(row.astype(np.uint8)) for row in rows]
        return judged(Path("a.svs"), np.zeros((12, 2), np.int64), measured, NORMAL)[0][0].artefact

    assert likely(1.0) > likely(0.4)


def test_the_filters_are_read_once_and_shared() -> None:
    assert isinstance(read_filters(), Filters)
    assert read_filters() is read_filters()
    assert isinstance(Measurer(NORMAL)(grain(0)), Measured)
