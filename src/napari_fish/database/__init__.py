"""A database as people use it: open it, ask it, look after it."""

from napari_fish.database.database import Database, build, open_database
from napari_fish.database.questions import Asked, Question

__all__ = ["Asked", "Database", "Question", "build", "open_database"]
