"""Every number that decides which patches stand for a slide, once."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from napari_fish.names import Preset, Strictness

PRESETS: tuple[Preset, ...] = get_args(Preset)
"""Names that :func:`preset` knows."""
ARTEFACTS: tuple[Strictness, ...] = get_args(Strictness)


@dataclass(frozen=True)
class TissueParams:
    """How tissue is told from glass.

    Attributes
    ----------
    method : {"glass", "saturation", "released"}
        ``"glass"``: the glass of the slide is measured, and tissue is what differs from it. ``"saturation"``:
        tissue is what is more saturated than ``threshold``, as in the paper. ``"released"``: the same on a stored
        level of the slide, the coarsest up to ``downsample``, ``median`` and ``close`` in its px, as in the published
        program.
    sensitivity : float
        For ``"glass"``: 2 also finds tissue half as rough as what is usually taken for tissue, 0.5 only what is twice as
        rough.
    downsample : float
        Base px per px of the overview on which tissue is sought: 64 base px of 0.25 µm are 16 µm.
    unit_px : float
        Side, in base px, of the square in which areas are counted: 512 base px of 0.25 µm are 128 µm.
    base_mpp : float or None
        Size of a base px in µm, so that the same tissue is found at any magnification; None counts in
        the slide's own level-0 px, as the paper does.
    median : int
        Side of the median filter on the saturation, in px of the overview (16 µm by default); odd.
    threshold : int
        Saturation, 0 to 255, above which a pixel is tissue. Lower it for faint stains.
    otsu : bool
        Choose the threshold from the slide itself (Otsu's method) instead.
    close : int
        Side of the square that closes gaps between tissue, in px of the overview (16 µm by default).
    tighten : float
        Pixels at the rim paler than this share, 0 to 1, of the tissue beside them are glass: the blur of a
        small overview and of JPEG makes tissue look up to 30 µm larger than it is. 0 leaves the rim alone.
    min_tissue : float
        Smallest piece of tissue without its holes, in unit squares (128 µm by 128 µm by default).
    min_hole : float
        Smallest hole that counts as a hole, in unit squares (128 µm by 128 µm by default).
    max_holes : int
        At most this many holes a piece of tissue, the largest ones.
    retry : bool
        When nothing is found, try again with gentler values, and record that.
    """

    method: Literal["glass", "saturation", "released"] = "glass"
    sensitivity: float = 1.0
    downsample: float = 64.0
    unit_px: float = 512.0
    base_mpp: float | None = 0.25
    median: int = 7
    threshold: int = 8
    otsu: bool = False
    close: int = 4
    tighten: float = 0.35
    min_tissue: float = 2.0
    min_hole: float = 16.0
    max_holes: int = 1000
    retry: bool = True

    def __post_init__(self) -> None:
        _check(
            self.method in ("glass", "saturation", "released"),
            "method is 'glass', 'saturation' or 'released'",
        )
        _check(self.sensitivity > 0, "sensitivity must be positive")
        _check(self.downsample >= 1, "downsample must be at least 1")
        _check(self.unit_px > 0, "unit_px must be positive")
        _check(self.base_mpp is None or self.base_mpp > 0, "base_mpp must be positive, or None")
        _check(self.median >= 1 and self.median % 2 == 1, "median must be an odd number of px")
        _check(0 <= self.threshold <= 255, "threshold must lie between 0 and 255")
        _check(self.close >= 1, "close must be at least 1 px")
        _check(0 <= self.tighten < 1, "tighten must lie between 0 and 1")
        _check(self.min_tissue >= 0 and self.min_hole >= 0, "areas cannot be negative")
        _check(self.max_holes >= 0, "max_holes cannot be negative")


@dataclass(frozen=True)
class MosaicParams:
    """How tissue becomes a mosaic.

    Attributes
    ----------
    tissue : TissueParams
        How tissue is told from glass.
    patch : int
        Side of a patch in px at ``mpp``.
    mpp : float
        Working scale in µm per px; 0.5 is 20x.
    patch_rule : {"exact", "objective"}
        ``"exact"``: a patch covers ``patch * mpp`` µm on any slide. ``"objective"``: it covers ``patch``
        level-0 px of a 20x slide and twice as many of a 40x slide, as in the paper.
    placement : {"covering", "grid", "columns"}
        ``"covering"``: patches lie where they hold most tissue, inside the slide, and leave little of it out.
        ``"grid"``: on a grid over the bounding box of each piece of tissue, as in the paper. ``"columns"``: on the
        same grid, column by column, without pieces that hold a single patch, as in the published program.
    least_tissue : float
        Share of a patch, 0 to 1, that must be tissue, unless a piece of tissue has no better patch; only for
        ``"covering"``.
    white_level : int
        Grey, 0 to 255, above which a pixel is white.
    white_share : float
        A patch with more than this share of white pixels, 0 to 1, is dropped.
    artefacts : {"normal", "strict", "off"}
        Whether patches with pen ink, folds or debris and patches out of focus are left out: ``"normal"``
        keeps what is doubtful, ``"strict"`` leaves it out, ``"off"`` keeps everything.
    artefact_model : {"tiles", "lbp"}
        Which of the trained filters judges: ``"lbp"`` is the paper's on the texture of patches at 5x,
        ``"tiles"`` looks at colour, texture and sharpness of parts of the patch, beside what is usual on the slide.
    clusters : int
        Number of colour clusters.
    share : float
        Share of each colour cluster, 0 to 1, that enters the mosaic.
    n_init : int
        How often K-means starts anew; the best run counts.
    seed : int
        Seed of K-means.
    representative : {"member", "centre"}
        What stands for a cluster of neighbours: the ``"member"`` patch nearest to its centre, or a patch
        cut at the ``"centre"`` itself, which may lie off tissue.
    reading : {"area", "bicubic"}
        ``"area"``: patches are area averages from the best level of the slide, white outside of it.
        ``"bicubic"``: level-0 px, brought to ``patch`` px by Pillow's bicubic filter, black outside of the slide, as in
        the published program.
    """

    tissue: TissueParams = field(default_factory=TissueParams)
    patch: int = 1024
    mpp: float = 0.5
    patch_rule: Literal["exact", "objective"] = "exact"
    placement: Literal["covering", "grid", "columns"] = "covering"
    least_tissue: float = 0.6
    white_level: int = 235
    white_share: float = 0.99
    artefacts: Strictness = "normal"
    artefact_model: Literal["tiles", "lbp"] = "tiles"
    clusters: int = 9
    share: float = 0.05
    n_init: int = 10
    seed: int = 0
    representative: Literal["member", "centre"] = "member"
    reading: Literal["area", "bicubic"] = "area"

    def __post_init__(self) -> None:
        _check(self.patch >= 16 and self.patch % 4 == 0, "patch must be a multiple of 4 px, at least 16")
        _check(self.mpp > 0, "mpp must be positive")
        _check(self.patch_rule in ("exact", "objective"), "patch_rule is 'exact' or 'objective'")
        _check(0 <= self.white_level <= 255, "white_level must lie between 0 and 255")
        _check(
            self.placement in ("covering", "grid", "columns"), "placement is 'covering', 'grid' or 'columns'"
        )
        for name in ("least_tissue", "white_share", "share"):
            _check(0 <= getattr(self, name) <= 1, f"{name} must lie between 0 and 1")
        _check(self.artefacts in ARTEFACTS, f"artefacts is one of {', '.join(ARTEFACTS)}")
        _check(self.artefact_model in ("tiles", "lbp"), "artefact_model is 'tiles' or 'lbp'")
        _check(self.clusters >= 1 and self.n_init >= 1, "clusters and n_init must be at least 1")
        _check(self.representative in ("member", "centre"), "representative is 'member' or 'centre'")
        _check(self.reading in ("area", "bicubic"), "reading is 'area' or 'bicubic'")

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain values, for JSON and the database."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MosaicParams:
        """Return the parameters that :meth:`to_dict` wrote, now or in the first version; unknown names are an error."""
        values = dict(values)
        tissue = values.get("tissue")
        if isinstance(values.get("artefacts"), bool):
            values |= {
                "artefacts": "normal" if values["artefacts"] else "off",
                "artefact_model": "tiles" if values["artefact_model"] == "tiles" else "lbp",
                "placement": "grid",
            }
            for gone in ("artefact_threshold", "focus", "min_focus"):
                values.pop(gone, None)
            if isinstance(tissue, dict):
                tissue = {**tissue, "method": "saturation"}
        if isinstance(tissue, dict):
            values["tissue"] = TissueParams(**tissue)
        return cls(**values)


def preset(name: str = "default") -> MosaicParams:
    """Return the parameters of a named behaviour.

    Parameters
    ----------
    name : {"default", "paper", "released"}
        ``"default"``: the paper with repairs. ``"paper"``: the paper's text. ``"released"``: what the
        authors' program computes.
    """
    default = MosaicParams()
    paper = replace(
        default,
        tissue=TissueParams(
            method="saturation", base_mpp=None, tighten=0.0, min_tissue=100.0, max_holes=8, retry=False
        ),
        patch_rule="objective",
        placement="grid",
        white_share=0.9,
        artefact_model="lbp",
        representative="centre",
    )
    released = replace(
        paper, tissue=replace(paper.tissue, method="released"), placement="columns", reading="bicubic"
    )
    known = {"default": default, "paper": paper, "released": released}
    if name not in known:
        raise ValueError(f"unknown preset {name!r}; choose one of {', '.join(PRESETS)}")
    return known[name]


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
