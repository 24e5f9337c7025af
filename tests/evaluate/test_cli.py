"""``napari-fish evaluate``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from napari_fish.evaluate import EvaluateParams
from tests.cli.test_cli import run
from tests.evaluate.conftest import N


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_json_is_one_document_and_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "evaluate", folder, "--mode", "exact", "-k", "3", "--json", "--jobs", 1)
    document = json.loads(out)
    assert code == 0
    assert (document["n_queries"], document["k"], document["level"]) == (N, 3, "slide")
    assert list(document["modes"]) == ["exact"]
    assert document["about"]["parameters"]["k"] == 3


def test_the_options_of_an_evaluation_ask_for_the_same_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = EvaluateParams(
        k=3, level="slide", mode="exact", ranking="label-free", within="site", where=("stain!=PAS", "site!=pelvis"),
        query_where=("site=kidney",), sample=5, threshold=61, fill=True, fixed_divisor=True, half_is_enough=True,
        seed=2, jobs=1,
    )  # fmt: skip
    code, out, _ = run(capsys, "evaluate", folder, *params.arguments(), "--json")
    asked = asdict(params)
    assert code == 0
    assert json.loads(out)["about"]["parameters"] == json.loads(json.dumps(asked))
    assert EvaluateParams().arguments() == []


def test_tables_and_report_are_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report ü.html"
    code, out, err = run(capsys, "evaluate", folder, "--report", page, "--ablation", "--jobs", 1)
    assert code == 0
    assert "mMV@5 macro" in out
    assert "exact +clean" in out
    assert "bytes a patch" in out
    assert str(page) in err
    assert "<svg" in page.read_text(encoding="utf-8")


def test_wrong_usage_and_missing_databases_are_said_clearly(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "evaluate", folder, "--mode", "magic")[0] == 2
    assert run(capsys, "evaluate", folder, "--level", "cell")[0] == 2
    code, _, err = run(capsys, "evaluate", tmp_path / "none.fish")
    assert code == 1 and "none.fish" in err and "Traceback" not in err
    code, _, err = run(capsys, "evaluate", folder, "--report", tmp_path / "nowhere" / "a.html")
    assert code == 1 and "nowhere" in err
    code, _, err = run(capsys, "evaluate", folder, "--target", "grade")
    assert code == 1 and "grade" in err
