"""A session accepts the tree of its graph and policy, and no other."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import InvalidInput, MeanPolicy, Session
from napari_agglo.policy import RandomPolicy

OTHER = ("tree", "pass the tree of this graph and policy, or")
LABELS = np.repeat(np.repeat(np.arange(1, 26).reshape(5, 5), 4, 0), 4, 1)
CUE = np.random.default_rng(0).random(LABELS.shape).astype("f4")


def create(tree, graph, policy="mean"):
    """Create a session with a tree, somewhere."""
    with tempfile.TemporaryDirectory() as folder:
        Session.create(f"{folder}/a.agglo", graph, policy, tree=tree).close()


@pytest.fixture(scope="module")
def graph():
    return agglo.region_graph(LABELS, {"boundary": CUE, "other": CUE**2})


@pytest.fixture(scope="module")
def learned(graph):
    gold = (LABELS > 12) + 1
    return [agglo.train(graph, gold, strategy="flat", preset="minimal", classifier=kind)
            for kind in ("forest", "logistic")]  # fmt: skip


def test_each_policy_takes_its_own_tree_alone(graph, learned):
    policies = [MeanPolicy(), MeanPolicy("other"), RandomPolicy(0), RandomPolicy(1), *learned]
    trees = [agglo.agglomerate(graph, policy) for policy in policies]
    for k, policy in enumerate(policies):
        for j, tree in enumerate(trees):
            if j == k:
                create(tree, graph, policy)
            else:
                with refuses(*OTHER):
                    create(tree, graph, policy)


@examples(40, few=6)
@given(st.integers(0, 10**6), st.integers(1, 40), st.booleans())
def test_the_tree_of_a_graph_is_always_taken(seed, n, in_two):
    rng = np.random.default_rng(seed)
    labels = rng.integers(1, n + 1, (9, 9)) * 3
    if in_two:
        labels[4] = 0
    graph = agglo.region_graph(labels, rng.random(labels.shape))
    for policy in (MeanPolicy(), RandomPolicy(seed)):
        tree = agglo.agglomerate(graph, policy)
        create(tree, graph, policy)
        if tree.n_merges:
            k = int(rng.integers(tree.n_merges))
            tree.priorities[k] += 0.01
            with refuses(*OTHER):
                create(tree, graph, policy)


@pytest.mark.slow
@pytest.mark.compiled  # some hundred sessions are created
def test_of_a_large_tree_a_hundred_merges_are_looked_at():
    rng = np.random.default_rng(1)
    labels = np.arange(1, 145).reshape(12, 12).repeat(2, 0).repeat(2, 1)
    graph = agglo.region_graph(labels, rng.random(labels.shape))
    tree = agglo.agglomerate(graph)
    create(tree, graph)
    checked = []
    for k in range(tree.n_merges):
        tree.priorities[k] += 0.01
        try:
            create(tree, graph)
        except InvalidInput as error:
            if error.argument == "tree":
                checked.append(k)
        tree.priorities[k] -= 0.01
    assert len(checked) == 100
    assert checked[0] == 0
    assert checked[-1] > 0.9 * tree.n_merges


def test_a_large_tree_of_another_image_is_refused():
    rng = np.random.default_rng(1)
    labels = np.arange(1, 2501).reshape(50, 50).repeat(2, 0).repeat(2, 1)
    graph = agglo.region_graph(labels, rng.random(labels.shape))
    create(agglo.agglomerate(graph), graph)
    other = agglo.agglomerate(agglo.region_graph(labels, rng.random(labels.shape)))
    with refuses(*OTHER):
        create(other, graph)


def test_a_session_refuses_and_makes_nothing(tmp_path, graph, learned):
    def create_here(tree, policy="mean"):
        Session.create(tmp_path / "a.agglo", graph, policy, tree=tree)

    other = agglo.agglomerate(agglo.region_graph(LABELS, 1 - CUE))
    shifted = agglo.agglomerate(agglo.region_graph(LABELS.T.copy(), CUE))
    fewer = agglo.agglomerate(agglo.region_graph(LABELS[:8], CUE[:8]))
    for tree, refusal in [
        (other, OTHER),
        (shifted, ("tree", "agglomerate this graph")),
        (fewer, ("tree", "agglomerate this graph")),
        (
            agglo.agglomerate(graph, locked=[7]),
            ("tree", "leave out `cannot_link` and `locked`, and"),
        ),
        (
            agglo.agglomerate(graph, cannot_link=[(1, 25)]),
            ("tree", "leave out `cannot_link` and `locked`, and"),
        ),
        (3, ("tree", "pass agglomerate(graph, policy), or leave")),
    ]:
        with refuses(*refusal):
            create_here(tree)
    poor = agglo.region_graph(LABELS, CUE, statistics="mean")
    with pytest.raises(InvalidInput):
        Session.create(tmp_path / "a.agglo", poor, learned[0], tree=agglo.agglomerate(poor))
    with refuses("graph", "make one with region_graph(superpixels"):
        Session.create(tmp_path / "a.agglo", LABELS, tree=other)
    assert list(tmp_path.iterdir()) == []
    create_here(agglo.agglomerate(graph, learned[0]), learned[0])
