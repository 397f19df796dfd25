from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import napari_agglo as agglo
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import split_vi, state_at, vi_curve

COLUMNS = ["threshold", "segments", "false_merge", "false_split", "vi"]


def random_tree(rng, ids):
    superpixels = ids[rng.integers(0, len(ids), (9, 10))]
    boundary = np.round(rng.random(superpixels.shape), 1)  # coarse, so that there are plateaus
    return agglo.agglomerate(agglo.region_graph(superpixels, boundary), "mean")


def line_tree():
    """Three superpixels in a row; 1 and 2 have a weak boundary, 2 and 3 a strong one."""
    superpixels = np.array([[1, 1, 2, 2, 3, 3]])
    boundary = np.array([[0, 0, 0, 0, 1, 1]], float)
    return agglo.agglomerate(agglo.region_graph(superpixels, boundary), "mean")


def test_by_hand():
    curve = vi_curve(line_tree(), np.array([[4, 4, 4, 4, 5, 5]]))
    assert list(curve.columns) == COLUMNS
    assert curve["threshold"].iloc[0] == -math.inf
    assert curve["segments"].tolist() == [3, 2, 1]
    assert curve["false_split"].tolist() == pytest.approx([2 / 3, 0, 0])
    third = math.log2(3) - 2 / 3  # entropy of (2/3, 1/3)
    assert curve["false_merge"].tolist() == pytest.approx([0, 0, third])


@given(st.integers(0, 2**32), st.booleans())
def test_equals_cutting_at_every_threshold(seed, ignore_labels):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, np.array([0, 2, 3, 70, 2**40, 2**40 + 1]))
    gold = rng.integers(0, 5, (9, 10))
    curve = vi_curve(tree, gold, ignore_labels=ignore_labels)
    assert (np.diff(curve["threshold"].iloc[1:]) > 0).all()
    for t, segments, *errors, vi in curve.itertuples(index=False):
        labels = tree.segment(t)
        expected = split_vi(labels, gold, ignore_labels=ignore_labels)
        assert errors == pytest.approx(expected, abs=1e-9)
        assert vi == pytest.approx(sum(expected), abs=1e-9)
        assert segments == tree.n_segments(t) == np.unique(labels[labels > 0]).size


def test_state_at_takes_the_last_row_not_above():
    curve = vi_curve(line_tree(), np.array([[4, 4, 4, 4, 5, 5]]))
    first, second = curve["threshold"].iloc[1:]
    assert state_at(curve, first - 1e-9)["segments"] == 3
    assert state_at(curve, first)["segments"] == 2
    assert state_at(curve, (first + second) / 2)["segments"] == 2
    assert state_at(curve, math.inf)["segments"] == 1


def test_a_gold_that_says_nothing():
    curve = vi_curve(line_tree(), np.zeros((1, 6), int))
    assert not curve["vi"].any()
    assert curve["segments"].tolist() == [3, 2, 1]


def test_another_shape_is_refused():
    with pytest.raises(InvalidInput, match=r"`gold` \(shape \(1, 5\)\).*\(1, 6\)"):
        vi_curve(line_tree(), np.ones((1, 5), int))
