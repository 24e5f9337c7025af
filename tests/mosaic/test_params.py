"""Parameters: presets, records, help texts."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from napari_fish.mosaic import PRESETS, MosaicParams, TissueParams, preset
from napari_fish.names import field_help


def test_the_paper_has_none_of_the_repairs() -> None:
    paper, released, default = preset("paper"), preset("released"), preset()
    assert (paper.patch_rule, paper.representative, paper.placement) == ("objective", "centre", "grid")
    assert (paper.tissue.retry, paper.tissue.base_mpp) == (False, None)
    assert (paper.artefact_model, released.artefact_model) == ("lbp", "lbp")
    assert (default.patch_rule, default.representative, default.placement) == ("exact", "member", "covering")
    assert default.tissue.retry


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="default, paper, released"):
        preset("best")


@pytest.mark.parametrize("name", PRESETS)
def test_parameters_survive_json(name: str) -> None:
    params = preset(name)
    assert MosaicParams.from_dict(json.loads(json.dumps(params.to_dict()))) == params


@pytest.mark.parametrize("params", [TissueParams, MosaicParams])
def test_every_parameter_is_explained(params: type) -> None:
    explained = field_help(params)
    assert list(explained) == [f.name for f in fields(params)]
    assert all(text.endswith(".") and len(text) > 15 for text in explained.values())


@pytest.mark.parametrize(
    "wrong",
    [{"median": 4}, {"threshold": 300}, {"min_tissue": -1}, {"close": 0}, {"downsample": 0.5}],
)
def test_tissue_parameters_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)).split("_")[0].replace("min", "areas")):
        TissueParams(**wrong)


@pytest.mark.parametrize("wrong", [{"share": 1.5}, {"clusters": 0}, {"representative": "any"}, {"patch": 10}])
def test_mosaic_parameters_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MosaicParams(**wrong)
