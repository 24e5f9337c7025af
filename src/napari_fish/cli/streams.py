"""What is printed cannot steer the terminal, whatever the names of files hold."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from napari_fish.texts import printable


class PlainStream:
    """A stream that writes control characters out, line feeds and tabs excepted; in all else the stream it wraps."""

    def __init__(self, stream: TextIO) -> None:
        self.bare = stream

    def write(self, text: str) -> int:
        """Write a text in which no control character is left."""
        return self.bare.write(printable(text))

    def writelines(self, lines: Any) -> None:
        """Write lines in which no control character is left."""
        self.bare.writelines(map(printable, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bare, name)


def bare(stream: Any) -> TextIO:
    """Return the stream for what the program itself means to steer the terminal with, such as a bar."""
    found: TextIO = stream.bare if isinstance(stream, PlainStream) else stream
    return found


@contextmanager
def plain_streams() -> Iterator[None]:
    """Let everything that is printed be plain text in UTF-8."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout, sys.stderr = PlainStream(before[0]), PlainStream(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
