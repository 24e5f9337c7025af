import threading
import time
from pathlib import Path

import numpy as np
import pytest

from napari_fish.encode.encoder import Encoder
from napari_fish.encode.patches import EncodeJob
from napari_fish.encode.pipeline import _readers, encode_patches, encode_slides
from napari_fish.encode.regions import boxes_of_region
from napari_fish.encode.speed.speed_plan import PLAIN
from napari_fish.errors import Cancelled, EncoderError, SlideError
from tests.encode.conftest import tissue


class Pretend:
    """A slide made of one array, at 0.25 µm/px."""

    def __init__(self, seed=0, mpp=0.25, damaged_at=None):
        self.path = Path(f"pretend-{seed}.svs")
        self.mpp, self.damaged_at = mpp, damaged_at
        self.pixels = tissue(1, 1024, seed)[0]
        self.threads = set()

    def read(self, x, y, width, height, mpp):
        self.threads.add(threading.current_thread().name)
        if self.damaged_at == (x, y):
            raise SlideError(f"{self.path}: cannot read at ({x}, {y})")
        self.last = (x, y, width, height, mpp)
        return np.roll(self.pixels, (int(y), int(x)), (0, 1))


@pytest.fixture(scope="module")
def encoder(tiny_bundle):
    return Encoder(tiny_bundle, "cpu", PLAIN)


def test_patches_come_back_in_order_with_codes_and_thumbnails(encoder):
    slide = Pretend()
    boxes = [(0, 0, 2048), (64, 32, 2048), (128, 0, 2048)]
    seen = []
    encoded = encode_patches(
        slide,
        boxes,
        encoder,
        keep_codes=True,
        thumbnail_px=64,
        progress=lambda done, known: seen.append((done, known)),
    )
    one_by_one = [encoder.encode(slide.read(x, y, 1024, 1024, 0.5)[None], True) for x, y, _ in boxes]
    assert np.array_equal(encoded.keys, np.concatenate([e.keys for e in one_by_one]))
    assert np.array_equal(encoded.codes, np.concatenate([e.codes for e in one_by_one]))
    assert encoded.thumbnails.shape == (3, 64, 64, 3)
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_patch_is_read_at_the_scale_its_box_asks_for(encoder):
    slide = Pretend(mpp=0.25)
    encode_patches(slide, [(10, 20, 2048)], encoder)
    assert slide.last == (10, 20, 1024, 1024, 0.5)


def test_reading_happens_in_other_threads(encoder):
    slide = Pretend()
    encode_patches(slide, [(0, 0, 2048)], encoder)
    assert slide.threads and all(name.startswith("fish-read") for name in slide.threads)


def test_a_damaged_slide_does_not_stop_the_others(encoder):
    jobs = [
        EncodeJob(Pretend(1), [(0, 0, 2048)], "good"),
        EncodeJob(Pretend(2, damaged_at=(64, 0)), [(0, 0, 2048), (64, 0, 2048), (128, 0, 2048)], "bad"),
        EncodeJob(Pretend(3), [], "empty"),
        EncodeJob(Pretend(4), [(0, 0, 2048), (64, 0, 2048)], "good again"),
    ]
    outcomes = list(encode_slides(iter(jobs), encoder))
    assert [o.tag for o in outcomes] == ["good", "bad", "empty", "good again"]
    assert [None if o.encoded is None else len(o.encoded) for o in outcomes] == [1, None, 0, 2]
    assert "cannot read at (64, 0)" in str(outcomes[1].error)
    alone = encode_patches(jobs[3].slide, jobs[3].patches, encoder)
    assert np.array_equal(outcomes[3].encoded.barcodes, alone.barcodes)


def test_the_next_batch_is_put_together_while_this_one_is_encoded(encoder, monkeypatch):
    stacked, seen = [], []
    monkeypatch.setattr(encoder, "stack", lambda pixels: stacked.append(len(pixels)) or np.stack(pixels))
    real = encoder.encode

    def slow(patches, keep_codes=False):
        until = time.monotonic() + 20
        while len(stacked) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        seen.append(len(stacked))
        return real(patches, keep_codes)

    monkeypatch.setattr(encoder, "encode", slow)
    encode_patches(Pretend(), [(0, 0, 2048), (64, 0, 2048), (128, 0, 2048)], encoder)
    assert seen[0] == 2 and stacked == [1, 1, 1]


def test_a_gpu_is_fed_by_more_threads_than_a_processor_that_also_computes(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 12)
    assert (_readers("cpu"), _readers("cuda:1"), _readers("mps")) == (2, 12, 12)


def test_stopping_ends_the_work_with_its_own_error(encoder):
    asked = []
    with pytest.raises(Cancelled):
        encode_patches(
            Pretend(),
            [(i, 0, 2048) for i in range(50)],
            encoder,
            should_stop=lambda: len(asked) > 1 or asked.append(1),
        )


def test_a_slide_of_unknown_scale_says_what_to_do(encoder):
    with pytest.raises(SlideError, match="--mpp"):
        encode_patches(Pretend(mpp=None), [(0, 0, 2048)], encoder)


def test_a_small_region_becomes_one_centred_patch_and_a_large_one_a_grid():
    assert boxes_of_region(1000, 1000, 100, 100, slide_mpp=0.25) == [(26, 26, 2048)]
    grid = boxes_of_region(0, 0, 5000, 2100, slide_mpp=0.25)
    assert [box[0] for box in grid] == [0, 1476, 2952]
    assert {box[1] for box in grid} == {26}
    assert max(box[0] + box[2] for box in grid) == 5000
    with pytest.raises(EncoderError, match="empty"):
        boxes_of_region(0, 0, 0, 10, slide_mpp=0.25)
