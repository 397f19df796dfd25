"""Flattened models against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from napari_agglo.policy import Forest, Logistic, flatten_trees


def flattened(trees):
    return flatten_trees([tree.tree_ for tree in trees])


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 150),
    st.sampled_from([1, 3]),
    st.sampled_from([None, 1, 4]),
)
def test_a_forest_says_what_scikit_learn_says(seed, n, leaf, depth):
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(60, 5)), 1).astype(np.float32)
    labels = np.r_[0, 1, rng.integers(0, 2, 58)]
    forest = RandomForestClassifier(
        7, criterion="entropy", min_samples_leaf=leaf, max_depth=depth, random_state=0
    ).fit(rows, labels)
    asked = np.round(rng.normal(size=(n, 5)), 1).astype(np.float32)
    predicted = flattened(forest.estimators_).predict(asked)
    assert predicted == pytest.approx(forest.predict_proba(asked)[:, 1], abs=1e-7)


def test_rows_on_a_threshold_go_left_as_in_scikit_learn():
    rows = np.array([[0.1], [0.3], [0.7]], np.float32)
    tree = DecisionTreeClassifier(random_state=0).fit(rows, [0, 0, 1])
    cut = float(tree.tree_.threshold[0])
    near = np.float32(cut)
    asked = np.array([[np.nextafter(near, np.float32(k))] for k in (0, 1)] + [[near]], np.float32)
    expected = tree.predict_proba(asked)[:, 1]
    assert flattened([tree]).predict(asked).tolist() == expected.tolist()


def test_degenerate_trees():
    rows = np.zeros((4, 2), np.float32)
    alone = DecisionTreeClassifier().fit(rows, [0, 1, 1, 1])  # nothing to split on
    forest = flattened([alone])
    assert len(forest.nodes) == 1
    assert forest.predict(np.ones((3, 2), np.float32)).tolist() == [0.75] * 3
    assert forest.predict(np.ones((0, 2), np.float32)).tolist() == []


def test_only_trees_that_did_not_learn_from_the_owner_are_asked():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 4)).astype(np.float32)
    labels = (rows[:, 0] > 0).astype(int)
    trees = [
        DecisionTreeClassifier(max_depth=2, random_state=k).fit(rows[k::5], labels[k::5])
        for k in range(5)
    ]
    owners = rng.integers(0, 6, 100)
    in_bag = (rng.random((5, 6)) < 0.5).astype(np.uint8)
    in_bag[:, 5] = 1  # everybody knows owner 5
    predicted = flattened(trees).predict_out_of_bag(rows, owners, in_bag)
    for row, owner, value in zip(rows, owners, predicted, strict=True):
        asked = [t for t, tree in enumerate(trees) if not in_bag[t, owner]]
        expected = np.mean([trees[t].predict_proba(row[None])[0, 1] for t in asked] or [0.5])
        assert value == pytest.approx(expected, abs=1e-7)


def chain(length, feature):
    """Return a tree that goes right at every node: its lower half are its left leaves."""
    at = np.arange(length, dtype=np.uint32)
    nodes = np.zeros((2 * length + 1, 4), np.uint32)
    nodes[:, 2:] = np.arange(2 * length + 1)[:, None]
    nodes[:length] = np.stack([0 * at + feature, 0 * at, length + 1 + at, at + 1], axis=1)
    return Forest(np.zeros(1, np.uint32), nodes, np.arange(2 * length + 1) / (2 * length))


def test_trees_are_walked_from_their_own_root_and_nothing_goes_beyond_a_leaf():
    one = chain(40, 3)
    two = Forest(
        np.array([0, 81], np.uint32),
        np.concatenate([one.nodes, one.nodes + np.array([0, 0, 81, 81], np.uint32)]),
        np.concatenate([one.values, one.values]),
    )
    rows = np.array([[0, 0, 0, value] for value in (-1, 0, 1, np.inf, np.nan)] * 5, np.float32)
    expected = [41 / 80, 41 / 80, 0.5, 0.5, 41 / 80] * 5
    assert one.predict(rows).tolist() == two.predict(rows).tolist() == expected
    feature, threshold, tree = two.trees.splits()
    assert feature.tolist() == [3] * 80
    assert threshold.tolist() == [0.0] * 80
    assert tree.tolist() == [0] * 40 + [1] * 40


def test_trees_begin_a_cache_line_and_pairs_of_siblings_do_not_straddle_two():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 4)).astype(np.float32)
    labels = rng.integers(0, 2, 200)
    forest = RandomForestClassifier(5, max_features=2, random_state=0).fit(rows, labels)
    trees = flattened(forest.estimators_).trees
    assert trees.nodes.ctypes.data % 64 == 0
    assert (trees.roots % 8 == 0).all()
    inner = np.isfinite(trees.thresholds[:, 0])
    assert inner.sum() == sum(np.sum(one.tree_.feature >= 0) for one in forest.estimators_)
    left = trees.nodes[inner, 1] & np.uint32((1 << int(trees.bits)) - 1)
    assert (left % 2 == 0).all()


def test_a_tree_that_cannot_be_packed_is_refused():
    with refuses("policy", "train it with fewer cues, or with more examples in a leaf"):
        chain(40, 2**27).trees  # noqa: B018


def test_a_logistic_is_the_logistic_of_a_weighted_sum():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(10, 3)).astype(np.float32)
    weights = np.array([1.0, -2.0, 0.5, 0.25])
    expected = 1 / (1 + np.exp(-(rows @ weights[:3] + weights[3])))
    assert Logistic(weights).predict(rows) == pytest.approx(expected)
    extreme = Logistic(np.array([1e6, 0, 0, 0])).predict(np.float32([[1, 0, 0], [-1, 0, 0]]))
    assert extreme.tolist() == [1.0, pytest.approx(0.0, abs=1e-300)]
