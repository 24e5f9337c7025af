"""Slides are encoded by the workers of a cluster that a site started with dask's own tools."""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from napari_fish import __version__
from napari_fish.building.cluster import CONNECT_SECONDS, ClusterError, PathMap, connected
from napari_fish.building.cluster_work import Sign, Wanted, fitness, heard, receive, work
from napari_fish.building.limits import Limits
from napari_fish.building.params import BuildParams
from napari_fish.building.settings import ChosenEncoder
from napari_fish.building.slide_task import Begun, Desk, Known, Outcome, Refused, SlideTask
from napari_fish.building.summary import Watch
from napari_fish.encode.bundle.bundle import CARD_FILE, WEIGHTS_FILE, find_bundle, read_card
from napari_fish.errors import Cancelled, FishError, SlideError
from napari_fish.mosaic.masks.maskfile import MaskFile
from napari_fish.texts import count, enumerated
from napari_fish.work import ShouldStop

if TYPE_CHECKING:
    from distributed import Client, Future

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
"""How often it is looked whether to stop."""
FIT_SECONDS = 10.0
"""How often it is looked for workers that came since."""
AHEAD = 2
"""Slides given for each that can be worked on, so that no worker waits for the next one."""
MOST_ENDS = 2
"""A slide is refused that was silent for too long so often."""
GPU = "GPU"
"""What workers call a GPU among their resources."""


@dataclass
class _Sent:
    """A task on its way."""

    task: SlideTask
    look: bool
    allowed: tuple[str, ...] = ()
    worker: str = ""
    heard: float = 0.0
    ends: int = 0


class RunnerCluster:
    """Encodes on a cluster.

    Parameters
    ----------
    address
        Of the scheduler, ``tls://host:port``, or the file it wrote.
    chosen
        The encoder; workers that lack it are sent it.
    paths
        Where workers have the slides.
    insecure
        Allow a connection to another computer that is not encrypted.
    limits
        How long a slide may give no sign of life.
    watch
        What to call.
    """

    def __init__(
        self,
        address: str,
        chosen: ChosenEncoder,
        *,
        paths: PathMap | None = None,
        insecure: bool = False,
        limits: Limits | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._address, self._chosen = address, chosen
        self._paths, self._insecure, self._limits = paths or PathMap(), insecure, limits or Limits()
        self._watch, card = watch or Watch(), chosen.card
        topic = f"napari-fish-{uuid.uuid4()}"
        self._wanted = Wanted(
            version=__version__,
            encoder=card.id,
            sha256=card.sha256,
            device=chosen.device,
            batch=chosen.batch,
            topic=topic,
            live=self._watch.live,
        )
        self._client: Client | None = None
        self._fit: dict[str, int] = {}
        self._seen: set[str] = set()
        self._gpus = False
        self._looked = 0.0
        self._news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.notes: list[str] = []

    @classmethod
    def of(cls, params: BuildParams, chosen: ChosenEncoder, watch: Watch) -> RunnerCluster:
        """Encode where a build is to."""
        assert params.cluster is not None
        paths = PathMap.of(params.map_path)
        return cls(params.cluster, chosen, paths=paths, insecure=params.insecure, watch=watch)

    def start(self, should_stop: ShouldStop) -> None:
        """Connect, and see which workers are fit for the work."""
        if self._client is not None:
            return
        self._client = connected(self._address, self._insecure)
        self._client.subscribe_topic(self._wanted.topic, lambda event: self._news.put(heard(event[1])))
        self._look_for_workers()
        if not self._fit:
            raise ClusterError(
                f"{self._address}: no worker there can do this. "
                + (" ".join(self.notes) or "None has come yet: start some with 'dask worker'.")
            )
        where = self._client.dashboard_link
        self._watch.said(
            f"{count(len(self._fit), 'worker')} of {self._address}"
            + (f"; dashboard: {where}" if where else "")
        )

    def run(self, tasks: Iterable[SlideTask], desk: Desk) -> Generator[Outcome, None, None]:
        """Yield what becomes of each task, in any order."""
        self.start(desk.should_stop)
        supply, sent = iter(tasks), dict[Any, _Sent]()
        more = True
        try:
            while more or sent:
                if desk.should_stop():
                    raise Cancelled("the work was stopped.")
                self._check()
                self._send_anew(sent)
                while more and not desk.paused() and len(sent) < AHEAD * sum(self._fit.values()):
                    task = next(supply, None)
                    more = task is not None
                    if task is not None:
                        self._send(sent, _Sent(self._mapped(task), look=True))
                for news in self._heard(wait=bool(sent) or desk.paused()):
                    if isinstance(news, Sign):
                        _note(sent, news)
                        if news.patches:
                            desk.encoded(news.number, news.patches)
                    elif isinstance(news, Begun):
                        desk.begun(news)
                    elif (done := sent.pop(news, None)) is not None:
                        outcome = self._outcome(news, done)
                        if outcome is None:
                            self._send(sent, done)
                            continue
                        if isinstance(outcome, Known) and not desk.claim(
                            outcome.number, outcome.content_hash
                        ):
                            self._send(sent, replace(done, look=False))
                        else:
                            yield outcome
                yield from self._silent(sent)
        finally:
            self._give_up(sent)

    def close(self) -> None:
        """Let go of the cluster; its workers stay."""
        if self._client is not None:
            self._client.close(timeout=2)
            self._client = None

    def _send(self, sent: dict[Any, _Sent], one: _Sent) -> None:
        """Ask for a slide to be looked at, or to be encoded."""
        assert self._client is not None
        one.allowed, one.worker, one.heard = tuple(self._fit), "", time.monotonic()
        future = self._client.submit(
            work,
            one.task,
            self._wanted,
            look=one.look,
            pure=False,
            workers=one.allowed,
            # So that what is known already is found before anybody waits for it.
            priority=1 if one.look else 0,
            resources={GPU: 1} if self._gpus and not one.look else None,
        )
        sent[future] = one
        future.add_done_callback(self._news.put)

    def _send_anew(self, sent: dict[Any, _Sent]) -> None:
        """Give to others what only workers that are gone might have done."""
        if self._fit:
            for future, one in list(sent.items()):
                if self._fit.keys().isdisjoint(one.allowed):
                    del sent[future]
                    future.cancel()
                    self._send(sent, one)

    def _heard(self, *, wait: bool) -> Generator[Any, None, None]:
        """Yield what has come, after waiting a little for it."""
        try:
            yield self._news.get(timeout=LOOK_SECONDS if wait else 0)
            while True:
                yield self._news.get_nowait()
        except queue.Empty:
            return

    def _outcome(self, future: Future, one: _Sent) -> Outcome | None:
        """Return what became of a slide; None where its worker gave it up though nobody had asked for that."""
        from distributed import KilledWorker

        path = self._paths.here(str(one.task.path))
        if future.cancelled():
            raise self._gone()
        try:
            outcome: Outcome = future.result(timeout=CONNECT_SECONDS)
        except KilledWorker as error:
            ends = error.allowed_failures + 1
            return Refused(
                one.task.number,
                SlideError(
                    f"{path}: {ends} workers ended while they had it. The file is damaged, takes more memory than "
                    "they have, or they were ended for another reason: try it again."
                ),
            )
        except Cancelled:
            return None
        except FishError:
            raise
        except Exception as error:
            self._check()
            raise ClusterError(
                f"{self._address}: a worker failed on {path} ({type(error).__name__}: {error}). Finished slides are "
                "kept; run it again."
            ) from error
        if isinstance(outcome, Refused):
            return replace(outcome, error=type(outcome.error)(self._paths.here(str(outcome.error))))
        return outcome

    def _silent(self, sent: dict[Any, _Sent]) -> Generator[Outcome, None, None]:
        """End workers that gave no sign of life for too long; a slide that did this twice is refused."""
        assert self._client is not None
        now = time.monotonic()
        for future, one in list(sent.items()):
            if not one.worker or now - one.heard < self._limits.silence(one.task.size):
                continue
            one.heard, one.ends = now, one.ends + 1
            if one.ends >= MOST_ENDS:
                del sent[future]
                future.cancel()
            self._client.restart_workers([one.worker], timeout=CONNECT_SECONDS, raise_for_error=False)
            if one.ends >= MOST_ENDS:
                yield Refused(
                    one.task.number,
                    SlideError(
                        f"{self._paths.here(str(one.task.path))}: the program that reads it hung {one.ends} times "
                        f"({self._limits.told(one.task.size)})."
                    ),
                )
            one.worker = ""

    def _check(self) -> None:
        """Notice that the scheduler is gone, and workers that came."""
        assert self._client is not None
        if self._client.status != "running":
            raise self._gone()
        if time.monotonic() - self._looked > FIT_SECONDS:
            self._look_for_workers()

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"{self._address}: the scheduler is gone. Finished slides are kept; run it again when it is back."
        )

    def _look_for_workers(self) -> None:
        """Learn which workers there are and can do this; send the encoder to those that lack it."""
        client = self._client
        assert client is not None
        self._looked = time.monotonic()
        there: Mapping[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
        left = {worker: slots for worker, slots in self._fit.items() if worker in there}
        if self._fit and not left:
            self._watch.said("All workers are gone; waiting for others.")
        self._fit = left
        new = [worker for worker in there if worker not in self._seen]
        if new:
            self._seen.update(new)
            said = client.run(fitness, self._wanted, workers=new, on_error="return")
            unfit = {worker: _unfit(answer) for worker, answer in said.items() if _unfit(answer)}
            lacking = [worker for worker, answer in said.items() if worker not in unfit and not answer[1]]
            if lacking:
                client.run(receive, self._wanted, self._bundle(), workers=lacking)
            if unfit:
                told = enumerated([f"{worker} {why}" for worker, why in unfit.items()])
                self.notes.append(f"Left out of the work: {told}.")
            self._fit |= {worker: int(there[worker]["nthreads"]) for worker in said if worker not in unfit}
        gpus = {w: int(there[w]["resources"].get(GPU, 0)) for w in self._fit if there[w].get("resources")}
        self._gpus = any(gpus.values())
        if self._gpus:
            self._fit = {worker: gpus[worker] for worker in self._fit if gpus.get(worker)}

    def _bundle(self) -> dict[str, bytes]:
        """Return the files of the encoder."""
        path = find_bundle(self._chosen.name)
        card = read_card(path)
        weights = path / WEIGHTS_FILE if path.is_dir() else path
        return {CARD_FILE: card.to_json().encode(), WEIGHTS_FILE: weights.read_bytes()}

    def _mapped(self, task: SlideTask) -> SlideTask:
        mask = task.mask
        if isinstance(mask, MaskFile):
            mask = replace(mask, path=self._paths.there(mask.path))
        return replace(task, source=self._paths.there(task.path), mask=mask)

    def _give_up(self, sent: Mapping[Any, _Sent]) -> None:
        """Tell workers that nobody waits any more; they look now and then."""
        if self._client is not None and self._client.status == "running" and sent:
            self._client.cancel(list(sent), asynchronous=False, force=True)


def _note(sent: Mapping[Any, _Sent], sign: Sign) -> None:
    for one in sent.values():
        if one.task.number == sign.number:
            one.worker, one.heard = sign.worker, time.monotonic()


def _unfit(answer: Any) -> str:
    """Return why a worker cannot do the work, empty where it can."""
    if isinstance(answer, BaseException):
        return f"fails, is this version of napari-fish installed there? ({answer})"
    version = answer[0]
    return "" if version == __version__ else f"runs napari-fish {version} instead of {__version__}"
