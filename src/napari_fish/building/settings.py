"""What a database is made with: decided by its first build, the same for every slide after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from napari_fish.building.params import BuildParams
from napari_fish.building.strictness import check_artefacts, params_for
from napari_fish.encode import DEFAULT_ENCODER, Encoder, check_same_encoder, load_encoder
from napari_fish.encode.bundle.barcode import words_for
from napari_fish.encode.bundle.card import NEIGHBOUR, Card
from napari_fish.errors import DatabaseError
from napari_fish.mosaic import PRESETS, MosaicParams, preset
from napari_fish.store.facts import Facts
from napari_fish.store.opening import create_database, is_database, open_store
from napari_fish.store.places import is_there, place_of, recorded_path
from napari_fish.store.protocol import Catalogue, CataloguedStore


@dataclass(frozen=True)
class Settings:
    """What every slide of a database is encoded with.

    Attributes
    ----------
    mosaic
        How patches are chosen; None where each image is one patch.
    """

    mosaic: MosaicParams | None


def open_for_build(
    folder: Path, params: BuildParams, encoder: Encoder | None = None
) -> tuple[CataloguedStore, Encoder, Settings]:
    """Open a database to write, making it where it is missing, and refuse to mix what does not fit.

    Parameters
    ----------
    folder
        ``NAME.fish``.
    params
        What is asked for.
    encoder
        One that is loaded already.
    """
    if params.preset is not None and params.preset not in PRESETS:
        raise DatabaseError(f"There is no preset {params.preset!r}; choose one of {', '.join(PRESETS)}.")
    check_artefacts(params, bool(params.patches))
    _refuse_masks(params, bool(params.patches))
    if not is_database(folder):
        encoder = encoder or load_encoder(params.encoder or DEFAULT_ENCODER, params.device)
        _create(folder, params, encoder)
    store = open_store(folder, writer=True)
    try:
        settings = _recorded(store.catalogue, params)
        check_artefacts(params, settings.mosaic is None)
        encoder = encoder or load_encoder_of(store.catalogue, params.device, params.encoder)
        facts = store.catalogue.facts
        check_same_encoder(facts.encoder, facts.weights_hash, encoder.card, str(folder))
    except BaseException:
        store.close()
        raise
    return store, encoder, settings


def _create(folder: Path, params: BuildParams, encoder: Encoder) -> None:
    from napari_fish import __version__

    name, card = params.preset or "default", encoder.card
    mosaic = params_for(None, params.artefacts, _mosaic_at_scale(name, card, bool(params.patches)))
    bundle = Path(params.encoder) if params.encoder and Path(params.encoder).exists() else None
    facts = Facts(
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
    create_database(folder, facts)


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


def load_encoder_of(catalogue: Catalogue, device: str = "auto", asked: str | None = None) -> Encoder:
    """Load the encoder of a database: the one asked for, else the one from where it was, else the one of that name."""
    facts = catalogue.facts
    kept = place_of(facts.bundle, catalogue.folder)
    name = asked or (kept if is_there(kept) else facts.encoder)
    encoder = load_encoder(name, device)
    check_same_encoder(facts.encoder, facts.weights_hash, encoder.card, str(catalogue.folder))
    return encoder


def recorded_mosaic(catalogue: Catalogue) -> tuple[MosaicParams, bool]:
    """Return how the patches of a database are chosen, and whether it holds patch images instead."""
    facts = catalogue.facts
    try:
        if facts.mosaic is None:
            raise ValueError("none are recorded")
        return MosaicParams.from_dict(dict(facts.mosaic)), facts.patches
    except (KeyError, TypeError, ValueError) as error:
        raise DatabaseError(
            f"{catalogue.folder}: made with parameters this version does not know ({error}); build it again."
        ) from error


def _recorded(catalogue: Catalogue, params: BuildParams) -> Settings:
    """Return what the database was made with, if that is what is asked for."""
    mosaic, patches = recorded_mosaic(catalogue)
    # The scale is the encoder's, whatever the preset, and how strictly artefacts are left out may be changed.
    if params.preset is not None and mosaic != replace(
        preset(params.preset), patch=mosaic.patch, mpp=mosaic.mpp, artefacts=mosaic.artefacts
    ):
        raise DatabaseError(
            f"{catalogue.folder}: was built with another preset than {params.preset!r}. Leave out the "
            "preset, or build a new database."
        )
    if params.patches is not None and params.patches != patches:
        kind = "patch images" if patches else "whole slides"
        raise DatabaseError(
            f"{catalogue.folder}: holds {kind}; the two kinds do not mix. Build another database for the others."
        )
    _refuse_masks(params, patches)
    return Settings(None if patches else mosaic)


def _refuse_masks(params: BuildParams, patches: bool) -> None:
    if params.mask and patches:
        raise DatabaseError(
            "--mask: an image that is one patch has no tissue to be marked. Leave the mask out."
        )
