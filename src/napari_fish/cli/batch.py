"""Queries are checked, then answered one after the other; each answer leaves the program as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_fish.cli.answer_text import answer_text
from napari_fish.cli.options import clear_line, progress_bar, say_meanwhile
from napari_fish.errors import FishError

if TYPE_CHECKING:
    from napari_fish.database import Asked, Database
    from napari_fish.search import SearchParams
    from napari_fish.search.output.writing import AnswerFiles, Outputs

TOGETHER = 64
"""Queries that need no encoding share a pass over the database, so many at a time."""


@dataclass(kw_only=True)
class Batch:
    """What is asked for, in the order in which it is answered.

    Attributes
    ----------
    refused
        Why a query was not answered, by its position; of several, a bad one does not stop the others.
    names
        What each query is called.
    """

    database: Database
    queries: Sequence[str]
    region: tuple[float, float, float, float] | None
    mpp: float | None
    mask: Path | None
    mask_class: str | None
    params: SearchParams
    refused: dict[int, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Refuse what cannot be answered, before anything is encoded."""
        for i, query in enumerate(self.queries):
            name = Path(query).name
            try:
                name = self.database.check(query, self.region, **self._stated)
            except FishError as error:
                self._refuse(i, error)
            self.names.append(name)

    @property
    def _stated(self) -> dict[str, Any]:
        return {"mpp": self.mpp, "mask": self.mask, "mask_class": self.mask_class}

    def files(self, outputs: Outputs, explain: bool = False) -> AnswerFiles:
        """Return the files to which answers go; those of an interrupted batch have some already."""
        from napari_fish import __version__
        from napari_fish.search.output.writing import AnswerFiles

        catalogue = self.database.store.catalogue
        depends_on = {
            "version": __version__,
            "database": [catalogue.identity, catalogue.generation, catalogue.facts.weights_hash],
            "queries": [(query, _state(query)) for query in self.queries],
            "mask": [str(self.mask), self.mask_class, _state(str(self.mask))],
            "region": self.region,
            "mpp": self.mpp,
            "params": asdict(self.params),
            "outputs": [str(path) for path in (outputs.csv, outputs.geojson, outputs.html)],
            "explain": explain,
        }
        name = self.database.path.name
        return AnswerFiles(outputs, self.names, name, depends_on, lambda line: say_meanwhile(line))

    def answers(self, files: AnswerFiles, explain: bool = False) -> Iterator[dict[str, Any]]:
        """Yield ``text`` and ``json`` of each answer; of a query that was refused, only ``json``, which says why.

        An answer goes to its files after whoever asked for it had the chance to print it.
        """
        from napari_fish.search.output.export import to_json

        for group in self._groups(files):
            asked = [one for _, one in group if one is not None]
            found = iter(self.database.answer(asked, self.params) if asked else [])
            for i, one in group:
                clear_line()
                if one is not None:
                    answer = next(found)
                    told = {"text": answer_text(answer, explain), "json": to_json(answer)}
                    yield told
                    files.add(i, answer, told)
                elif i in self.refused:
                    yield {"json": {"query": self.queries[i], "error": self.refused[i], "results": []}}
                else:
                    yield files.done[i]

    def _groups(self, files: AnswerFiles) -> Iterator[list[tuple[int, Asked | None]]]:
        """Yield encoded queries, None for one that is not to be answered: as soon as one was encoded, or many together."""
        group: list[tuple[int, Asked | None]] = []
        done = files.done
        with progress_bar("Encoding") as progress:
            for i in range(len(self.queries)):
                progress(i, len(self.queries))
                asked = None if i in self.refused or i in done else self._ask(i, progress)
                group.append((i, asked))
                if (asked is not None and asked.pictures) or len(group) >= TOGETHER:
                    yield group
                    group = []
            progress(1, 1)
        if group:
            yield group

    def _ask(self, i: int, progress: Any) -> Asked | None:
        def report(done: int, known: int) -> None:
            progress(int(1000 * (i + done / max(1, known))), 1000 * len(self.queries))

        try:
            return self.database.ask(self.queries[i], self.region, **self._stated, progress=report)
        except FishError as error:
            self._refuse(i, error)
            return None

    def _refuse(self, i: int, error: FishError) -> None:
        if len(self.queries) == 1:
            raise error
        self.refused[i] = str(error)


def _state(path: str) -> list[int] | None:
    """Return what tells that a file is still the same."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]
