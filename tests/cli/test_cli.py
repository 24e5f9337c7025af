"""The command line: exit codes, JSON, messages."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tifffile

from napari_fish import cli, kernels
from napari_fish.building.params import BuildParams
from napari_fish.cli import main
from napari_fish.evaluate import EvaluateParams
from napari_fish.names import field_help, option_of
from napari_fish.search import SearchParams
from tests.slides.conftest import make_scene, write_ome_tiff, write_tiff


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    code = ended.value.code
    out, err = capsys.readouterr()
    return int(code or 0), out, err


def test_info_writes_one_json_document_with_the_promised_fields(tmp_path: Path, capsys) -> None:
    path = write_ome_tiff(tmp_path / "mit Leerzeichen, ü.ome.tif", make_scene())
    code, out, _ = run(capsys, "info", path, "--json")
    about = json.loads(out)
    assert code == 0
    promised = "path backend width height levels mpp mpp_source objective_power series content_hash"
    assert set(promised.split()) <= set(about)
    assert (about["path"], about["width"], about["height"]) == (str(path), 900, 700)
    assert (about["mpp"], about["mpp_source"], len(about["levels"])) == (0.5, "file", 3)
    assert [s["kind"] for s in about["series"]] == ["label", "slide"]


def test_what_a_file_says_cannot_make_the_json_invalid(tmp_path: Path, capsys) -> None:
    path = tmp_path / "a.ome.tif"
    xml = (
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Instrument ID="Instrument:0">'
        '<Objective ID="Objective:0" NominalMagnification="NaN"/></Instrument><Image ID="Image:0">'
        '<ObjectiveSettings ID="Objective:0"/><Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="uint8" SizeX="90" '
        'SizeY="70" SizeC="3" SizeZ="1" SizeT="1" PhysicalSizeX="-1"><Channel SamplesPerPixel="3"/>'
        "<TiffData/></Pixels></Image></OME>"
    )
    tifffile.imwrite(path, make_scene(70, 90), photometric="rgb", description=xml, metadata=None)
    _, out, _ = run(capsys, "info", path, "--json")
    about = json.loads(out, parse_constant=pytest.fail)
    assert about["objective_power"] is None
    assert "-1" in about["notes"][0]


def test_info_takes_the_users_word_for_scale_and_image(tmp_path: Path, capsys) -> None:
    path = write_ome_tiff(tmp_path / "a.ome.tif", make_scene())
    _, out, _ = run(capsys, "info", path, "--mpp", "0.3", "--series", "0", "--json")
    about = json.loads(out)
    assert (about["mpp"], about["mpp_source"], about["width"]) == (0.3, "user", 60)


def test_info_tells_a_person_what_is_unknown_and_what_to_do(tmp_path: Path, capsys) -> None:
    path = write_tiff(tmp_path / "a.tif", make_scene(), resolution=(28, 28), resolutionunit="INCH")
    code, out, _ = run(capsys, "info", path)
    assert code == 0
    assert "unknown; state it with --mpp" in out
    assert "907.1 x 907.1 µm/px" in out


def test_a_known_error_is_one_line_and_exit_code_1(tmp_path: Path, capsys) -> None:
    path = tmp_path / "a.svs"
    path.write_text("text")
    code, out, err = run(capsys, "info", path, "--json")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert str(path) in err


@pytest.mark.parametrize("arguments", [["info"], ["no-such-command"], ["info", "a.svs", "--mpp", "large"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "Usage: napari-fish" in err


def test_verbose_may_stand_anywhere(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", make_scene(), resolution=(28, 28), resolutionunit="INCH")
    for arguments in (["-v", "info", path], ["info", path, "-v"]):
        command = [sys.executable, "-m", "napari_fish", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "not believed" in done.stderr
    quiet = subprocess.run(
        [sys.executable, "-m", "napari_fish", "info", path], capture_output=True, check=True
    )
    assert quiet.stderr == b""


def test_an_interrupt_is_exit_code_130(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "napari_fish", "demo", "--no-gui", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        # Kernels that are compiled for the first time, on a busy machine, let an interrupt wait.
        deadline = time.monotonic() + 120
        while not any(tmp_path.rglob("*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=150)
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_help_and_version_are_quick_because_nothing_heavy_is_imported() -> None:
    code = (
        "import sys\n"
        "from napari_fish.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numba', 'napari', 'qtpy', 'sklearn', 'zarr', 'openslide', 'tifffile'}\n"
        "print('imported:', heavy & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: napari-fish" in done.stdout
    assert "imported: set()" in done.stdout


def test_an_array_of_the_right_size_comes_back_from_python(tmp_path: Path) -> None:
    import napari_fish as fish

    with fish.open_slide(write_tiff(tmp_path / "a.tif", make_scene()), mpp=None, series=None) as slide:
        patch = slide.read(10, 20, 64, 48, 1.0)
    assert (patch.shape, patch.dtype) == ((48, 64, 3), np.uint8)


def test_what_the_system_refuses_is_one_line_and_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/some/where.svs")

    monkeypatch.setattr(cli, "app", refused)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["info", "x.svs"])
    said = capsys.readouterr().err
    assert stopped.value.code == 1 and said.count("\n") == 1
    assert said.startswith("napari-fish: /some/where.svs: Permission denied.")


def test_kernels_are_kept_in_a_temporary_folder_where_no_other_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    kernels.keep_kernels_somewhere()
    assert kernels.VARIABLE not in os.environ, "the package's own folder does"
    monkeypatch.setattr(kernels, "_can_be_made", lambda folder: False)
    monkeypatch.setattr(kernels.tempfile, "gettempdir", lambda: str(tmp_path))
    kernels.keep_kernels_somewhere()
    kept = Path(os.environ[kernels.VARIABLE])
    assert kept.parent == tmp_path and kept.is_dir()
    kept.chmod(0o777)
    monkeypatch.delenv(kernels.VARIABLE)
    kernels.keep_kernels_somewhere()
    assert Path(os.environ[kernels.VARIABLE]) != kept, "others might have put code there"
    monkeypatch.delenv(kernels.VARIABLE)


@pytest.mark.parametrize(
    ("command", "params", "left_out"),
    [
        ("build", BuildParams, {"thumbnail_px", "batch"}),
        ("evaluate", EvaluateParams, set()),
        (
            "search",
            SearchParams,
            {"neighbours", "latency_budget_ms", "exclude_query", "weight_sum", "matches", "fill", "threads", "guided", "clustered"},
        ),
    ],
)  # fmt: skip
def test_every_parameter_is_an_option_with_its_own_help_but_for_those_that_are_for_python_alone(
    command: str, params: type, left_out: set[str], capsys
) -> None:
    _, out, _ = run(capsys, command, "--help")
    said = "".join(out.split())
    for name, text in field_help(params).items():
        there = re.search(rf"^  {option_of(name)} ", out, re.MULTILINE) is not None
        assert there != (name in left_out), name
        assert not there or "".join(text.split()) in said, name
