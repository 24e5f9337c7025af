"""Which slide a name means, when people write names as they please."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from napari_fish.slides.formats import SUFFIXES

_ENDING = re.compile(
    r"(?<=[^/])(\.ome)?({}|\.zarr|\.zarr\.zip)$".format("|".join(map(re.escape, sorted(SUFFIXES)))),
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(r"/|[A-Za-z]:|[A-Za-z][\w+.-]*://")

Form = Callable[[str], str]


@dataclass(frozen=True)
class Found:
    """The slides a name may mean.

    Attributes
    ----------
    slides
        Their ids; several where the name is ambiguous, none where no slide fits.
    looseness
        How much had to be overlooked; 0 for the very path.
    elsewhere
        The name is that of a file in another folder: only the end of the paths agrees.
    """

    slides: tuple[str, ...] = ()
    looseness: int = 0
    elsewhere: bool = False


class SlideNames:
    """Slides by whatever may be called their name.

    Parameters
    ----------
    slides
        Their ids: POSIX paths with extension, relative to the folder of the slides.
    """

    def __init__(self, slides: Iterable[str]) -> None:
        self._slides = tuple(dict.fromkeys(slides))
        self._indexes: dict[Form, tuple[dict[str, list[str]], dict[str, list[str]]]] = {}

    def find(self, name: str) -> Found:
        r"""Return the slides of a name: a path or its end, with or without extension, with ``/`` or ``\``.

        What overlooks least decides: the very path before the file name, that before a name without
        extension, that before the part up to the first dot (``TCGA-DU-6399-01Z-00-DX1`` of
        ``TCGA-DU-6399-01Z-00-DX1.uuid.svs``), all these before the same in another case; and for absolute
        paths, which may come from another computer, a file of that name in another folder.
        """
        path = clean_path(name)
        if not path:
            return Found()
        absolute = _ABSOLUTE.match(name.strip().replace("\\", "/")) is not None
        for elsewhere in (False, True) if absolute else (False,):
            for number, form in enumerate(FORMS):
                if form in UP_TO_DOT and "." in without_ending(path).rpartition("/")[2]:
                    continue
                paths, ends = self._index(form)
                key = form(path)
                attempts = [(ends, _ends(key))] if elsewhere else [(paths, _ends(key)), (ends, [key])]
                for step, (index, keys) in enumerate(attempts):
                    slides = next((index[k] for k in keys if k in index), None)
                    if slides is not None:
                        looseness = 2 * (number + elsewhere * len(FORMS)) + step
                        return Found(tuple(slides), looseness, elsewhere)
        return Found()

    def _index(self, form: Form) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return the slides by their path and by every end of their path, in one form."""
        if form not in self._indexes:
            paths: dict[str, list[str]] = defaultdict(list)
            ends: dict[str, list[str]] = defaultdict(list)
            for slide in self._slides:
                key = form(clean_path(slide))
                paths[key].append(slide)
                for end in _ends(key):
                    ends[end].append(slide)
            self._indexes[form] = dict(paths), dict(ends)
        return self._indexes[form]


def clean_path(name: str) -> str:
    """Return a path with ``/`` only and nothing empty in it, without a beginning that leads nowhere."""
    return "/".join(part for part in name.strip().replace("\\", "/").split("/") if part not in ("", "."))


def without_ending(path: str) -> str:
    """Return a path without the extension of a slide; dots that begin no such extension stay."""
    return _ENDING.sub("", path)


def _ends(path: str) -> list[str]:
    """Return the path and all its ends, longest first."""
    parts = path.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))]


def _as_is(path: str) -> str:
    return path


def _up_to_dot(path: str) -> str:
    folder, slash, name = without_ending(path).rpartition("/")
    return folder + slash + (name.partition(".")[0] or name)


def _folded(form: Form) -> Form:
    # macOS takes letters with accents apart, others do not.
    return lambda path: unicodedata.normalize("NFC", unicodedata.normalize("NFC", form(path)).casefold())


_FOLDED_UP_TO_DOT = _folded(_up_to_dot)
UP_TO_DOT = (_up_to_dot, _FOLDED_UP_TO_DOT)
FORMS = (_as_is, without_ending, _up_to_dot, _folded(_as_is), _folded(without_ending), _FOLDED_UP_TO_DOT)
"""What may be overlooked, the least first."""
