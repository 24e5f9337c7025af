"""The catalogue in one SQLite file: the default."""
