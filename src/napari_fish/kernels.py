"""Where compiled kernels are kept when neither the package's folder nor the home can be written to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


def keep_kernels_somewhere() -> None:
    """Name a temporary folder to numba where it would find none, and refuse to compile at all."""
    if VARIABLE in os.environ or _can_be_made(Path(__file__).parent / "index" / "__pycache__"):
        return
    if not _can_be_made(_cache_of_user() / "numba"):
        os.environ[VARIABLE] = str(_private_folder())


def _cache_of_user() -> Path:
    """Return what numba takes for the user's cache, near enough to know whether it can be written to."""
    named = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    try:
        return Path(named) if named else Path.home() / ".cache"
    except RuntimeError:
        return Path("/nowhere")


def _can_be_made(folder: Path) -> bool:
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _private_folder() -> Path:
    """Return a folder that is kept for the next time, if nobody else can have put code there."""
    if hasattr(os, "getuid"):
        kept = Path(tempfile.gettempdir()) / f"napari-fish-{os.getuid()}"
        try:
            kept.mkdir(mode=0o700, exist_ok=True)
            status = kept.lstat()
            if (
                kept.is_dir()
                and not kept.is_symlink()
                and status.st_uid == os.getuid()
                and not status.st_mode & 0o077
            ):
                return kept
        except OSError:
            pass
    return Path(tempfile.mkdtemp(prefix="napari-fish-"))
