"""What a demo slide is asked to be, and the standard set of demo slides."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

SITE_OF: dict[str, str] = {
    "adenocarcinoma": "colon",
    "solid carcinoma": "breast",
    "papillary carcinoma": "breast",
    "lymphoma": "lymph node",
    "sarcoma": "soft tissue",
    "mucinous carcinoma": "colon",
}
"""The site at which each demo diagnosis is found."""

DIAGNOSES: tuple[str, ...] = tuple(SITE_OF)
"""Names of the demo diagnoses; each has an architecture of its own."""

ARTEFACTS: tuple[str, ...] = ("ink", "fold", "blur", "dust", "bubble")
"""Names that `DemoSpec.artefacts` may hold."""

GLASS = "glass"
"""The diagnosis of a slide with nothing on it."""


@dataclass(frozen=True)
class DemoSpec:
    """Everything a demo slide depends on: equal specs give equal bytes.

    Parameters
    ----------
    name
        Name of the slide; its file is ``name.tif``.
    patient
        Patient; slides of one patient share their stain.
    site
        Site of the body.
    diagnosis
        One of `DIAGNOSES`, or `GLASS` for an empty slide.
    seed
        Seed of the slide's geometry.
    width_um, height_um
        Size of the slide in µm, at least 8.
    mpp
        Pixel size in µm: 0.5 is 20x, 0.25 is 40x. The geometry does not depend on it.
    artefacts
        Any of `ARTEFACTS`.
    """

    name: str
    patient: str
    site: str
    diagnosis: str
    seed: int
    width_um: float = 2200.0
    height_um: float = 1800.0
    mpp: float = 0.5
    artefacts: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.diagnosis not in (*DIAGNOSES, GLASS):
            raise ValueError(
                f"unknown demo diagnosis {self.diagnosis!r}; choose one of {', '.join(DIAGNOSES)}"
            )
        unknown = set(self.artefacts) - set(ARTEFACTS)
        if unknown:
            raise ValueError(f"unknown artefacts {sorted(unknown)}; choose from {', '.join(ARTEFACTS)}")
        if not (min(self.width_um, self.height_um) >= 8 and 0.1 <= self.mpp <= 4):
            raise ValueError("a demo slide needs at least 8 µm each way and 0.1 to 4 µm per px")

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the slide in px."""
        return max(1, round(self.height_um / self.mpp)), max(1, round(self.width_um / self.mpp))


# Dealt out in turn, so that every kind appears in the standard set and about half of it is clean.
_ARTEFACT_SETS: tuple[tuple[str, ...], ...] = (
    (),
    ("ink",),
    (),
    ("blur",),
    (),
    ("fold", "dust"),
    ("dust",),
    (),
    ("ink", "fold"),
    (),
    ("bubble", "blur"),
    (),
)


def demo_specs(
    patients_per_diagnosis: int = 5,
    slides_per_patient: int = 1,
    seed: int = 0,
    *,
    second_slides: int = 1,
    width_um: float = 2100.0,
    height_um: float = 1750.0,
    diagnoses: tuple[str, ...] = DIAGNOSES,
) -> tuple[DemoSpec, ...]:
    """Describe the standard set of demo slides, in an order that does not tell the diagnosis.

    Parameters
    ----------
    patients_per_diagnosis
        Patients of each diagnosis.
    slides_per_patient
        Slides of each patient.
    seed
        Another seed gives other patients, stains and layouts throughout.
    second_slides
        How many patients of each diagnosis have one slide more than the others.
    width_um, height_um
        Mean size of the slides in µm; each varies by up to 8 %.
    diagnoses
        Which diagnoses to include.

    Returns
    -------
    tuple of DemoSpec
        Mostly 20x; every ninth slide is 40x, on a smaller area.
    """
    rng = np.random.default_rng([20, seed])
    wanted: list[tuple[int, str]] = []
    patient = 0
    for diagnosis in diagnoses:
        for number in range(patients_per_diagnosis):
            patient += 1
            wanted += [(patient, diagnosis)] * (slides_per_patient + (number < second_slides))
    renumbered = rng.permutation(patient) + 1
    order = rng.permutation(len(wanted))
    specs = []
    for position, index in enumerate(order):
        number, diagnosis = wanted[index]
        is_40x = position % 9 == 4
        shrink = (0.72 if is_40x else 1.0) * rng.uniform(0.92, 1.08, 2)
        specs.append(
            DemoSpec(
                name=f"demo-{position + 1:03d}",
                patient=f"P{seed:02d}{renumbered[number - 1]:03d}",
                site=SITE_OF[diagnosis],
                diagnosis=diagnosis,
                seed=int(rng.integers(2**31)),
                width_um=4.0 * round(width_um * shrink[0] / 4.0),
                height_um=4.0 * round(height_um * shrink[1] / 4.0),
                mpp=0.25 if is_40x else 0.5,
                artefacts=_ARTEFACT_SETS[position % len(_ARTEFACT_SETS)],
            )
        )
    return tuple(specs)
