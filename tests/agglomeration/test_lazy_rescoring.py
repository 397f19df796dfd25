"""Lower bounds in the queue against scoring every boundary in full: the same merges."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.repairs import hub_graph

import napari_agglo as agglo
from benchmarks import volumes
from napari_agglo import Cancelled, agglomerate, oversegment, region_graph, train
from napari_agglo.agglomeration import _agglomerate, _lazy_rescoring, merge_greedily
from napari_agglo.features import feature_map
from napari_agglo.policy import Forest, LearnedPolicy
from tests.examples import examples


def random_tree(rng, width, depth, values):
    """Return nodes in the order in which scikit-learn numbers them, and their values."""
    nodes, leaves = [], []

    def grow(level):
        at = len(nodes)
        nodes.append([0, 0, at, at])
        leaves.append(rng.choice(values))
        if level < depth and rng.random() < 0.8:
            threshold = np.float32(rng.choice([0.0, 0.1, 0.3, 0.5, 2.0, 20.0])).view(np.uint32)
            nodes[at] = [rng.integers(width), threshold, grow(level + 1), grow(level + 1)]
        return at

    grow(0)
    nodes = np.array(nodes, np.uint32)
    leaf = nodes[:, 2] == np.arange(len(nodes))
    nodes[leaf, 1] = np.float32(np.inf).view(np.uint32)
    return nodes, np.array(leaves)


def random_forest(rng, width, n_trees, values):
    """Return a forest of leaves that hold few values, so that there are ties everywhere."""
    roots, parts, leaves, first = [], [], [], 0
    for _ in range(n_trees):
        nodes, values_of = random_tree(rng, width, 6, values)
        roots.append(first)
        parts.append(nodes + np.array([0, 0, first, first], np.uint32))
        leaves.append(values_of)
        first += len(nodes)
    return Forest(np.array(roots, np.uint32), np.concatenate(parts), np.concatenate(leaves))


@st.composite
def problems(draw):
    """Return a graph, a policy, and constraints."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from([(40,), (9, 9), (4, 5, 6)]))
    labels = rng.integers(1, draw(st.integers(2, 40)), shape)
    graph = region_graph(labels, rng.integers(0, 4, shape) / 3)
    features = feature_map(graph, draw(st.sampled_from(["minimal", "em", "shape"])))
    values = draw(st.sampled_from([[0.0], [0.0, 1.0], [0.0, 0.1, 0.25, 0.7], rng.random(50)]))
    forest = random_forest(rng, features.width, draw(st.integers(1, 30)), values)
    ids = graph.ids[1:].tolist()
    pair = st.tuples(st.sampled_from(ids), st.sampled_from(ids)).filter(lambda p: p[0] != p[1])
    links = draw(st.lists(pair, max_size=2)) if len(ids) > 1 else []
    locked = draw(st.lists(st.sampled_from(ids), max_size=1))
    return graph, LearnedPolicy(features, forest), {"cannot_link": links, "locked": locked}


def assert_same(one, two):
    for name in ("winners", "losers", "priorities"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


@examples(300)
@given(problems(), st.sampled_from([0.0, 1.0, np.inf]))
def test_the_merges_are_those_of_the_loop_that_scores_in_full(problem, least_coded):
    graph, policy, constraints = problem
    eager = merge_greedily(graph, policy, rescore=True, **constraints)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lazy_rescoring, "_CODED", least_coded)
        lazy = merge_greedily(graph, policy, **constraints)
    assert_same(lazy, eager)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("least_coded", [0.0, 4.0, np.inf])
def test_the_merges_are_the_same_beside_a_region_that_touches_hundreds(
    seed, least_coded, monkeypatch
):
    monkeypatch.setattr(_lazy_rescoring, "_CODED", least_coded)
    graph = hub_graph(60 if numba.config.DISABLE_JIT else 600, seed)
    features = feature_map(graph)
    rng = np.random.default_rng(seed)
    policy = LearnedPolicy(features, random_forest(rng, features.width, 30, rng.random(50)))
    eager = merge_greedily(graph, policy, rescore=True)
    assert_same(merge_greedily(graph, policy), eager)


def from_sample(kind, min_size):
    sample = agglo.sample(kind)
    superpixels = oversegment(sample.cues["boundary"], min_size=min_size)
    graph = region_graph(superpixels, sample.cues, spacing=sample.spacing)
    return graph, train(graph, sample.gold, epochs=1)


def from_stack(shape=None):
    """Return the graph of a stack, tiled to a shape, and a forest that any gold taught."""
    if volumes.data_folder() is None:
        pytest.skip("no real volumes")
    small = region_graph(*volumes.crop()[:2])
    tree = agglomerate(small)
    gold = tree.segment(float(np.quantile(tree.heights, 0.95)))
    graph = small if shape is None else region_graph(*volumes.tiled(shape))
    return graph, train(small, gold, strategy="flat")


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda: from_sample("neuropil2d", 10), 1000),
        (lambda: from_sample("neuropil3d", 200), 1000),
        (lambda: from_sample("cells2d", 10), 1000),
        (from_stack, 1000),
        (lambda: from_stack((128, 168, 272)), 10_000),
    ],
    ids=["neuropil2d", "neuropil3d", "cells2d", "SNEMI3D mini", "tiled"],
)
def test_the_merges_are_the_same_on_samples_and_real_volumes(make, least):
    graph, policy = make()
    assert graph.n_regions > least
    lazy = merge_greedily(graph, policy)
    assert_same(lazy, merge_greedily(graph, policy, rescore=True))


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    cue = rng.random((48, 48)) ** 2
    graph = region_graph(oversegment(cue, min_size=4), cue)
    gold = agglomerate(graph).segment(0.35)
    return graph, train(graph, gold, epochs=1)


@pytest.mark.compiled
def test_a_trained_forest_walks_a_part_of_its_trees(trained, monkeypatch):
    graph, policy = trained
    walked = []

    def lazy_state(*arguments):
        state = original(*arguments)
        walked.append(state[3].walked)
        return state

    original = _agglomerate.lazy_state
    monkeypatch.setattr(_agglomerate, "lazy_state", lazy_state)
    assert_same(merge_greedily(graph, policy), merge_greedily(graph, policy, rescore=True))
    (trees,) = walked
    assert (trees == 100).any()
    assert (trees < 100).any()


@pytest.mark.compiled
def test_a_run_can_be_cancelled_and_slices_do_not_show(trained, monkeypatch):
    graph, policy = trained
    whole = merge_greedily(graph, policy)
    monkeypatch.setattr(_agglomerate, "_SLICE", 7)
    assert_same(merge_greedily(graph, policy), whole)

    def cancel(progress):
        if progress.done > 10:
            raise Cancelled

    with pytest.raises(Cancelled):
        merge_greedily(graph, policy, progress=cancel)


@pytest.mark.compiled
def test_a_slice_may_be_over_before_its_first_merge():
    labels = np.arange(1, 24 * 25 + 1).reshape(24, 25)
    graph = region_graph(labels, np.zeros(labels.shape))
    features = feature_map(graph, "minimal")
    # No leaf is 0, so that all trees of every boundary are walked, eight at a time, before a merge.
    leaf = [0, np.float32(np.inf).view(np.uint32), 0, 0]
    nodes = np.array([leaf] * 200, np.uint32) + np.arange(200)[:, None] * np.uint32([0, 0, 1, 1])
    forest = Forest(np.arange(200, dtype=np.uint32), nodes, np.full(200, 0.25))
    assert len(merge_greedily(graph, LearnedPolicy(features, forest)).winners) == labels.size - 1
