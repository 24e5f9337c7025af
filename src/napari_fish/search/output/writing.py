"""Answers go to files as they come: what is found is never lost, and a batch that was interrupted goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_fish.errors import FishError
from napari_fish.search.output.export import FORMATS, to_csv
from napari_fish.search.output.page import page_of_parts, part_of
from napari_fish.search.values import Results
from napari_fish.texts import file_stem, parsed_json

UNFINISHED = ".unfinished"
"""What the name of the notes of a batch adds to that of its first file; they are there until the batch is complete."""


@dataclass(frozen=True)
class Outputs:
    """Where answers are wanted; None for not at all.

    Attributes
    ----------
    csv
        A table, of several queries one below the other.
    geojson
        The matching regions; for several queries one file each, ``NAME-QUERY.geojson``.
    html
        One page.
    """

    csv: Path | None = None
    geojson: Path | None = None
    html: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """All files as they were named."""
        return [path for path in (self.csv, self.geojson, self.html) if path is not None]


def check_outputs(paths: Iterable[Path], inputs: Iterable[Path] = ()) -> None:
    """Raise what writing these files would raise, as far as that can be known before the work is done.

    Parameters
    ----------
    paths
        Files to be written.
    inputs
        Files that must not be written over.
    """
    taken = {path.resolve() for path in inputs}
    for path in paths:
        folder, place = path.parent, path.resolve()
        if place in taken:
            raise FishError(f"Cannot write {path}: it is used already. Name another file.")
        taken.add(place)
        if path.is_dir():
            reason = "it is a folder. Name a file in it"
        elif not folder.is_dir():
            reason = f"there is no folder {folder}. Make it, or choose another place"
        elif not os.access(path if path.exists() else folder, os.W_OK):
            reason = "it is not yours to write to. Choose another place"
        else:
            continue
        raise FishError(f"Cannot write {path}: {reason}.")


def one_each(path: Path, names: Sequence[str]) -> list[Path]:
    """Return a file for each query: regions lie in one slide, and those of another would be drawn over it."""
    if len(names) == 1:
        return [path]
    # Room for the counter, and for names that the system adds to while it writes.
    reserved = len(f"{path.stem}-{path.suffix}".encode()) + 24
    stems = [file_stem(name, reserved) for name in names]
    folded = [stem.casefold() for stem in stems]
    used = {name for name in folded if folded.count(name) == 1}
    found = []
    for i, stem in enumerate(stems):
        if folded.count(folded[i]) > 1:
            number = i + 1
            while f"{folded[i]}-{number}" in used:
                number += len(names)
            stem = f"{stem}-{number}"
            used.add(stem.casefold())
        found.append(path.with_name(f"{path.stem}-{stem}{path.suffix}"))
    return found


class AnswerFiles:
    """The files of one command; a file that cannot be written is told of at the end and costs nothing else.

    While a batch is not complete, a file beside its first output keeps what was found, under a digest of everything the
    answers depend on. The same batch run again takes those answers from it; any other begins anew.

    Parameters
    ----------
    outputs
        Where answers are wanted.
    names
        What each query is called.
    database
        Name of the database, for the page.
    depends_on
        Everything the answers depend on, as plain values.
    say
        Called with what was written.
    """

    def __init__(
        self,
        outputs: Outputs,
        names: Sequence[str],
        database: str,
        depends_on: Any,
        say: Callable[[str], None],
    ) -> None:
        self._outputs, self._database, self._say = outputs, database, say
        self._several = len(names) > 1
        self._geojson = one_each(outputs.geojson, names) if outputs.geojson else []
        self._kept: dict[int, dict[str, Any]] = {}
        self._wrong: dict[Path, str] = {}
        self._notes: Path | None = None
        self._single: Results | None = None
        if self._several and outputs.paths:
            first = outputs.paths[0]
            self._notes = first.with_name(first.name + UNFINISHED)
            self._resume(_digest(depends_on))

    @property
    def done(self) -> Mapping[int, Any]:
        """What was put beside the answers that are there from before, by the position of their query."""
        return {i: part["beside"] for i, part in self._kept.items()}

    def add(self, position: int, answer: Results, beside: Any = None) -> None:
        """Write an answer; ``beside`` are plain values to be kept with it until the batch is complete."""
        part: dict[str, Any] = {"position": position, "beside": beside}
        if self._outputs.csv:
            part["csv"] = to_csv(answer, query=self._several)
        if self._outputs.geojson:
            part["geojson"] = _text(answer, ".geojson")
        if self._outputs.html and self._several:
            part["html"] = part_of(answer, position + 1)
        self._single = answer
        self._kept[position] = part
        if self._notes is not None:
            self._write(self._notes, json.dumps(part) + "\n", more=True, quietly=True)
        self._show(part)

    def finish(self) -> list[str]:
        """Write what needs all answers; return what could not be written."""
        parts = [self._kept[i] for i in sorted(self._kept)]
        csv, html = self._outputs.csv, self._outputs.html
        if html and parts:
            if self._several:
                text = page_of_parts([part["html"] for part in parts], database=self._database)
            else:
                assert self._single is not None
                text = _text(self._single, ".html", self._database)
            self._write(html, text)
        if csv and csv not in self._wrong and parts:
            self._say(f"Written: {csv}")
        return list(self._wrong.values())

    def forget(self) -> None:
        """Delete the notes: every query has its answer, and there is nothing to go on with."""
        if self._notes is not None:
            self._notes.unlink(missing_ok=True)

    def _show(self, part: Mapping[str, Any]) -> None:
        """Write what stands for one answer alone."""
        if self._outputs.csv:
            header, _, lines = part["csv"].partition("\n")
            first = len(self._kept) == 1
            self._write(
                self._outputs.csv, f"{header}\n{lines}" if first else lines, more=not first, quietly=True
            )
        if self._outputs.geojson:
            self._write(self._geojson[part["position"]], part["geojson"])

    def _resume(self, digest: str) -> None:
        """Take what an interrupted batch left, if it was this one, and begin the notes of this one."""
        assert self._notes is not None
        parts = []
        if self._notes.is_file():
            lines = self._notes.read_text(encoding="utf-8", errors="replace").splitlines()
            if lines and lines[0] == digest:
                parts = [part for line in lines[1:] if (part := _part(line)) is not None]
        self._write(self._notes, "\n".join([digest, *map(json.dumps, parts)]) + "\n", quietly=True)
        for part in parts:
            self._kept[part["position"]] = part
            self._show(part)
        if parts:
            self._say(f"{len(parts)} answers are there from before: {self._notes.name}")

    def _write(self, path: Path, text: str, *, more: bool = False, quietly: bool = False) -> None:
        if path in self._wrong:
            return
        try:
            # A file name that is not valid Unicode must not cost the whole answer.
            with path.open("a" if more else "w", encoding="utf-8", errors="replace", newline="") as file:
                file.write(text)
        except OSError as error:
            self._wrong[path] = f"Cannot write {path}: {error.strerror or error}."
            return
        if not quietly:
            self._say(f"Written: {path}")


def _text(answer: Results, ending: str, database: str = "") -> str:
    make = FORMATS[ending].text
    assert make is not None
    return make(answer, database, None)


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, default=str, sort_keys=True).encode()).hexdigest()


def _part(line: str) -> dict[str, Any] | None:
    """Read a line of the notes; None for the last one of a program that was killed while it wrote it."""
    try:
        part = parsed_json(line)
    except ValueError:
        return None
    return part if isinstance(part, dict) and isinstance(part.get("position"), int) else None
