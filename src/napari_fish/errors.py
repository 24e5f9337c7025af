"""What can go wrong, in words a user can act on."""


class FishError(Exception):
    """Base of every error this package raises on purpose; its text names the file and the remedy."""


class SlideError(FishError):
    """A slide cannot be opened or read."""


class NoTissue(FishError):
    """A slide has nothing on it that could be searched."""


class EncoderError(FishError):
    """An encoder bundle is missing, damaged or does not fit."""


class DatabaseError(FishError):
    """A database is missing, damaged, locked or does not fit."""


class Cancelled(Exception):
    """Long work ended early because its ``should_stop`` said so; not an error, hence no FishError."""
