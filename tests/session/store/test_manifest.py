"""The checksums of arrays: the same however an array is passed over."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo.session._store import manifest
from napari_agglo.session._store.arrays import extent_of, read_contents, write_array
from napari_agglo.session._store.manifest import DigestWhileFilled, digest_array


@examples(60)
@given(st.data(), st.integers(0, 70), st.integers(1, 40))
def test_a_checksum_made_while_an_array_is_filled_is_that_of_the_array(data, n, piece):
    array = np.zeros(n, np.uint16)
    values = np.arange(n, dtype=np.uint16) * 257 + 1
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=5))})
    parts = data.draw(st.permutations(list(pairwise(cuts))))
    former, manifest._PIECE = manifest._PIECE, piece
    try:
        digest = DigestWhileFilled(array)
        for start, stop in parts:
            array[start:stop] = values[start:stop]
            digest.filled(2 * start, 2 * stop)
        assert digest.checksum() == digest_array(values)
        if n:
            assert digest.checksum() != digest_array(values + 1)
    finally:
        manifest._PIECE = former


def test_contents_of_an_array_are_found_in_one_pass(tmp_path, monkeypatch):
    passes = []
    monkeypatch.setattr(
        "napari_agglo.session._store.arrays.digest_array",
        lambda array: passes.append(array.shape) or digest_array(array),
    )
    rng = np.random.default_rng(0)
    array = rng.integers(-5, 1000, (300, 250, 260))  # several chunks, and several pieces
    array[7, 3, 1], array[299, 0, 0] = -77, 5000
    note = write_array(tmp_path, "numbers", array)
    assert passes.pop() == array.shape
    read, checksum, extent = read_contents(tmp_path, "numbers", note)
    np.testing.assert_array_equal(read, array)
    assert (checksum, extent) == (note.checksum, (-77, 5000))
    assert not passes, "the checksum came while it was read"
    assert extent_of(array[:0]) == (0, 0)
