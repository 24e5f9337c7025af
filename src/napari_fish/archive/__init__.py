"""A database as people use it: open it, ask it, look after it."""

from napari_fish.archive.asking import Asked, Question
from napari_fish.archive.database import Database, build, open_database

__all__ = ["Asked", "Database", "Question", "build", "open_database"]
