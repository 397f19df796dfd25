"""The incremental repair against T(E) from scratch, merge for merge."""

from __future__ import annotations

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.edits import adjacency, policy_score, tree_of_edits
from oracles.histories import check_against_oracle, check_cells, check_hub
from oracles.repairs import (
    POLICIES,
    graphs,
    hub_graph,
    nodes_of,
    partition,
    random_forest,
    state_of,
)

from napari_agglo import InvalidInput, region_graph
from napari_agglo.features import feature_map
from napari_agglo.graph import divide
from napari_agglo.policy import LearnedPolicy, MeanPolicy
from napari_agglo.session._actions import Cut, Lock, Merge, as_ids
from napari_agglo.session._hierarchy import superpixels
from napari_agglo.session._hierarchy.hierarchy import Hierarchy


@examples(240)
@given(st.data(), graphs(), POLICIES)
def test_hierarchy_equals_the_run_from_scratch_merge_for_merge(data, graph, policy):
    check_against_oracle(data, graph, *policy, most=8)


@pytest.mark.slow
@settings(max_examples=5000)
@given(st.data(), graphs(most=10), POLICIES, st.booleans())
def test_hierarchy_equals_the_run_from_scratch_for_a_long_time(data, graph, policy, look_always):
    check_against_oracle(data, graph, *policy, most=16, look_always=look_always)


@examples(100)
@given(st.data(), graphs(), POLICIES)
def test_looking_at_everything_after_each_edit_makes_no_difference(data, graph, policy):
    check_against_oracle(data, graph, *policy, most=6, look_always=True)


@examples(100)
@given(st.data(), graphs(most=6), POLICIES)
def test_hierarchy_equals_the_run_on_the_image_of_divided_superpixels(data, graph, policy):
    kinds = ("divide", "divide", "edit", "look", "undo", "redo")
    check_against_oracle(data, graph, *policy, most=5, kinds=kinds)


@examples(100)
@given(st.data(), graphs(), st.integers(0, 999))
def test_hierarchy_equals_the_run_from_scratch_with_cells_of_the_forest(data, graph, seed):
    check_cells(data, graph, seed, most=8)


@pytest.mark.slow
@settings(max_examples=1000)
@given(st.data(), graphs(most=10), st.integers(0, 999))
def test_hierarchy_equals_the_run_with_cells_of_the_forest_for_a_long_time(data, graph, seed):
    check_cells(data, graph, seed, most=14)


@examples(12)
@given(st.sampled_from([60, 240]), st.integers(0, 2**16), st.sampled_from(["callable", "mean"]))
def test_hierarchy_equals_the_run_from_scratch_beside_a_region_that_touches_hundreds(n, seed, kind):
    check_hub(n, seed, edits=2, kind=kind)


@examples(10)
@given(st.integers(0, 2**16), st.sampled_from([0, 2000]))
def test_hierarchy_equals_the_run_by_a_forest_beside_a_region_that_touches_dozens(seed, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(superpixels.Scorer, "few", few)
        check_hub(24, seed, edits=2, kind="forest")


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_of_a_boundary_is_asked_for_again_only_when_that_has_changed(seed):
    graph = hub_graph(600, seed)
    tree = Hierarchy(graph, MeanPolicy())
    other = int(np.flatnonzero(tree.table(0.0) != tree.table(0.0)[1])[1])
    tree.do(Merge(0.0, ((1, other),)))
    tree.look(math.inf)
    assert tree.n_scored < 2 * graph.n_boundaries


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from([100, 300]), st.integers(0, 2**16))
def test_hierarchy_equals_the_run_beside_a_region_that_touches_hundreds_for_a_long_time(n, seed):
    check_hub(n, seed, edits=4)
    check_hub(n, seed, edits=4, kind="mean")


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 2**16), st.sampled_from([0, 100, 2000]))
def test_hierarchy_equals_the_run_by_a_forest_beside_a_region_that_touches_60(seed, few):
    """By cells from the first boundary on, from the hundredth on, or hardly ever."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(superpixels.Scorer, "few", few)
        check_hub(60, seed, edits=3, kind="forest")


def test_an_edit_that_was_recorded_at_the_scale_looked_at_and_does_not_happen_again():
    """Its regions are free from there on, though nothing above that scale is looked at."""
    graph = region_graph(np.array([[1, 2, 3]]), np.zeros((1, 3)))
    tree = Hierarchy(graph, MeanPolicy())
    edits = [
        Cut(0.375, tuple(as_ids([k]) for k in (1, 2, 3))),
        Merge(0.125, ((1, 2),)),
        Lock(0.0, as_ids([1])),
        Merge(0.125, ((2, 3),)),
    ]
    for edit in edits:
        tree.do(edit)
    assert partition(tree, 0.125) == {frozenset([1]), frozenset([2, 3])}
    score = policy_score(graph, lambda g: g.boundary_mean())
    assert nodes_of(tree) == tree_of_edits(adjacency(graph), score, edits).nodes()
    assert tree.asleep() == [(1, 0)]


def test_a_recorded_merge_at_just_the_scale_looked_at_meets_a_dirty_region():
    """The boundary between the two has the same level, and is seen at that scale too."""
    labels = np.array([[2, 8, 3, 7], [3, 4, 8, 7], [1, 8, 1, 5], [1, 7, 6, 5]])
    cue = np.array([[0, 4, 3, 0], [3, 1, 1, 4], [1, 2, 2, 3], [2, 2, 0, 3]]) / 4
    graph = region_graph(labels, cue)
    features = feature_map(graph, "natural")
    policy = LearnedPolicy(features, random_forest(9, features.width))
    tree = Hierarchy(graph, policy)
    edits = [Lock(0.0, as_ids([3]))]
    tree.do(edits[0])
    run = tree_of_edits(adjacency(graph), policy_score(graph, policy.score), edits)
    assert {5, 6} in run.partition(0.5) or {1, 5, 6} in run.partition(0.5), "test invalid"
    assert partition(tree, 0.5) == run.partition(0.5)


def test_a_merge_is_not_taken_for_one_that_an_older_edit_of_its_scale_went_on_to_join():
    graph = region_graph(np.array([[1, 2, 3]]), np.full((1, 3), 0.4))
    tree = Hierarchy(graph, MeanPolicy())
    edits = [
        Merge(0.125, ((1, 3),)),
        Cut(0.5, (as_ids([1]), as_ids([2, 3]))),
        Merge(0.0, ((1, 2),)),
        Cut(0.0, (as_ids([1]), as_ids([2]))),
        Merge(0.125, ((1, 2),)),
    ]
    for edit in edits[:3]:
        tree.do(edit)
    assert partition(tree, 0.25) == {frozenset([1, 2, 3])}, "test invalid"
    for edit in edits[3:]:
        tree.do(edit)
    score = policy_score(graph, lambda g: g.boundary_mean())
    assert nodes_of(tree) == tree_of_edits(adjacency(graph), score, edits).nodes()


def test_a_cut_believes_an_older_merge_across_a_still_older_cut():
    labels = np.array([[2, 4, 3, 3], [5, 2, 1, 3], [6, 1, 5, 1], [1, 2, 5, 6]])
    cue = np.array([[3, 1, 3, 2], [3, 0, 4, 4], [3, 4, 4, 2], [3, 0, 0, 3]]) / 4
    graph = region_graph(labels, cue)
    tree = Hierarchy(graph, MeanPolicy())
    edits = [
        Cut(0.875, (as_ids([1, 6]), as_ids([3]), as_ids([2, 4, 5]))),
        Merge(0.125, ((1, 5),)),
        Merge(0.125, ((1, 2),)),
        Cut(0.625, (as_ids([1, 5]), as_ids([2, 4]))),
    ]
    for edit in edits:
        tree.do(edit)
    assert frozenset([1, 5]) in partition(tree, 0.125)
    score = policy_score(graph, lambda g: g.boundary_mean())
    assert nodes_of(tree) == tree_of_edits(adjacency(graph), score, edits).nodes()


def test_parts_that_are_not_a_segment_are_refused_and_leave_no_trace():
    tree = Hierarchy(region_graph(np.array([[1, 2, 3]]), np.zeros((1, 3))), MeanPolicy())
    before = state_of(tree)
    with pytest.raises(InvalidInput, match="make up one segment"):
        tree.do(Cut(0.5, (as_ids([1]), as_ids([2]))))
    assert state_of(tree) == before
    with pytest.raises(InvalidInput, match="no edit to undo"):
        tree.undo()


def held(tree):
    """Return how much a tree holds: rows, steps, entries of edits, lists of neighbours."""
    return (
        tree.log.count,
        len(tree.log.rows),
        len(tree.steps),
        tree.constraints.pooled,
        len(tree.constraints.pool),
        tree.superpixels.n_adjacent,
        len(tree.superpixels.adjacent),
        len(tree.superpixels.more_regions),
    )


def test_doing_and_undoing_and_looking_up_and_down_holds_no_more_and_more():
    labels = np.kron(np.random.default_rng(1).permutation(36).reshape(6, 6) + 1, np.ones((2, 2)))
    graph = region_graph(labels.astype(int), np.random.default_rng(0).random(labels.shape))
    tree = Hierarchy(graph, MeanPolicy())
    large = next(node for node in tree.regions(0.5)[1:].tolist() if len(tree.members(node)) > 3)
    members = tree.members(large)
    division = divide(graph, int(members[0]), np.array([[1, 1], [2, 2]]))
    new = division.members
    edits = [
        (Merge(0.3, ((1, 36),)), ()),
        (Cut(0.5, (members[:2], members[2:])), ()),
        (Cut(0.5, (as_ids([*members[1:], new[0]]), as_ids(new[1:]))), (division,)),
    ]
    sizes = []
    for _ in range(12):
        for edit, divisions in edits:
            for look in (0.6, math.inf):
                tree.do(edit, divisions=divisions)
                tree.look(look)
                tree.look(0.1)
                tree.undo()
        sizes.append(held(tree))
    assert len(set(sizes[1:])) == 1, sizes
