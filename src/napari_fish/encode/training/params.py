"""How networks are trained, and what is heard of it meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from napari_fish.errors import EncoderError


@dataclass(frozen=True)
class VQTrainParams:
    """How a VQ-VAE is trained; the defaults are the paper's.

    Attributes
    ----------
    width : int
        Channels of every layer.
    crop : int
        Side of a training crop in px; a multiple of 16.
    mpp : float
        µm per px of a crop.
    batch : int
        Crops a step.
    epochs : int
        Passes over the slides.
    crops_per_file : int
        Crops of each slide or image an epoch.
    steps : int
        Steps in all; 0 means what ``epochs`` and ``crops_per_file`` give.
    learning_rate : float
        Of Adam, without weight decay.
    decay : bool
        Let the learning rate fall to a twentieth along a cosine; the paper keeps it constant.
    clip : float
        Largest norm of a gradient.
    beta : float
        Weight of the commitment loss.
    restart_after : int
        A codeword that over about this many steps gets less than a tenth of its fair share is moved
        onto a vector in use, until four fifths of the steps are done; 0 is never.
    scale : tuple of float
        Range of the factor on ``mpp``.
    stain : float
        Strength of the stain augmentation.
    flips : bool
        Flip and rotate.
    held_out : float
        Share of the files kept for validation.
    check_every : int
        Steps between validations.
    patience : int
        Validations without improvement before training stops; 0 is never.
    seed : int
        Fixes weights, crops and augmentation.
    """

    width: int = 256
    crop: int = 1024
    mpp: float = 0.5
    batch: int = 4
    epochs: int = 10
    crops_per_file: int = 10
    steps: int = 0
    learning_rate: float = 1e-3
    decay: bool = False
    clip: float = 1.0
    beta: float = 1.0
    restart_after: int = 100
    scale: tuple[float, float] = (1.0, 1.0)
    stain: float = 0.0
    flips: bool = False
    held_out: float = 0.05
    check_every: int = 250
    patience: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        if self.crop < 16 or self.crop % 16:
            raise EncoderError(f"a training crop of {self.crop} px is not a multiple of 16; choose another.")
        if self.batch < 1 or self.check_every < 1 or not self.mpp > 0:
            raise EncoderError("batch, check_every and mpp of a training must be positive.")


@dataclass(frozen=True)
class SelfSupervision:
    """How a texture network is trained.

    Attributes
    ----------
    network : str
        ``"lite0"`` starts from ImageNet's EfficientNet-Lite0, ``"scratch"`` from chance.
    first_block : int
        Blocks before this one stay as they are.
    steps : int
        Steps in all.
    batch : int
        Fields a step; each is seen twice.
    crop : int
        Side of a view in px.
    area : tuple of float
        A view shows between these shares of its field.
    field_px : int
        Fields are kept in memory with this side.
    stain : float
        Strength of the stain augmentation.
    learning_rate : float
        Of AdamW; it falls to a twentieth along a cosine.
    weight_decay : float
        Of AdamW.
    temperature : float
        Of the contrastive loss.
    head : int
        Numbers that the head gives.
    held_out : float
        Share of the fields kept for validation.
    check_every : int
        Steps between validations.
    patience : int
        Validations without improvement before training stops; 0 is never.
    seed : int
        Fixes weights, views and augmentation.
    """

    network: str = "lite0"
    first_block: int = 3
    steps: int = 1000
    batch: int = 32
    crop: int = 128
    area: tuple[float, float] = (0.15, 0.5)
    field_px: int = 320
    stain: float = 0.3
    learning_rate: float = 3e-4
    weight_decay: float = 1e-4
    temperature: float = 0.2
    head: int = 128
    held_out: float = 0.1
    check_every: int = 100
    patience: int = 4
    seed: int = 0


@dataclass(frozen=True)
class TrainReport:
    """How training stands.

    Attributes
    ----------
    step, steps : int
        Steps done, and to be done.
    loss : float
        Mean training loss since the last report.
    validation : float or None
        On held-out tissue: the mean squared error of a VQ-VAE's reconstructions, in [-1, 1] units, or the
        contrastive loss of a texture network.
    codes_used : int or None
        Codewords in use on held-out tissue.
    picture : Path or None
        Originals above, reconstructions below.
    """

    step: int
    steps: int
    loss: float
    validation: float | None = None
    codes_used: int | None = None
    picture: Path | None = None
