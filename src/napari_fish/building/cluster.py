"""Where a cluster is, and where its workers have what lies here."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from napari_fish.errors import FishError
from napari_fish.texts import parsed_json

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 20.0
"""A scheduler that has not answered by then is not there."""


class ClusterError(FishError):
    """The cluster cannot be used."""


@dataclass(frozen=True)
class PathMap:
    """Where workers have what lies here.

    Attributes
    ----------
    pairs
        A folder here, and the same folder as workers see it.
    """

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> PathMap:
        """Make sense of ``HERE=THERE``."""
        pairs = []
        for text in texts:
            here, sign, there = text.partition("=")
            if not (sign and here and there):
                raise FishError(f"{text!r}: write HERE=THERE, such as /mnt/slides=/data/slides.")
            pairs.append((str(Path(here).absolute()), there))
        return cls(tuple(pairs))

    def there(self, path: Path) -> Path:
        """Return where workers have a file."""
        path = path.absolute()
        for here, there in self.pairs:
            if path.is_relative_to(here):
                return Path(PurePath(there) / path.relative_to(here))
        return path

    def here(self, text: str) -> str:
        """Name a file as it is named here, in what a worker says."""
        for here, there in self.pairs:
            text = text.replace(there, here)
        return text


def connected(address: str, insecure: bool) -> Client:
    """Connect with a scheduler, by its address or by the file it wrote."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ClusterError("A cluster needs dask.distributed: pip install 'napari-fish[cluster]'.") from error
    _refuse_open(_written(address), address, insecure)
    place: dict[str, str] = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    try:
        return Client(**place, timeout=CONNECT_SECONDS, set_as_default=False, name="napari-fish")
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
        raise ClusterError(
            f"{address}: no scheduler answers there ({error}). Check the address, and for tls:// the certificates "
            "that dask is configured with."
        ) from error


def _written(address: str) -> str:
    """Return the address of a scheduler that wrote it to a file."""
    path = Path(address)
    if not path.is_file():
        if "://" not in address and not address.rpartition(":")[2].isdigit():
            raise ClusterError(
                f"{address}: is neither the address of a scheduler, such as tls://node1:8786, nor the file of one."
            )
        return address if "://" in address else f"tcp://{address}"
    try:
        said = parsed_json(path.read_bytes())["address"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{path}: is not the file of a scheduler ({error}).") from error
    return str(said)


def _refuse_open(address: str, said: str, insecure: bool) -> None:
    """Refuse to send slides' contents over a network for all to read and to change."""
    parts = urlsplit(address)
    if parts.scheme in ("tls", "wss", "inproc") or insecure:
        return
    host = parts.hostname or ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local:
        raise ClusterError(
            f"{said}: {parts.scheme}:// to another computer is not encrypted, and whoever reaches the port can run "
            "programs there. Use tls://, or allow it: --insecure."
        )
