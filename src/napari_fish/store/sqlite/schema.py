"""The tables of ``fish.sqlite``."""

FILE = "fish.sqlite"
SCHEMA = (
    """CREATE TABLE encoder (
    one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, weights_hash TEXT NOT NULL, words INTEGER NOT NULL
) STRICT""",
    """CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), generation INTEGER NOT NULL, threshold INTEGER, histogram BLOB, note TEXT
) STRICT""",
    "CREATE TABLE parameters (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE slides (
    number INTEGER PRIMARY KEY AUTOINCREMENT, slide TEXT NOT NULL UNIQUE, name TEXT NOT NULL, patient TEXT NOT NULL,
    site TEXT NOT NULL, diagnosis TEXT NOT NULL, path TEXT NOT NULL, content_hash TEXT NOT NULL, size INTEGER NOT NULL,
    mtime INTEGER NOT NULL, mpp REAL NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
    mosaics INTEGER NOT NULL, generation INTEGER NOT NULL
) STRICT""",
    "CREATE INDEX slides_by_generation ON slides (generation)",
    "CREATE INDEX slides_by_hash ON slides (content_hash)",
    """CREATE TABLE labels (
    name TEXT NOT NULL, slide INTEGER NOT NULL REFERENCES slides (number) ON DELETE CASCADE, value TEXT NOT NULL,
    PRIMARY KEY (name, slide)
) STRICT, WITHOUT ROWID""",
    "CREATE INDEX labels_of_slide ON labels (slide)",
    """CREATE TABLE mosaics (
    key INTEGER NOT NULL, id INTEGER NOT NULL, slide INTEGER NOT NULL REFERENCES slides (number) ON DELETE CASCADE,
    x INTEGER NOT NULL, y INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, barcode BLOB NOT NULL,
    PRIMARY KEY (key, id)
) STRICT, WITHOUT ROWID""",
    "CREATE INDEX mosaics_of_slide ON mosaics (slide)",
    "CREATE TABLE removed (number INTEGER PRIMARY KEY, generation INTEGER NOT NULL) STRICT",
    """CREATE TABLE quarantine (
    slide TEXT PRIMARY KEY, path TEXT NOT NULL, reason TEXT NOT NULL
) STRICT, WITHOUT ROWID""",
)
#: What makes each format of the one before, the first of nothing; a new format is one more entry.
FORMATS: tuple[tuple[str, ...], ...] = (
    SCHEMA,
    ("ALTER TABLE slides ADD COLUMN choice TEXT NOT NULL DEFAULT ''",),
)
