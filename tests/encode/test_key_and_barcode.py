import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from napari_fish.encode.bundle.barcode import neighbour_bits, pack, projection_bits, unpack
from napari_fish.encode.bundle.keys import MAX_KEY, UNIVERSE, keys_from_codes, semantic_order
from tests.encode.reference import plain_barcode, plain_key


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 127), st.integers(0, 127))
def test_keys_agree_bit_for_bit_with_the_plain_reference(seed, low, high):
    rng = np.random.default_rng(seed)
    codes = rng.integers(min(low, high), max(low, high) + 1, (2, 64, 64)).astype(np.uint8)
    assert keys_from_codes(codes).tolist() == [plain_key(table) for table in codes]


def test_the_largest_key_is_the_one_the_method_names():
    full = np.full((1, 64, 64), 127, np.uint8)
    assert int(keys_from_codes(full)[0]) == MAX_KEY < UNIVERSE
    assert int(keys_from_codes(np.zeros((1, 64, 64), np.uint8))[0]) == 0


def test_codes_outside_the_codebook_are_refused():
    with pytest.raises(ValueError, match=r"0\.\.127"):
        keys_from_codes(np.full((1, 64, 64), 128, np.uint8))
    with pytest.raises(ValueError, match="shape"):
        keys_from_codes(np.zeros((1, 32, 32), np.uint8))


finite = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 200)), elements=finite))
def test_barcodes_agree_bit_for_bit_with_the_plain_reference(features):
    packed = pack(neighbour_bits(features))
    assert packed.tolist() == [plain_barcode(row) for row in features]


def test_equal_neighbours_give_a_one_and_bit_0_is_always_0():
    bits = neighbour_bits(np.array([[5, 5, 4, 4, 6]], np.float32))
    assert bits.astype(int).tolist() == [[0, 1, 0, 1, 1]]


@settings(max_examples=50, deadline=None)
@given(hnp.arrays(np.bool_, st.tuples(st.integers(0, 4), st.integers(1, 1300))))
def test_unpacking_undoes_packing_and_padding_is_0(bits):
    packed = pack(bits)
    assert packed.shape == (len(bits), -(-bits.shape[1] // 64))
    assert np.array_equal(unpack(packed, bits.shape[1]), bits)
    assert int(np.bitwise_count(packed).sum()) == int(bits.sum())


def test_projection_bits_do_not_depend_on_the_batch():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((17, 50)).astype(np.float32)
    planes, offsets = (
        rng.standard_normal((50, 128)).astype(np.float32),
        rng.standard_normal(128).astype(np.float32),
    )
    together = projection_bits(features, planes, offsets)
    alone = np.concatenate([projection_bits(row[None], planes, offsets) for row in features])
    assert np.array_equal(together, alone)
    assert np.array_equal(together, features.astype(float) @ planes.astype(float) >= offsets)


def test_semantic_order_ranks_codewords_along_their_main_direction():
    rng = np.random.default_rng(1)
    position = rng.permutation(128).astype(float)
    codebook = np.outer(position, [3.0, 1.0, 2.0]) + rng.normal(0, 0.1, (128, 3))
    assert semantic_order(codebook).tolist() == position.astype(int).tolist()
    assert np.array_equal(semantic_order(codebook + 7), semantic_order(codebook))
