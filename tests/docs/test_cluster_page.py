"""What the page on clusters tells to type is typed."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from napari_fish.store.opening import open_store
from tests.tiny import write_slide

ROOT = Path(__file__).parents[2]
SECONDS = 120


def test_the_commands_for_one_computer_build_a_database(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "cluster.md").read_text(encoding="utf-8")
    part = page.partition("## On one computer")[2].partition("\n## ")[0]
    scheduler, worker, build = re.findall(r"```sh\n(.+?)\n```", part, re.DOTALL)
    for seed, name in enumerate(("one.tif", "two.tif")):
        write_slide(tmp_path / "slides" / name, seed=seed)
    (tmp_path / "slides" / "labels.csv").write_text("slide,diagnosis\none,carcinoma\ntwo,carcinoma\n")
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "NAPARI_FISH_CACHE": str(tmp_path / "cache")}
    started = []
    try:
        for name, command in (("scheduler", scheduler), ("worker", worker)):
            # The port of the dashboard may be taken.
            line = [sys.executable, "-m", *shlex.split(command), "--no-dashboard"]
            with (tmp_path / f"{name}.log").open("wb") as log:
                started.append(subprocess.Popen(line, cwd=tmp_path, env=env, stdout=log, stderr=log))
            end = time.monotonic() + SECONDS
            while not (tmp_path / "scheduler.json").exists() and time.monotonic() < end:
                time.sleep(0.1)
        line = [
            sys.executable,
            "-c",
            "from napari_fish.cli import main; main()",
            *shlex.split(build)[1:],
            "--json",
        ]
        for _ in range(SECONDS):
            done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, check=False)
            if b"None has come yet" not in done.stderr:
                break
            time.sleep(1)
    finally:
        for program in started:
            program.terminate()
        for program in started:
            program.wait(SECONDS)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["counts"] == {"added": 2}
    with open_store(tmp_path / "archive.fish") as store:
        assert store.slides.alive.sum() == 2
