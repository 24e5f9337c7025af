"""Slides are read in processes of their own: what one of them does there costs that slide, and nothing else."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from napari_fish.building import build as building
from napari_fish.building import limits, settings
from napari_fish.building.build import build
from napari_fish.building.limits import Limits, environments, workers_for
from napari_fish.building.params import BuildParams
from napari_fish.building.runner_processes import RunnerProcesses
from napari_fish.building.summary import Watch
from napari_fish.errors import Cancelled, EncoderError
from napari_fish.store.snapshot.store import SnapshotStore
from tests.building.planted import planted_encoder
from tests.building.test_build import NAMES, digest, fates, records
from tests.cli.test_cli import run
from tests.tiny import quick_card, write_slide

GOOD = 4
BAD = {
    "a segfault.tif": "the program that reads it ended twice (segmentation fault)",
    "b hang.tif": "ended twice (no sign of life for 30 s, the limit for",
    "c hog.tif": "ended twice (more than 1.0 GB of memory)",
    "d exception.tif": "cannot be used (ZeroDivisionError: in the depths of a library)",
}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build in processes of their own, without networks, where slides do what they are called."""
    monkeypatch.setattr(settings, "load_encoder", planted_encoder)
    monkeypatch.setattr(settings, "card_of", quick_card)


@pytest.fixture
def small_limits(planted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Limits(seconds=30, seconds_a_gb=0, memory=10**9)
    monkeypatch.setattr(building, "RunnerProcesses", partial(RunnerProcesses, limits=small))


def write_slides(folder: Path, *bad: str) -> Path:
    for seed in range(GOOD):
        write_slide(folder / f"{'acez'[seed]} good.tif", seed=seed)
    for seed, name in enumerate(bad):
        write_slide(folder / name, seed=50 + seed)
    return folder


def test_slides_that_crash_hang_eat_memory_or_raise_are_quarantined_and_no_others(
    tmp_path: Path, small_limits: None, capsys: Any
) -> None:
    slides = write_slides(tmp_path / "s", *BAD)
    code, out, err = run(capsys, "build", slides, "-o", tmp_path / "x.fish", "--workers", 2)
    assert code == 3, err
    assert sorted(records(tmp_path / "x.fish")) == [f"{letter} good.tif" for letter in "acez"]
    for name, why in BAD.items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"quarantined  {name}: ")]
        assert f"{slides / name}: " in line and why in line
    with SnapshotStore(tmp_path / "x.fish", writer=True) as store:
        assert store.verify() == []
    for name in BAD:
        write_slide((slides / name).rename(slides / f"{name[0]} mended.tif"), "normal", ord(name[0]))
    again = build(slides, tmp_path / "x.fish", params=BuildParams(workers=1))
    assert again.counts == {"unchanged": GOOD, "added": len(BAD)} and again.quarantined == ()


def test_a_slide_that_ended_a_worker_only_once_is_built(tmp_path: Path, planted: None) -> None:
    slides = write_slides(tmp_path / "s", "b moody.tif")
    assert build(slides, tmp_path / "x.fish", params=BuildParams(workers=1)).counts == {"added": GOOD + 1}
    assert (slides / "b moody.tried").exists(), "otherwise this shows nothing"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_workers_killed_at_random_leave_the_database_of_an_undisturbed_build(
    tiny_home: Path, tmp_path: Path, planted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    slides = Path(shutil.copytree(tiny_home / "Schnitte ü", tmp_path / "Schnitte ü"))
    runners: list[RunnerProcesses] = []
    kills: list[int] = []

    def made(*arguments: Any) -> RunnerProcesses:
        runners.append(RunnerProcesses(*arguments))
        return runners[-1]

    def maybe_kill(*_: object) -> None:
        pids = runners[0].pids
        if len(kills) < 4 and pids and random.random() < 0.2:
            kills.append(random.choice(pids))
            os.kill(kills[-1], signal.SIGKILL)

    monkeypatch.setattr(building, "RunnerProcesses", made)
    watch = Watch(started=maybe_kill, finished=maybe_kill, encoded=maybe_kill)
    labels, params = slides / "labels.csv", BuildParams(workers=2)
    summary = build(slides, tmp_path / "x.fish", labels, params, watch=watch)
    assert summary.counts == {"added": len(NAMES)}, (kills, summary)
    assert digest(tmp_path / "x.fish") == digest(tiny_home / "a b.fish")


def test_a_build_is_stopped_though_its_worker_hears_nothing(tmp_path: Path, planted: None) -> None:
    slides = write_slides(tmp_path / "s", "z hang.tif")
    done: list[str] = []
    polls = 0

    def should_stop() -> bool:
        nonlocal polls
        polls += bool(done)
        return polls > 5

    params = BuildParams(workers=1)
    with pytest.raises(Cancelled):
        build(
            slides,
            tmp_path / "x.fish",
            params=params,
            watch=Watch(finished=lambda one: done.append(one.slide)),
            should_stop=should_stop,
        )
    assert sorted(records(tmp_path / "x.fish")) == sorted(done)
    (slides / "z hang.tif").rename(slides / "z well.tif")
    summary = build(slides, tmp_path / "x.fish", params=params)
    assert summary.slides == GOOD + 1 and summary.counts["unchanged"] == len(done)


def test_a_paused_build_does_nothing_until_it_goes_on(tmp_path: Path, planted: None) -> None:
    slides = write_slides(tmp_path / "s", *(f"{letter} more.tif" for letter in "bdfghi"))
    events: list[object] = []
    at_poll: list[int] = []

    def paused() -> bool:
        if events and len(at_poll) < 40:
            at_poll.append(len(events))
            time.sleep(0.1)
            return True
        return False

    watch = Watch(encoded=lambda *told: events.append(told), finished=events.append, paused=paused)
    assert build(slides, tmp_path / "x.fish", params=BuildParams(workers=1), watch=watch).slides == GOOD + 6
    assert at_poll[-10] == at_poll[-1] < len(events)


def test_two_copies_given_to_two_workers_become_one_slide(tmp_path: Path, planted: None) -> None:
    slides = write_slides(tmp_path / "s")
    for letter in "bdfg":
        shutil.copy(slides / "a good.tif", slides / f"{letter} copy.tif")
    summary = build(slides, tmp_path / "x.fish", params=BuildParams(workers=2))
    assert summary.counts == {"added": GOOD, "twice": 4} and summary.slides == GOOD
    assert all(fates(summary)[f"{letter} good.tif"] == "added" for letter in "cez")


def fails_to_load(*_: object) -> None:
    raise EncoderError("encoder 'quick': its weights are damaged. Get them again.")


def ends_while_loading(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGABRT)


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (fails_to_load, "weights are damaged"),
        (ends_while_loading, r"loads it ended again and again \(aborted\)"),
    ],
)
def test_an_encoder_that_cannot_be_loaded_ends_the_build_and_leaves_no_database(
    tmp_path: Path, planted: None, monkeypatch: pytest.MonkeyPatch, load: Callable[..., None], said: str
) -> None:
    monkeypatch.setattr(settings, "load_encoder", load)
    with pytest.raises(EncoderError, match=said):
        build(write_slides(tmp_path / "s"), tmp_path / "x.fish")
    assert not (tmp_path / "x.fish").exists()


def test_each_worker_sees_a_gpu_of_its_own_and_cores_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in limits.THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(limits, "_cores", lambda: 8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,3")
    assert workers_for(0, "auto", 1000) == 2 and workers_for(0, "cuda", 4) == 1
    seen = list(islice(environments(3, "auto"), 3))
    assert [one["CUDA_VISIBLE_DEVICES"] for one in seen] == ["GPU-a", "3", "GPU-a"]
    assert {one["OMP_NUM_THREADS"] for one in seen} == {"2"}
    assert (
        workers_for(0, "cpu", 1000) > 2
        and workers_for(0, "cpu", 11) == 2
        and workers_for(0, "mps", 1000) == 1
    )
    assert workers_for(5, "cpu", 3) == 3 and "CUDA_VISIBLE_DEVICES" not in next(environments(2, "cpu"))


def test_a_larger_file_may_be_silent_for_longer() -> None:
    allowed = Limits(seconds=60, seconds_a_gb=120)
    assert (allowed.silence(0), allowed.silence(2 * 10**9)) == (60, 300)
    assert allowed.told(2 * 10**9) == "no sign of life for 5 min, the limit for 2.0 GB"
