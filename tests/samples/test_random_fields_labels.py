"""Drawn label images: growing, separating, edges, and gold without its edges."""

from __future__ import annotations

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.measure import label

from napari_agglo.samples._random_fields import edges, fill_unlabelled, separate, without_edges


def drawn(*rows: str) -> np.ndarray:
    return np.array([[int(c) for c in row] for row in rows], dtype=np.int32)


def test_fill_grows_through_faces() -> None:
    labels = drawn("1000", "0002")
    fill_unlabelled(labels)
    np.testing.assert_array_equal(labels, drawn("1122", "1122"))


def test_fill_within_stops_at_the_border() -> None:
    labels = drawn("1000", "1000")
    fill_unlabelled(labels, within=drawn("5566", "5566"))
    np.testing.assert_array_equal(labels, drawn("1100", "1100"))


def test_fill_of_nothing_leaves_nothing() -> None:
    labels = np.zeros((2, 3), dtype=np.int32)
    fill_unlabelled(labels)
    assert not labels.any()


def test_separate_numbers_pieces_and_absorbs_small_ones() -> None:
    labels = drawn("7717", "7727", "7727")
    np.testing.assert_array_equal(separate(labels, 2), drawn("1132", "1132", "1132"))


def test_separate_keeps_the_largest_of_too_small_pieces() -> None:
    np.testing.assert_array_equal(separate(drawn("112"), 10), drawn("111"))


def test_edges_are_on_both_sides() -> None:
    np.testing.assert_array_equal(edges(drawn("11122")), [[False, False, True, True, False]])


def test_edges_within_look_at_one_region_only() -> None:
    found = edges(drawn("1122333"), within=drawn("1111555"))
    np.testing.assert_array_equal(found, [[False, True, True, False, False, False, False]])


def test_without_edges_clears_both_sides() -> None:
    labels = np.repeat(drawn("11111111222"), 11, axis=0)
    expected = np.repeat(drawn("11111110022"), 11, axis=0)
    np.testing.assert_array_equal(without_edges(labels), expected)


def test_without_edges_keeps_a_neck() -> None:
    labels = np.full((11, 40), 2, dtype=np.int32)
    labels[:, :18] = labels[:, 22:] = 1
    labels[5, 18:22] = 1  # one pixel wide: it is all edge
    assert label(np.where(edges(labels), 0, labels) == 1, connectivity=1).max() == 2, "test invalid"
    gold = without_edges(labels)
    assert label(gold == 1, connectivity=1).max() == 1
    assert (gold[labels == 1] == 0).any(), "only the neck should be kept"


@examples(60)
@given(
    hnp.arrays(
        np.int32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=7), elements=st.integers(1, 4)
    ),
    st.integers(1, 6),
)
def test_separated_labels_stay_connected_with_and_without_edges(
    labels: np.ndarray, min_size: int
) -> None:
    separated = separate(labels, min_size)
    assert np.array_equal(np.unique(separated), np.arange(1, separated.max() + 1))
    for result in (separated, without_edges(separated)):
        count = label(result, connectivity=1, background=0).max()
        assert count == separated.max()
        assert ((result == separated) | (result == 0)).all()


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_empty_arrays_have_no_edges(shape: tuple[int, ...]) -> None:
    assert edges(np.zeros(shape, dtype=np.int32)).shape == shape
