"""What was found out about this machine once and need not be found out again: small JSON files in the cache folder."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

from filelock import FileLock, Timeout

from napari_fish.encode.bundle.bundle import cache_folder
from napari_fish.texts import parsed_json

LONGEST_SECONDS = 120.0
"""Whoever waits so long for others to find out does it alone."""


@contextlib.contextmanager
def one_at_a_time(file: str) -> Iterator[None]:
    """Let other programs that are about to find out the same wait, so that all of them go by what the first one found."""
    lock = FileLock(cache_folder() / f"{file}.lock", timeout=LONGEST_SECONDS)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, Timeout, NotImplementedError):
            cache_folder().mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock)
        yield


def remembered(file: str) -> dict[str, Any]:
    """Return everything in a file of the cache folder; nothing if it is missing or damaged."""
    try:
        content = parsed_json((cache_folder() / file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def remember(file: str, name: str, value: object) -> None:
    """Keep a value under a name; a folder that cannot be written only costs finding out again."""
    path = cache_folder() / file
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        partial.write_text(json.dumps({**remembered(file), name: value}), encoding="utf-8")
        os.replace(partial, path)
