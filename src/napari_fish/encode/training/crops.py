"""Endless crops of tissue for training, read ahead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from napari_fish.encode.training.sources import Cache, LeftOut, Picture, TissueSource, files_of, open_picture
from napari_fish.errors import EncoderError, FishError


class Crops:
    """Endless crops of tissue, the same for the same seed.

    Parameters
    ----------
    sources : sequence of TissueSource
        Where to take crops from.
    size : int
        Side of a crop in px.
    mpp : float
        µm per px of a crop.
    scale : tuple of float
        Each crop's mpp is multiplied by a factor from this range (log-uniform).
    seed : int
        Fixes every crop; crop ``i`` does not depend on which crops were drawn before.
    held_out : float
        Share of the files kept for validation.
    cache_bytes : int
        Memory for decoded images.
    left_out : callable, optional
        Hears of files that cannot be opened; the others are trained on.
    """

    def __init__(
        self,
        sources: Sequence[TissueSource],
        size: int,
        *,
        mpp: float = 0.5,
        scale: tuple[float, float] = (1.0, 1.0),
        seed: int = 0,
        held_out: float = 0.0,
        cache_bytes: int = 2 * 2**30,
        left_out: LeftOut | None = None,
    ) -> None:
        self.size, self.mpp, self.scale, self.seed = size, mpp, scale, seed
        self._problems: list[str] = []
        self._left_out = left_out or (lambda message: None)
        cache = Cache(cache_bytes)
        self._train: list[list[Picture]] = []
        self._held: list[Picture] = []
        self._weights: list[float] = []
        rng = np.random.default_rng([seed, 2**31])
        for source in sources:
            pictures = list(self._opened(source, cache))
            held = [rng.random() < held_out and len(pictures) > 1 for _ in pictures]
            kept = [p for p, h in zip(pictures, held, strict=True) if not h]
            self._held += [p for p, h in zip(pictures, held, strict=True) if h]
            if kept:
                self._train.append(kept)
                self._weights.append(source.weight)
        if not self._train:
            named = ", ".join(str(s.path) for s in sources) or "no folder given"
            why = f" ({self._problems[0]})" if self._problems else ""
            raise EncoderError(f"nothing to train on: no readable slide or image in {named}.{why}")

    def _opened(self, source: TissueSource, cache: Cache) -> Iterable[Picture]:
        for path in files_of(source):
            try:
                yield open_picture(path, source.mpp, cache)
            except FishError as error:
                self._problems.append(str(error))
                self._left_out(str(error))

    @property
    def n_files(self) -> int:
        """Files that training crops come from."""
        return sum(len(group) for group in self._train)

    def train(self, start: int, count: int) -> NDArray[np.uint8]:
        """Return training crops ``start`` to ``start + count - 1``, uint8 (count, size, size, 3)."""
        weights = np.array(self._weights) / sum(self._weights)
        crops = []
        for index in range(start, start + count):
            rng = np.random.default_rng([self.seed, index])
            group = self._train[rng.choice(len(weights), p=weights)]
            crops.append(self._crop(group[rng.integers(len(group))], rng))
        return np.stack(crops)

    def validation(self, count: int) -> NDArray[np.uint8]:
        """Return ``count`` crops of files never trained on, uint8 (count, size, size, 3)."""
        pictures = self._held or [p for group in self._train for p in group]
        crops = []
        for index in range(count):
            rng = np.random.default_rng([self.seed, 2**30 + index])
            crops.append(self._crop(pictures[index % len(pictures)], rng))
        return np.stack(crops)

    def _crop(self, picture: Picture, rng: np.random.Generator) -> NDArray[np.uint8]:
        low, high = np.log(self.scale)
        return picture.crop(rng, self.size, self.mpp * float(np.exp(rng.uniform(low, high))))

    def batches(self, first: int, last: int, batch: int, ahead: int = 4) -> Iterable[NDArray[np.uint8]]:
        """Yield batch ``first`` to ``last - 1``, read ahead in threads."""
        with ThreadPoolExecutor(2, "fish-crops") as pool:
            waiting = [
                pool.submit(self.train, i * batch, batch) for i in range(first, min(last, first + ahead))
            ]
            try:
                for i in range(first, last):
                    ready = waiting.pop(0).result()
                    if i + ahead < last:
                        waiting.append(pool.submit(self.train, (i + ahead) * batch, batch))
                    yield ready
            finally:
                for future in waiting:
                    future.cancel()
