"""A real scheduler and real workers, started from the command line, speak TLS over loopback."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from napari_fish.building import runner_cluster
from napari_fish.building.build import build
from napari_fish.building.cluster import ClusterError, PathMap
from napari_fish.building.params import BuildParams
from napari_fish.building.summary import Watch
from napari_fish.encode import load_encoder
from napari_fish.encode.bundle.bundle import save_bundle
from napari_fish.errors import Cancelled, FishError
from napari_fish.store.opening import open_store
from tests.encode.conftest import tiny_bundle
from tests.tiny import write_archive

bundle = tiny_bundle
SRC = Path(__file__).parents[2] / "src"
SECONDS = 90


class Cluster:
    """Dask's own programs, in a folder of their own."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder, self.env = folder, env
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tls://127.0.0.1:{self.port}"
        self.scheduler_file = folder / "scheduler ü.json"
        self.programs: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start the scheduler, or a worker."""
        here = ["--host", "127.0.0.1", "--no-dashboard"]
        arguments = ["worker", self.address, *here, "--nthreads", "1", "--local-directory", str(self.folder)]
        if name == "scheduler":
            file = ["--scheduler-file", str(self.scheduler_file)]
            arguments = ["scheduler", *here, "--protocol", "tls", "--port", str(self.port), *file]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.programs[name] = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                env=self.env,
                stderr=log,
                stdout=log,
                cwd=self.folder,
            )

    def wait(self, workers: int = 2) -> None:
        """Wait until the workers have come."""
        from distributed import Client

        with Client(self.address, timeout=SECONDS, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=SECONDS)

    def worker(self, name: str) -> psutil.Process:
        """Return the process that works, which another one looks after."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            children = psutil.Process(self.programs[name].pid).children(recursive=True)
            working = [one for one in children if "spawn_main" in " ".join(one.cmdline())]
            if working:
                return working[0]
            time.sleep(0.1)
        raise AssertionError(f"{name} does not work")

    def stop(self, name: str) -> None:
        """Kill a program and what it started."""
        program = self.programs.pop(name)
        for child in psutil.Process(program.pid).children(recursive=True):
            child.kill()
        program.kill()
        program.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    trustme = pytest.importorskip("trustme", reason="no certificates without trustme")
    folder = tmp_path_factory.mktemp("cluster")
    authority = trustme.CA()
    node = folder / "node.pem"
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(node))
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    said = {
        f"{tls}{who}__{what}": str(node)
        for who in ("CLIENT", "SCHEDULER", "WORKER")
        for what in ("CERT", "KEY")
    }
    said |= {f"{tls}CA_FILE": str(folder / "ca.pem"), "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}
    import dask
    import distributed  # noqa: F401 - its settings have defaults since then

    # The way to compute that is fastest here is remembered in the cache; others round differently, and so do more threads.
    own = {"NAPARI_FISH_CACHE": str(folder / "cache")}
    threads = {"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
    made = Cluster(folder, os.environ | said | own | threads)
    from_here = {"ca-file": str(folder / "ca.pem"), "client.cert": str(node), "client.key": str(node)}
    settings = {f"distributed.comm.tls.{name}": value for name, value in from_here.items()}
    with dask.config.set(settings), pytest.MonkeyPatch.context() as patch:
        patch.setenv(*next(iter(own.items())))
        for name in ("scheduler", "worker 1", "worker 2"):
            made.start(name)
        try:
            made.wait()
            yield made
        finally:
            for name in list(made.programs):
                made.stop(name)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory, bundle: Any) -> str:
    """An encoder that the workers do not have."""
    path = tmp_path_factory.mktemp("encoder") / "tiny.safetensors"
    save_bundle(bundle.card, bundle.tensors, path)
    return str(path)


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six slides, and a file that is none."""
    folder = write_archive(tmp_path_factory.mktemp("archive") / "Schnitte ü", patients=1)
    (folder / "broken.tif").write_bytes(b"no slide")
    return folder


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster, slides: Path, encoder: str) -> str:
    """The digest of what this computer makes, by one thread as workers do."""
    import torch

    database, threads = tmp_path_factory.mktemp("here") / "here.fish", torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        build(slides, database, encoder=load_encoder(encoder))
    finally:
        torch.set_num_threads(threads)
    return digest(database)


def digest(database: Path) -> str:
    with open_store(database) as store:
        return store.digest()


def params(cluster: Cluster, encoder: str, **more: Any) -> BuildParams:
    return BuildParams(encoder=encoder, cluster=cluster.address, **more)


def test_a_cluster_makes_what_this_computer_makes_with_an_encoder_that_its_workers_lacked(
    cluster: Cluster, slides: Path, encoder: str, expected: str, tmp_path: Path
) -> None:
    # Workers see the folder under another name.
    there = tmp_path / "seen by workers"
    there.symlink_to(slides, target_is_directory=True)
    seen, shown = list[int](), list[bytes]()
    watch = Watch(
        started=lambda under: shown.append(under.overview),
        encoded=lambda path, patches: seen.append(patches),
        live=True,
    )
    made = build(
        slides, tmp_path / "a b.fish", watch=watch,
        params=BuildParams(encoder=encoder, cluster=str(cluster.scheduler_file), map_path=(f"{slides}={there}",)),
    )  # fmt: skip
    assert made.counts == {"added": 6, "quarantined": 1}
    assert digest(tmp_path / "a b.fish") == expected
    assert (
        str(slides / "broken.tif") in made.quarantined[0].reason
        and str(there) not in made.quarantined[0].reason
    )
    assert seen and all(one.startswith(b"\xff\xd8") for one in shown) and len(shown) >= 6
    assert list((cluster.folder / "cache" / "received").rglob("card.json"))


def test_of_two_copies_one_is_added(cluster: Cluster, slides: Path, encoder: str, tmp_path: Path) -> None:
    for name in ("one.tif", "other.tif"):
        (tmp_path / "slides").mkdir(exist_ok=True)
        shutil.copyfile(next(slides.rglob("P*.tif")), tmp_path / "slides" / name)
    made = build(tmp_path / "slides", tmp_path / "a.fish", params=params(cluster, encoder))
    assert made.counts == {"added": 1, "twice": 1}


def test_a_worker_killed_in_the_middle_costs_nothing(
    cluster: Cluster, slides: Path, encoder: str, expected: str, tmp_path: Path
) -> None:
    killed = list[int]()

    def kill(path: Path, patches: int) -> None:
        if not killed:
            worker = cluster.worker("worker 1")
            worker.send_signal(signal.SIGKILL)
            killed.append(worker.pid)

    made = build(slides, tmp_path / "a.fish", params=params(cluster, encoder), watch=Watch(encoded=kill))
    assert killed and made.counts["added"] == 6 and digest(tmp_path / "a.fish") == expected


def test_when_all_workers_are_killed_at_once_those_that_follow_go_on(
    cluster: Cluster, slides: Path, encoder: str, expected: str, tmp_path: Path
) -> None:
    killed = list[int]()

    def kill(path: Path, patches: int) -> None:
        if not killed:
            for name in ("worker 1", "worker 2"):
                worker = cluster.worker(name)
                killed.append(worker.pid)
                worker.send_signal(signal.SIGKILL)

    made = build(slides, tmp_path / "a.fish", params=params(cluster, encoder), watch=Watch(encoded=kill))
    assert len(killed) == 2 and made.counts["added"] == 6 and digest(tmp_path / "a.fish") == expected


def test_a_build_that_is_stopped_keeps_what_is_finished_and_the_next_one_ends_the_same(
    cluster: Cluster, slides: Path, encoder: str, expected: str, tmp_path: Path
) -> None:
    done = list[str]()
    watch = Watch(finished=lambda one: done.append(one.slide) if one.fate == "added" else None)
    with pytest.raises(Cancelled):
        build(
            slides,
            tmp_path / "a.fish",
            params=params(cluster, encoder),
            watch=watch,
            should_stop=lambda: bool(done),
        )
    made = build(slides, tmp_path / "a.fish", params=params(cluster, encoder))
    assert made.counts["unchanged"] >= 1 and made.slides == 6 and digest(tmp_path / "a.fish") == expected


def test_workers_of_another_version_are_left_out_and_named(
    cluster: Cluster, slides: Path, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_cluster, "__version__", "99.0")
    with pytest.raises(ClusterError, match=r"runs napari-fish .* instead of 99\.0"):
        build(slides, tmp_path / "a.fish", params=params(cluster, encoder))
    assert not (tmp_path / "a.fish").exists()


def test_when_the_scheduler_is_gone_finished_slides_are_kept_and_running_again_goes_on(
    cluster: Cluster, slides: Path, encoder: str, expected: str, tmp_path: Path
) -> None:
    done = list[str]()

    def stop(one: Any) -> None:
        if one.fate == "added" and not done:
            done.append(one.slide)
            cluster.stop("scheduler")

    with pytest.raises(ClusterError, match=r"scheduler is gone.*run it again"):
        build(slides, tmp_path / "a.fish", params=params(cluster, encoder), watch=Watch(finished=stop))
    for name in ("worker 1", "worker 2"):
        cluster.stop(name)
    for name in ("scheduler", "worker 1"):
        cluster.start(name)
    cluster.wait(1)
    made = build(slides, tmp_path / "a.fish", params=params(cluster, encoder))
    assert made.counts["unchanged"] >= 1 and digest(tmp_path / "a.fish") == expected


def test_an_open_connection_to_another_computer_is_refused(
    slides: Path, encoder: str, tmp_path: Path
) -> None:
    for address in ("tcp://192.0.2.1:8786", "192.0.2.1:8786", "tcp://node.example:8786"):
        with pytest.raises(ClusterError, match=r"not encrypted.*--insecure"):
            build(slides, tmp_path / "a.fish", params=BuildParams(encoder=encoder, cluster=address))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder: "nonsense", "neither the address"),
        (lambda folder: written(folder, b'{"workers": 1}'), "not the file of a scheduler"),
        (lambda folder: written(folder, b"[" * 100_000), "not the file of a scheduler"),
    ],
)
def test_what_is_no_scheduler_is_named(
    make: Callable[[Path], str], why: str, slides: Path, encoder: str, tmp_path: Path
) -> None:
    with pytest.raises(ClusterError, match=why):
        build(slides, tmp_path / "a.fish", params=BuildParams(encoder=encoder, cluster=make(tmp_path)))


def written(folder: Path, content: bytes) -> str:
    (folder / "scheduler.json").write_bytes(content)
    return str(folder / "scheduler.json")


def test_paths_are_mapped_by_folders_and_back_in_what_is_said(tmp_path: Path) -> None:
    paths = PathMap.of([f"{tmp_path / 'here'}=/data/slides"])
    assert paths.there(tmp_path / "here" / "a" / "b.svs") == Path("/data/slides/a/b.svs")
    assert paths.there(tmp_path / "hereafter" / "b.svs") == tmp_path / "hereafter" / "b.svs"
    assert paths.here("/data/slides/a/b.svs: broken") == f"{tmp_path / 'here'}/a/b.svs: broken"
    with pytest.raises(FishError, match="HERE=THERE"):
        PathMap.of(["/data/slides"])
