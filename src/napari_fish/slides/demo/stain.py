"""How a patient's slide was stained: optical densities of the dyes and the light behind the glass."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Stain:
    """Dyes of one laboratory run.

    Parameters
    ----------
    dyes
        3x3 optical densities (natural logarithm) at unit concentration: haematoxylin, eosin and
        red cells (rows) in red, green and blue light (columns).
    white
        Red, green and blue of empty glass, 0 to 255.
    """

    dyes: npt.NDArray[np.float32]
    white: npt.NDArray[np.float32]


# Two looks found among real laboratories; a patient's stain lies between and around them.
_HAEMATOXYLIN = np.array([[0.57, 0.72, 0.39], [0.66, 0.69, 0.30]])
_EOSIN = np.array([[0.22, 0.84, 0.50], [0.09, 0.93, 0.36]])
_RED_CELL = np.array([0.14, 0.80, 0.58])


def stain_of(patient: str) -> Stain:
    """Return the stain of a patient: the same for every slide with that patient's name."""
    rng = np.random.default_rng([7, zlib.crc32(patient.encode())])

    def between(pair: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        mix = rng.uniform(-0.1, 1.1)
        vector = (1 - mix) * pair[0] + mix * pair[1] + rng.normal(0, 0.02, 3)
        vector = np.clip(vector, 0.02, None)
        return np.asarray(vector / np.linalg.norm(vector))

    haematoxylin = between(_HAEMATOXYLIN) * rng.uniform(1.6, 2.2)
    eosin = between(_EOSIN) * rng.uniform(0.80, 1.25)
    red = _RED_CELL * rng.uniform(1.35, 1.7)
    glass = rng.uniform(240, 247) + rng.normal(0, 0.5, 3)
    return Stain(
        dyes=np.stack([haematoxylin, eosin, red]).astype(np.float32),
        white=glass.astype(np.float32),
    )
