"""The commands about encoders."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from napari_fish.cli.options import Device, Json, Mpp, write_json
from napari_fish.errors import EncoderError

Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="The bundle to write: a folder, or a file ending in .safetensors."),
]


def encoders(as_json: Json = False) -> None:
    """List the encoders there are: built in, installed with other packages, and your own."""
    from napari_fish.encode import list_encoders

    found = list_encoders()
    if as_json:
        write_json([dataclasses.asdict(info) | {"path": str(info.path)} for info in found])
        return
    for info in found:
        typer.echo(f"{info.id}  ({info.origin}; {info.path})")
        if info.problem:
            typer.echo(f"  cannot be used: {info.problem}")
            continue
        lines = (
            info.title,
            f"{info.barcode_length} bits a barcode; sha256 {info.sha256[:16]}…",
            f"trained on: {info.training}" if info.training else "",
            f"licence: {info.licence}" if info.licence else "",
        )
        typer.echo("\n".join(f"  {line}" for line in lines if line))


def import_checkpoint(
    model: Annotated[Path, typer.Argument(help="The VQ-VAE in the published layout, such as model_9.pt.")],
    codebook: Annotated[
        Path | None, typer.Argument(help="The semantic order of its codebook, such as codebook_semantic.pt.")
    ] = None,
    output: Output = Path("fish-paper"),
    densenet: Annotated[
        Path | None, typer.Option("--densenet", help="DenseNet-121's ImageNet weights, for offline machines.")
    ] = None,
) -> None:
    """Make a bundle of a published checkpoint, without ever running what is pickled in it."""
    from napari_fish.encode import import_checkpoint as import_it

    card = import_it(model, codebook, output, texture_weights=densenet)
    typer.echo(f"Encoder {card.id} ({card.sha256[:16]}…) is in {output}")


def train(
    slides: Annotated[
        list[Path] | None, typer.Argument(help="Slides, or folders of slides or images.")
    ] = None,
    output: Output = Path("encoder"),
    mpp: Mpp = None,
    texture: Annotated[
        str, typer.Option("--texture", help="densenet121 (the paper's) or lite0 (learned, as in fish-lite).")
    ] = "densenet121",
    keys_from: Annotated[
        str | None, typer.Option("--keys-from", help="Encoder whose VQ-VAE is taken over instead of trained.")
    ] = None,
    width: Annotated[
        int, typer.Option("--width", min=8, help="Channels of the VQ-VAE; the paper has 256.")
    ] = 256,
    crop: Annotated[int, typer.Option("--crop", min=64, help="Side of a training crop in px.")] = 1024,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the slides.")] = 10,
    steps: Annotated[
        int, typer.Option("--steps", min=0, help="Steps in all; 0 follows from the epochs.")
    ] = 0,
    recipe: Annotated[
        Path | None, typer.Option("--recipe", help="A recipe (TOML) instead of slides.")
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Where the recipe's paths start.")] = None,
    device: Device = "auto",
) -> None:
    """Train an encoder; interrupted, the same command goes on where it was."""
    from napari_fish.encode.training.params import TrainReport, VQTrainParams
    from napari_fish.encode.training.recipe import read_recipe, train_recipe, train_slides

    if (recipe is None) == (not slides):
        raise EncoderError("Give slides to train on, or a recipe with --recipe.")

    def heard(report: TrainReport) -> None:
        line = f"step {report.step} of {report.steps}: loss {report.loss:.4f}"
        if report.validation is not None:
            line += f", {'error' if report.picture else 'loss'} on held-out tissue {report.validation:.4f}"
        if report.codes_used is not None:
            line += f", {report.codes_used} codewords in use"
        if report.picture is not None:
            line += f"; {report.picture}"
        typer.echo(line, err=True)

    def counted(done: int) -> None:
        if done % 100 == 0:
            typer.echo(f"texture: {done} fields of tissue seen", err=True)

    named: set[str] = set()

    def left_out(message: str) -> None:
        if message not in named:  # both halves of an encoder look at the same files
            typer.echo(f"left out: {message}", err=True)
        named.add(message)

    common: dict[str, Any] = {
        "keys_from": keys_from, "device": device, "progress": heard, "texture_progress": counted, "left_out": left_out
    }  # fmt: skip
    if recipe is not None:
        card = train_recipe(read_recipe(recipe, data), output, **common)
    else:
        params = VQTrainParams(width=width, crop=crop, epochs=epochs, steps=steps)
        card = train_slides(slides or [], output, mpp=mpp, params=params, texture=texture, **common)
    typer.echo(f"Encoder {card.id} ({card.sha256[:16]}…) is in {output}")
