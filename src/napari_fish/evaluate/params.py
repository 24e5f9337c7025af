"""What is evaluated and how; every option of the command line and of the widget comes from here."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from typing import get_args

from napari_fish.errors import FishError
from napari_fish.evaluate.metrics import RELEASED, RELEASED_PATCHES, Definition
from napari_fish.names import MODES, RANKINGS, Level, Mode, Ranking, option_of
from napari_fish.search.params import SearchParams

LEVELS: tuple[Level, ...] = get_args(Level)
#: Answers are kept this deep, so that another k needs no other search.
DEPTH = 20
#: Patch queries unless a sample is asked for.
PATCHES = 2000
ABLATION: dict[str, Ranking] = {
    "naive": "fish-naive", "+weighted": "fish-weighted", "+clean": "fish-clean", "+filter": "fish"
}  # fmt: skip
LABEL_FREE: Ranking = "label-free"


@dataclass(frozen=True)
class Way:
    """One line of the table: how neighbours are found and how slides are ranked.

    Attributes
    ----------
    name
        What the line is called.
    mode, ranking
        As in :class:`~napari_fish.search.SearchParams`.
    """

    name: str
    mode: Mode
    ranking: Ranking


@dataclass(frozen=True)
class EvaluateParams:
    """What an evaluation depends on besides the database.

    Attributes
    ----------
    k
        Slides looked at of each answer.
    level
        Whether whole slides are asked for, or single patches; by default what the database holds.
    target
        The column that says what is right: diagnosis, site or any other.
    mode
        Only this mode; by default all are compared.
    ranking
        This ranking in every mode; by default the one that belongs to each.
    ablation
        Also switch the parts of the ranking on one by one, as in the paper.
    speed
        Also measure time over growing parts of the database.
    augment
        Also measure time with each patch copied 10 and 100 times with noise on its latent codes; needs a database
        built with --store-codes.
    within
        A column such as site: each query is answered only from slides that share its value, as in the paper's
        retrieval within an anatomic site. Matrices are then made for each value.
    where
        Only these slides may be found, ``column=value`` or ``column!=value``.
    query_where
        Only these slides are asked for.
    sample
        At most so many queries, drawn at random; by default every slide, or 2000 patches.
    threshold
        Bits within which patches count as near, θ_h; by default as measured for the database (``guided`` and ``released`` with
        the paper's encoder: 128).
    fill
        Complete short answers from exact search in every mode, not in auto alone: tells what a mode adds to that.
    fixed_divisor
        Average precision is divided by 5, as in the published program, instead of the relevant slides among the first k.
    half_is_enough
        A short answer is right with ceil(k / 2) right ones, as in the published program for slides, instead of more.
    seed
        For the sample and the bootstrap.
    jobs
        Queries are asked in so many processes; by default one a processor.
    """

    k: int = SearchParams.k
    level: Level | None = None
    target: str = SearchParams.target
    mode: Mode | None = None
    ranking: Ranking | None = None
    ablation: bool = False
    speed: bool = False
    augment: bool = False
    within: str = ""
    where: tuple[str, ...] = ()
    query_where: tuple[str, ...] = ()
    sample: int | None = None
    threshold: int | None = None
    fill: bool = False
    fixed_divisor: bool = False
    half_is_enough: bool = False
    seed: int = 0
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)

    def __post_init__(self) -> None:
        if self.level not in (None, *LEVELS):
            raise FishError(f"The level is slide or patch, not {self.level!r}.")
        if self.mode not in (None, *MODES):
            raise FishError(f"There is no mode {self.mode!r}; choose one of {', '.join(MODES)}.")
        if self.ranking not in (None, *RANKINGS):
            raise FishError(f"There is no ranking {self.ranking!r}; choose one of {', '.join(RANKINGS)}.")
        if self.k < 1 or self.jobs < 1 or (self.sample is not None and self.sample < 1):
            raise FishError("k, sample and jobs are at least 1.")
        if self.threshold is not None and self.threshold < 0:
            raise FishError(f"The threshold is a number of bits, at least 0; got {self.threshold}.")

    def arguments(self) -> list[str]:
        """Return the options of ``napari-fish evaluate`` that ask for the same."""
        given, first = list[str](), EvaluateParams()
        for f in fields(self):
            value = getattr(self, f.name)
            option = option_of(f.name)
            if value == getattr(first, f.name):
                continue
            if isinstance(value, bool):
                given.append(option)
            else:
                for one in value if isinstance(value, tuple) else (value,):
                    given += [option, str(one)]
        return given

    @property
    def definition(self) -> Definition:
        """What counts as right."""
        return Definition("fixed" if self.fixed_divisor else "relevant", ">=" if self.half_is_enough else ">")

    @property
    def depth(self) -> int:
        """Slides kept of each answer."""
        return max(DEPTH, self.k)

    def ways(self, level: Level) -> list[Way]:
        """Return the lines of the table; there is nothing to rank at the level of patches."""
        modes = [self.mode] if self.mode else list(MODES)
        if level == "patch":
            return [Way(mode, mode, LABEL_FREE) for mode in modes]
        ways = [Way(mode, mode, self.ranking or _ranking_of(mode)) for mode in modes]
        if not self.mode and not self.ranking:
            ways.append(Way(LABEL_FREE, "exact", LABEL_FREE))
        return ways

    def ablations(self, level: Level) -> list[Way]:
        """Return the lines of the ablation study, for exact search and for the paper's."""
        if not self.ablation or level == "patch":
            return []
        modes: list[Mode] = [self.mode] if self.mode else ["exact", "guided"]
        return [Way(f"{mode} {name}", mode, ranking) for mode in modes for name, ranking in ABLATION.items()]

    def search(self, way: Way, threads: int = 1) -> SearchParams:
        """Return how to search for one line of the table; ``auto`` chooses as it does for users, with all their threads."""
        users = SearchParams()
        return SearchParams(
            k=self.depth, mode=way.mode, ranking=way.ranking, target=self.target, threshold=self.threshold,
            where=self.where, matches=1, threads=threads, fill=True if self.fill else None,
            latency_budget_ms=users.latency_budget_ms * users.threads / threads,
        )  # fmt: skip

    def as_users_search(self, way: Way) -> SearchParams:
        """Return how a user would search so, for timing: k slides with all their matches, all processors."""
        users = SearchParams()
        return replace(self.search(way, users.threads), k=self.k, matches=users.matches)


def released_at(level: Level) -> Definition:
    """Return what the published program counts as right: it judges short answers of slides and of patches otherwise."""
    return RELEASED_PATCHES if level == "patch" else RELEASED


def _ranking_of(mode: Mode) -> Ranking:
    if mode == "auto":
        return "auto"
    return "released" if mode == "released" else "fish"
