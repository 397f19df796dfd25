"""Trees grown on bins, against scikit-learn's and against every split tried one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from napari_agglo import agglomerate, region_graph, split_vi
from napari_agglo.learning import ForestSettings, train
from napari_agglo.learning._decision_tree import Binned, grow_tree, join_forests
from tests.examples import examples


@st.composite
def bags(draw):
    """Return rows of few values, classes, and how often each example counts."""
    n = draw(st.integers(4, 60) | st.integers(200, 400))  # few and many examples in a node
    width = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = rng.integers(0, draw(st.integers(2, 40)), (n, width)).astype(np.float32) / 7
    wrong = rng.integers(0, 2, n)
    weights = rng.integers(0, 4, n)
    wrong[:2], weights[:2] = (0, 1), 1
    return rows, wrong, weights


def entropy(wrong, weights):
    """Return the bits of so many examples, all together."""
    bits = 0.0
    for kind in (0, 1):
        part = weights[wrong == kind].sum()
        if part:
            bits -= part * np.log2(part / weights.sum())
    return bits


def best_gain(rows, wrong, weights, leaf):
    """Return what the best of all splits gains, -1 if none is allowed."""
    best = -1.0
    for column in rows.T:
        for value in np.unique(column)[:-1]:
            left = column <= value
            if min(left.sum(), (~left).sum()) >= leaf:
                parts = sum(entropy(wrong[side], weights[side]) for side in (left, ~left))
                best = max(best, entropy(wrong, weights) - parts)
    return best


@examples(120)
@given(bags(), st.integers(1, 4), st.sampled_from([None, 1, 3]))
def test_every_node_makes_the_best_split_of_its_examples(bag, leaf, depth):
    rows, wrong, weights = bag
    tree = grow_tree(
        Binned.of(rows), wrong, weights, columns=rows.shape[1], leaf=leaf, depth=depth, seed=3
    )
    thresholds = tree.nodes.view(np.float32)[:, 1]
    waiting, reached = [(0, np.flatnonzero(weights), 0)], 0
    while waiting:
        node, inside, level = waiting.pop()
        reached += 1
        here = rows[inside], wrong[inside], weights[inside]
        assert tree.values[node] == here[1] @ here[2] / here[2].sum()
        feature, _, left, right = tree.nodes[node].tolist()
        best = best_gain(*here, leaf) if len({*here[1]}) == 2 and level != depth else -1
        assert (left == node) == (right == node) == (best < 0)
        if best < 0:
            continue
        goes_left = here[0][:, feature] <= thresholds[node]
        parts = [inside[goes_left], inside[~goes_left]]
        bits = sum(entropy(wrong[part], weights[part]) for part in parts)
        assert entropy(*here[1:]) - bits == pytest.approx(best, abs=1e-9)
        waiting += [(left, parts[0], level + 1), (right, parts[1], level + 1)]
    assert reached == len(tree.nodes)
    assert tree.gains.sum() == pytest.approx(1.0) or not tree.gains.any()


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3000), st.sampled_from([3, 200, 10**6]))
def test_bins_are_those_of_their_thresholds_and_have_a_like_number_of_examples(seed, n, values):
    rng = np.random.default_rng(seed)
    column = rng.integers(0, values, n).astype(np.float32) * (rng.random(n) < 0.5)
    binned = Binned.of(column[:, None].astype(np.float32))
    codes, thresholds = binned.codes[0], binned.thresholds[0]
    for code in np.unique(codes):
        assert column[codes == code].max() <= thresholds[code]
        if code:
            assert column[codes == code].min() > thresholds[code - 1]
    distinct = len(np.unique(column))
    assert len(np.unique(codes)) == codes.max() + 1 <= min(distinct, 256)
    if distinct <= 256:
        assert codes.max() + 1 == distinct
    else:  # none but that of the many zeros has more than its share
        assert np.bincount(codes)[1:].max() <= 3 * n / 256 + 1


@pytest.mark.compiled
def test_a_tree_is_as_good_as_that_of_scikit_learn_on_examples_it_has_not_seen():
    rows, wrong = make_classification(3000, 20, n_informative=6, random_state=0)
    rows = rows.astype(np.float32)
    weights = np.random.default_rng(0).integers(0, 3, 2000)
    binned = Binned.of(rows[:2000])
    grown = [
        grow_tree(binned, wrong[:2000], weights, columns=4, leaf=2, depth=None, seed=seed)
        for seed in range(20)
    ]
    ours = join_forests([tree.forest() for tree in grown]).predict(rows[2000:])
    theirs = np.mean(
        [
            DecisionTreeClassifier(
                criterion="entropy", max_features=4, min_samples_leaf=2, random_state=seed
            )
            .fit(rows[:2000], wrong[:2000], sample_weight=weights)
            .predict_proba(rows[2000:])[:, 1]
            for seed in range(20)
        ],
        axis=0,
    )

    def loss(message):
        chance = np.clip(np.where(wrong[2000:] == 1, message, 1 - message), 0.01, 1)
        return -np.log(chance).mean()

    assert loss(ours) < 1.1 * loss(theirs) < 0.5


def test_the_seed_alone_decides_the_tree():
    rows = np.random.default_rng(1).random((200, 9), np.float32)
    wrong = (rows[:, 0] + rows[:, 1] > 1).astype(np.int64)
    binned, weights = Binned.of(rows), np.ones(200, np.int64)
    options = {"columns": 2, "leaf": 1, "depth": None}
    first, again, other = (
        grow_tree(binned, wrong, weights, seed=seed, **options) for seed in (1, 1, 2)
    )
    assert np.array_equal(first.nodes, again.nodes)
    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.nodes, other.nodes)


@pytest.mark.parametrize("exact", [False, True])
def test_both_ways_of_growing_learn_and_are_recorded(exact):
    index = np.indices((12, 12))
    superpixels = (index[0] // 2) * 6 + index[1] // 2 + 1
    gold = np.where(index[1] < 6, 1, 2)
    cue = np.clip(np.abs(index[1] - 5.5) < 1, 0.1, 0.9) * 1.0
    cue += 0.05 * np.random.default_rng(0).random(cue.shape)
    graph = region_graph(superpixels, np.clip(cue, 0, 1))
    settings = ForestSettings(trees=12, early_trees=5, exact=exact)
    sizes = []
    policy = train(
        graph, gold, epochs=2, settings=settings,
        each_epoch=lambda _, policy: sizes.append(len(policy.model.roots)),
    )  # fmt: skip
    assert sizes == [5, 6, 12]  # half of the trees are from each of the two epochs
    assert policy.record["settings"]["exact"] is exact
    assert sum(split_vi(agglomerate(graph, policy).segment(0.5), gold)) == 0
