"""What a kind of files is, and where tests and real slides lie that sound files are made of."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import mutators
from .mutators import Dice

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
REAL = ROOT.parent / "shared" / "data" / "slides"


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    make
        Writes sound files into a folder.
    change
        Makes a changed copy of one, of the same name, in another folder.
    ask
        Does with a file what the program does.
    """

    make: Callable[[Path], Iterator[Path]]
    change: Callable[[Path, Path, Dice], None]
    ask: Callable[[Path], object]


def changed_file(source: Path, target: Path, dice: Dice) -> None:
    (mutators.folder if source.is_dir() else mutators.file_or_json)(source, target, dice)
