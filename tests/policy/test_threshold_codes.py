"""Codes of features: which rows keep theirs, and trees that are walked by codes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo._numba import kernel
from napari_agglo.policy import Forest, walk_row
from napari_agglo.policy._threshold_codes import coded_forest, update_codes
from tests.examples import examples

# Values beside each other, both zeros, the smallest, the largest, and what is not a number.
THRESHOLDS = np.array([-3e38, -1.0, -1e-40, -0.0, 0.0, 1e-40, 0.1, 0.5, 1.0, 3e38], np.float32)
VALUES = np.concatenate(
    [
        THRESHOLDS,
        np.nextafter(THRESHOLDS, np.float32(-np.inf)),
        np.nextafter(THRESHOLDS, np.float32(np.inf)),
        np.array([np.inf, -np.inf, np.nan], np.float32),
    ]
)
VALUES = np.concatenate([VALUES, -VALUES[-1:]])  # a negative one that is not a number


@kernel
def _update_all(bits, codes, cuts, moved, stays):
    for row in range(bits.shape[0]):
        stays[row] = update_codes(row, bits, row, codes, cuts, moved)


@kernel
def _walk_all(rows, codes, trees, coded, by_value, by_code):
    n = np.int64(trees.roots.size)
    zero = np.int64(0)
    for row in range(rows.shape[0]):
        by_value[row] = walk_row(np.uint32(row), zero, n, 0.0, rows, trees)
        by_code[row] = walk_row(np.uint32(row), zero, n, 0.0, codes, coded)


def forest(rng, width, n_trees):
    """Return trees of random splits, whose leaves all have other values."""
    nodes, roots = [], []

    def grow(level, first):
        at = len(nodes)
        nodes.append([0, np.float32(np.inf).view(np.uint32), at, at])
        if level < 5 and rng.random() < 0.8:
            threshold = rng.choice(THRESHOLDS).view(np.uint32)
            children = grow(level + 1, first), grow(level + 1, first)
            nodes[at] = [rng.integers(width), threshold, *children]
        return at

    for _ in range(n_trees):
        roots.append(grow(0, len(nodes)))
    return Forest(
        np.array(roots, np.uint32), np.array(nodes, np.uint32), np.arange(1.0, 1 + len(nodes))
    )


def coded_rows(model, rows, codes):
    """Write the codes of rows; return whether each was there before, and the coded forest."""
    coded = coded_forest(model.trees, rows.shape[1])
    stays = np.zeros(len(rows), np.bool_)
    _update_all(rows.view(np.int32), codes, coded.cuts, coded.moved, stays)
    return stays, coded


@examples(200)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 13))
def test_trees_lead_codes_where_they_lead_values(seed, width, n_trees):
    rng = np.random.default_rng(seed)
    model = forest(rng, width, n_trees)
    rows = rng.choice(VALUES, (20, width))
    codes = np.zeros(rows.shape, np.uint16)
    _, coded = coded_rows(model, rows, codes)
    by_value, by_code = np.zeros(len(rows)), np.zeros(len(rows))
    _walk_all(rows, codes, model.trees, coded.trees, by_value, by_code)
    np.testing.assert_array_equal(by_code, by_value)
    features, thresholds, _ = model.trees.splits()
    for column in range(width):
        below = np.unique(thresholds[features == column])[:, None] < rows[:, column]
        np.testing.assert_array_equal(codes[:, column], below.sum(axis=0))


@examples(50)
@given(st.integers(0, 2**32 - 1))
def test_codes_stay_until_a_threshold_is_passed(seed):
    rng = np.random.default_rng(seed)
    model = forest(rng, 2, 4)
    rows, later = (rng.choice(VALUES, (20, 2)) for _ in range(2))
    codes = np.zeros(rows.shape, np.uint16)
    coded_rows(model, rows, codes)
    assert coded_rows(model, rows, codes)[0].all()
    before = codes.copy()
    stays, _ = coded_rows(model, later, codes)
    np.testing.assert_array_equal(stays, (codes == before).all(axis=1))
    anew = np.zeros(rows.shape, np.uint16)
    coded_rows(model, later, anew)
    np.testing.assert_array_equal(codes, anew)


def test_a_feature_with_very_many_thresholds_is_not_coded():
    n = 2**9 + 1
    cuts = np.arange(n, dtype=np.float32).view(np.uint32)
    # A tree for each threshold: a root and two leaves.
    first = 3 * np.arange(n, dtype=np.uint32)
    nodes = np.zeros((3 * n, 4), np.uint32)
    nodes[:, 2:] = np.arange(3 * n, dtype=np.uint32)[:, None]
    nodes[first, 1] = cuts
    nodes[first, 2:] = np.stack([first + 1, first + 2], axis=1)
    values = np.zeros(3 * n)
    assert not coded_forest(Forest(first, nodes, values).trees, 1).pays
    assert coded_forest(Forest(first[:-2], nodes, values).trees, 1).pays
