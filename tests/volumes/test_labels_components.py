from __future__ import annotations

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import ndimage

from napari_agglo.volumes import split_components


def oracle_pieces(labels):
    """Set of (label, frozenset of voxels) for each connected piece, one label at a time."""
    pieces = set()
    for value in np.unique(labels[labels != 0]):
        marked, count = ndimage.label(labels == value)
        for number in range(1, count + 1):
            pieces.add((int(value), frozenset(np.flatnonzero(marked == number).tolist())))
    return pieces


@examples(80)
@given(
    npst.arrays(
        np.uint8,
        npst.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4),
        elements=st.integers(0, 3),
    )
)
def test_each_label_is_one_piece(labels):
    split = split_components(labels)
    before = oracle_pieces(labels)
    after = oracle_pieces(split)
    assert {voxels for _, voxels in before} == {voxels for _, voxels in after}
    assert len({value for value, _ in after}) == len(after)
    assert set(np.unique(labels)) <= set(np.unique(split))
    for value in np.unique(labels[labels != 0]):  # the largest keeps its id
        kept = next(voxels for v, voxels in after if v == value)
        assert len(kept) == max(len(voxels) for v, voxels in before if v == value)


def test_signed_type_stays_signed_while_it_can():
    assert split_components(np.array([1, 0, 1], np.int16)).dtype == np.int16


def test_sixty_four_bit_ids():
    labels = np.array([2**60, 0, 2**60], np.uint64)
    np.testing.assert_array_equal(
        split_components(labels), np.array([2**60, 0, 2**60 + 1], np.uint64)
    )
