"""What a database is made with: decided by its first build, the same for every slide after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from napari_fish.building.params import BuildParams
from napari_fish.building.runner import Runner
from napari_fish.building.strictness import check_artefacts, params_for
from napari_fish.encode import DEFAULT_ENCODER, Encoder, check_same_encoder, load_encoder
from napari_fish.encode.bundle.barcode import words_for
from napari_fish.encode.bundle.bundle import find_bundle, read_card
from napari_fish.encode.bundle.card import NEIGHBOUR, Card
from napari_fish.errors import DatabaseError, EncoderError
from napari_fish.mosaic import PRESETS, MosaicParams, preset
from napari_fish.store.facts import Facts
from napari_fish.store.opening import create_database, is_database, open_store
from napari_fish.store.places import is_there, place_of, recorded_path
from napari_fish.store.protocol import Catalogue, CataloguedStore
from napari_fish.work import ShouldStop


@dataclass(frozen=True)
class Settings:
    """What every slide of a database is encoded with.

    Attributes
    ----------
    mosaic
        How patches are chosen; None where each image is one patch.
    """

    mosaic: MosaicParams | None


@dataclass(frozen=True)
class ChosenEncoder:
    """The encoder of a database, to be loaded where it works, which may be in another process.

    Attributes
    ----------
    card
        What it is.
    make
        Loads it.
    device
        Where it is to compute: auto, cuda, mps, xpu or cpu.
    batch
        Patches computed at once; 0 for what suits the device.
    name
        Its id or path; empty for one that is loaded already.
    """

    card: Card
    make: Callable[[], Encoder]
    device: str = "auto"
    batch: int = 0
    name: str | Path = ""

    def load(self) -> Encoder:
        """Load it."""
        encoder = self.make()
        if encoder.card.sha256 != self.card.sha256:
            raise EncoderError(f"encoder {self.card.id!r}: has become another one meanwhile. Run it again.")
        if self.batch:
            encoder.batch = self.batch
        return encoder


def choose_encoder(
    catalogue: Catalogue | None, asked: str | None = None, device: str = "auto", batch: int = 0
) -> ChosenEncoder:
    """Return the one encoder that fits a database, or is to make a new one.

    Parameters
    ----------
    catalogue
        The database; None for one that is yet to be made.
    asked
        Id or path; by default the one from where it was, else the one of that name.
    device, batch
        Where it is to compute, and how many patches at once.
    """
    name: str | Path = asked or DEFAULT_ENCODER
    if catalogue is not None and not asked:
        kept = place_of(catalogue.facts.bundle, catalogue.location)
        name = kept if kept is not None and is_there(kept) else catalogue.facts.encoder
    chosen = ChosenEncoder(card_of(name), partial(load_encoder, name, device), device, batch, name)
    if catalogue is not None:
        _check_encoder(catalogue, chosen.card)
    return chosen


def card_of(name: str | Path) -> Card:
    """Return what an encoder is, given by id or path, without loading it."""
    return read_card(find_bundle(name))


def _check_encoder(catalogue: Catalogue, card: Card) -> None:
    check_same_encoder(catalogue.facts.encoder, catalogue.facts.weights_hash, card, str(catalogue.location))


def open_for_build(
    folder: Path,
    params: BuildParams,
    runner_of: Callable[[ChosenEncoder], Runner],
    encoder: Encoder | None = None,
    should_stop: ShouldStop = lambda: False,
) -> tuple[CataloguedStore, Runner, Settings]:
    """Open a database to write, making it where it is missing, and refuse to mix what does not fit.

    Parameters
    ----------
    folder
        ``NAME.fish``.
    params
        What is asked for.
    runner_of
        Returns who is to work with an encoder.
    encoder
        One that is loaded already.
    should_stop
        Asked while an encoder is loaded for a database that is yet to be made.
    """
    if params.preset is not None and params.preset not in PRESETS:
        raise DatabaseError(f"There is no preset {params.preset!r}; choose one of {', '.join(PRESETS)}.")
    check_artefacts(params, bool(params.patches))
    _refuse_masks(params, bool(params.patches))
    loaded = None if encoder is None else ChosenEncoder(encoder.card, lambda: encoder, batch=params.batch)
    asked = params.encoder, params.device, params.batch
    runner: Runner | None = None
    try:
        if not is_database(folder):
            chosen = loaded or choose_encoder(None, *asked)
            facts = _facts(folder, params, chosen.card)
            runner = runner_of(chosen)
            # An encoder that cannot be used must not leave a database behind.
            runner.start(should_stop)
            create_database(folder, facts)
        store = open_store(folder, writer=True)
        try:
            settings = _recorded(store.catalogue, params)
            check_artefacts(params, settings.mosaic is None)
            chosen = loaded or choose_encoder(store.catalogue, *asked)
            _check_encoder(store.catalogue, chosen.card)
        except BaseException:
            store.close()
            raise
    except BaseException:
        if runner is not None:
            runner.close()
        raise
    return store, runner or runner_of(chosen), settings


def _facts(folder: Path, params: BuildParams, card: Card) -> Facts:
    """Return what a new database is made with."""
    from napari_fish import __version__

    name = params.preset or "default"
    mosaic = params_for(None, params.artefacts, _mosaic_at_scale(name, card, bool(params.patches)))
    bundle = Path(params.encoder) if params.encoder and Path(params.encoder).exists() else None
    return Facts(
        card.id,
        card.sha256,
        words_for(card.barcode_length),
        preset=name,
        mosaic=mosaic.to_dict(),
        patches=bool(params.patches),
        version=__version__,
        paper_barcodes=is_papers(card),
        bundle=recorded_path(bundle, folder),
    )


def _mosaic_at_scale(name: str, card: Card, patches: bool) -> MosaicParams:
    """Return a preset with the patches that an encoder looks at, so that builds and boxes show it the same."""
    mosaic = preset(name)
    if mosaic.patch_rule == "objective" and card.mpp != mosaic.mpp and not patches:
        raise DatabaseError(
            f"The preset {name!r} cuts patches at 20x, but encoder {card.id!r} looks at {card.mpp:g} µm/px. "
            "Choose the preset 'default', or another encoder."
        )
    return replace(mosaic, patch=card.size, mpp=card.mpp)


def is_papers(card: Card) -> bool:
    """Whether barcodes are those of the paper, for which its threshold was chosen: DenseNet-121, one bit a feature."""
    return (card.texture.kind, card.barcode, card.barcode_length) == ("densenet121", NEIGHBOUR, 1024)


def recorded_mosaic(catalogue: Catalogue) -> tuple[MosaicParams, bool]:
    """Return how the patches of a database are chosen, and whether it holds patch images instead."""
    facts = catalogue.facts
    try:
        if facts.mosaic is None:
            raise ValueError("none are recorded")
        return MosaicParams.from_dict(dict(facts.mosaic)), facts.patches
    except (KeyError, TypeError, ValueError) as error:
        raise DatabaseError(
            f"{catalogue.location}: made with parameters this version does not know ({error}); build it again."
        ) from error


def _recorded(catalogue: Catalogue, params: BuildParams) -> Settings:
    """Return what the database was made with, if that is what is asked for."""
    mosaic, patches = recorded_mosaic(catalogue)
    # The scale is the encoder's, whatever the preset, and how strictly artefacts are left out may be changed.
    if params.preset is not None and mosaic != replace(
        preset(params.preset), patch=mosaic.patch, mpp=mosaic.mpp, artefacts=mosaic.artefacts
    ):
        raise DatabaseError(
            f"{catalogue.location}: was built with another preset than {params.preset!r}. Leave out the "
            "preset, or build a new database."
        )
    if params.patches is not None and params.patches != patches:
        kind = "patch images" if patches else "whole slides"
        raise DatabaseError(
            f"{catalogue.location}: holds {kind}; the two kinds do not mix. Build another database for the others."
        )
    _refuse_masks(params, patches)
    return Settings(None if patches else mosaic)


def _refuse_masks(params: BuildParams, patches: bool) -> None:
    if params.mask and patches:
        raise DatabaseError(
            "--mask: an image that is one patch has no tissue to be marked. Leave the mask out."
        )
