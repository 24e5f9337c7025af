"""The door: whoever keeps a database, it is found, opened, made and read by its location alone."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from napari_fish.errors import DatabaseError
from napari_fish.slides.opening import expanded
from napari_fish.store.copy import OURS
from napari_fish.store.facts import Facts
from napari_fish.store.latent_codes import FOLDER as CODES
from napari_fish.store.places import Location
from napari_fish.store.protocol import Catalogue, CataloguedStore, KeptPictures, WritablePictures
from napari_fish.store.snapshot.store import SNAPSHOT, SnapshotStore
from napari_fish.store.sqlite.catalogue import SqliteCatalogue
from napari_fish.store.sqlite.lock import write_lock
from napari_fish.store.sqlite.pictures import FILE as PICTURES
from napari_fish.store.sqlite.pictures import Thumbnails
from napari_fish.store.sqlite.schema import FILE


class Sizes(NamedTuple):
    """Bytes a database takes on disk, by its parts."""

    snapshot: int
    catalogue: int
    pictures: int
    latent_codes: int


def is_database(location: Location) -> bool:
    """Whether there is a database of ours."""
    return (expanded(location) / FILE).is_file()


def may_be_database(location: Location) -> bool:
    """Whether there is a database, or a folder that is called like one: a damaged or unfinished one, too."""
    return is_database(location) or (expanded(location).suffix == ".fish" and expanded(location).is_dir())


def open_store(location: Location, *, writer: bool = False) -> CataloguedStore:
    """Open a database to search it or, as the one writer, to change it."""
    return SnapshotStore(expanded(location), writer=writer)


def open_catalogue(location: Location) -> Catalogue:
    """Open what a database says of its slides, to read it; nothing is made ready for searching."""
    return SqliteCatalogue.open(expanded(location), read_only=True)


def pictures_of(location: Location) -> KeptPictures | None:
    """Open the pictures that a database keeps; None where there are none to be had."""
    return Thumbnails.open_to_read(expanded(location))


def pictures_to_write(location: Location) -> WritablePictures:
    """Open the pictures that a database keeps, to change them; damaged ones are made anew."""
    return Thumbnails.open_to_write(expanded(location))


def sizes_of(location: Location) -> Sizes:
    """Return what a database takes on disk."""
    folder = expanded(location)
    return Sizes(*(bytes_of(folder / name) for name in (SNAPSHOT, FILE, PICTURES, CODES)))


def bytes_of(path: Path) -> int:
    """Return the bytes of a file or of all files in a folder."""
    return sum(p.stat().st_size for p in (path, *path.rglob("*")) if p.is_file())


def create_database(location: Location, facts: Facts) -> None:
    """Make an empty database where there is none; a folder that holds anything else is refused."""
    folder = expanded(location)
    if folder.is_file():
        raise DatabaseError(f"{folder}: is a file; a database is a folder. Choose another name.")
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    # What a killed program left of ours, journals of SQLite included, and files that a desktop hides are no harm.
    foreign = [name for name in names if not name.startswith((*OURS, "."))]
    if foreign:
        raise DatabaseError(
            f"{folder}: this folder holds other files ({', '.join(foreign[:3])}). Name a folder of its own for "
            "the database, such as archive.fish."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseError(f"{folder}: cannot be made ({error.strerror}). Choose another place.") from error
    lock = write_lock(folder)
    try:
        if not (folder / FILE).is_file():
            SqliteCatalogue.create(
                folder,
                words=facts.words,
                encoder=facts.encoder,
                weights_hash=facts.weights_hash,
                parameters=facts.parameters,
            ).close()
    finally:
        lock.release()
