"""Cut methods: their parts are partitions, and each method agrees with a slow oracle."""

from __future__ import annotations

import itertools
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st
from oracles import cuts as slow
from oracles import repairs
from oracles.agglomerate import graph_of_edges, merge_naively
from refusals import refuses

from napari_agglo import InvalidInput, MergeTree, agglomerate
from napari_agglo.agglomeration import merge_greedily
from napari_agglo.features import feature_map
from napari_agglo.policy import LearnedPolicy
from napari_agglo.session import CutProblem, cut_method
from napari_agglo.session._cut_methods import (
    by_tree,
    connected_pieces,
    cut_methods,
    detached,
    min_cut,
    seeded,
    separating_nodes,
)
from napari_agglo.session._cut_methods.min_cut import minimum_cut, whole_capacities, widened
from napari_agglo.session._cut_methods.segment_graph import attached


@st.composite
def graphs(draw, most=9):
    """Draw a graph, connected or not, with statistics that the mean can be read off."""
    n = draw(st.integers(2, most))
    pairs = list(itertools.combinations(range(1, n + 1), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=n // 2, max_size=3 * n))
    faces = draw(st.lists(st.integers(1, 9), min_size=len(edges), max_size=len(edges)))
    means = draw(st.lists(st.integers(0, 255), min_size=len(edges), max_size=len(edges)))
    sums = [2 * f * m for f, m in zip(faces, means, strict=True)]
    return graph_of_edges(n, edges, sums, faces)


@st.composite
def cuts(draw, most=9, most_groups=4, single=False):
    """Draw a graph, a connected segment of it, and seeds in groups."""
    graph = draw(graphs(most))
    members = draw(st.sampled_from(connected_pieces(graph, np.arange(1, graph.n_regions + 1))))
    assume(len(members) > 1)
    n_seeds = draw(st.integers(2, len(members)))
    n_groups = draw(st.integers(2, min(most_groups, n_seeds)))
    chosen = draw(st.permutations(members.tolist()))[: n_groups if single else n_seeds]
    seeds = [chosen[k::n_groups] for k in range(n_groups)]
    return graph, members, seeds


def inner_edges(graph, members):
    held = set(members.tolist())
    return [tuple(e) for e in graph.edges.tolist() if set(e) <= held]


def assert_are_parts(graph, members, seeds, parts):
    assert len(parts) == len(seeds)
    assert sorted(np.concatenate(parts).tolist()) == sorted(members.tolist())
    for group, part in zip(seeds, parts, strict=True):
        assert set(group) <= set(part.tolist())
        assert part.tolist() == sorted(part.tolist())
        assert part.dtype == np.int64
        assert slow.is_connected(part.tolist(), graph.edges.tolist())


def merge_tree_of(graph, merges):
    """Return the tree of the merges of a loop."""
    return MergeTree(
        graph.superpixels, merges.winners, merges.losers, merges.priorities, graph.sizes
    )


def tree_of(graph, policy="mean"):
    """Return a tree as an accessor, and the roots of it by their leaves."""
    tree = agglomerate(graph, policy)
    first = graph.n_regions + 1

    def children(node):
        return tree.children[node - first].tolist() if node >= first else []

    roots = [n for n in range(1, first + tree.n_merges) if tree.parents[n] < 0]
    return children, {tuple(tree.members(root).tolist()): root for root in roots}


def ways(graph, members):
    children, roots = tree_of(graph)
    node = roots[tuple(members.tolist())]
    return {
        "min_cut": lambda seeds: min_cut(graph, members, seeds, isolating=True),
        "seeded": lambda seeds: seeded(graph, members, seeds),
        "by_tree": lambda seeds: by_tree(graph, members, seeds, node, children),
    }


@pytest.mark.parametrize("way", ["min_cut", "seeded", "by_tree"])
@given(case=cuts())
def test_parts_are_disjoint_connected_and_hold_their_seeds(way, case):
    graph, members, seeds = case
    cut = ways(graph, members)[way]
    if not possible(graph, members, seeds):
        with refuses("seeds", "make the seeds on the far side a group"):
            cut(seeds)
        return
    try:
        parts = cut(seeds)
    except InvalidInput:  # paths are looked for one group after the other, and seldom in vain
        assert max(len(group) for group in seeds) > 1
        reject()
    assert_are_parts(graph, members, seeds, parts)


def possible(graph, members, seeds):
    """Whether there are parts at all: each group connected by what is free, no two sharing it."""
    free = sorted(set(members.tolist()) - {seed for group in seeds for seed in group})
    edges = graph.edges.tolist()
    for choice in itertools.product(range(len(seeds)), repeat=len(free)):
        parts = [
            [*group, *(node for node, k in zip(free, choice, strict=True) if k == number)]
            for number, group in enumerate(seeds)
        ]
        if all(slow.is_connected(part, edges) for part in parts):
            return True
    return False


@pytest.mark.parametrize("way", ["min_cut", "seeded", "by_tree"])
@given(case=cuts(single=True))
def test_single_seeds_are_never_refused(way, case):
    graph, members, seeds = case
    assert_are_parts(graph, members, seeds, ways(graph, members)[way](seeds))


@given(cuts(most=12, most_groups=2, single=True), st.data())
def test_two_groups_are_cut_as_networkx_cuts_them(case, data):
    graph, members, seeds = case
    weights = np.array([data.draw(st.integers(0, 50)) for _ in range(graph.n_boundaries)])
    parts = min_cut(graph, members, seeds, weights.astype(float), isolating=True)
    drawn = nx.Graph()
    drawn.add_nodes_from(members.tolist())
    for edge, weight in zip(graph.edges.tolist(), weights.tolist(), strict=True):
        drawn.add_edge(*edge, capacity=weight)
    value, _ = nx.minimum_cut(drawn, seeds[0][0], seeds[1][0])
    owner = {node: k for k, part in enumerate(parts) for node in part.tolist()}
    rows = [k for k, e in enumerate(graph.edges.tolist()) if e[0] in owner]
    edges = [tuple(graph.edges[k].tolist()) for k in rows]
    assert slow.cost_of(owner, edges, weights[rows].tolist()) == value


@given(cuts(most=7, most_groups=2), st.data())
def test_the_flow_is_exact_and_both_sides_are_minimum_cuts(case, data):
    graph, members, seeds = case
    ends = np.searchsorted(members, np.array(inner_edges(graph, members)).reshape(-1, 2))
    capacity = np.array([data.draw(st.integers(1, 9)) for _ in ends], np.int64)
    groups = [np.searchsorted(members, group) for group in seeds]
    least, largest, value = minimum_cut(len(members), ends, capacity, *groups)
    nodes = range(len(members))
    pairs = [tuple(pair) for pair in ends.tolist()]
    expected = slow.cheapest_partition(
        nodes, pairs, capacity.tolist(), [g.tolist() for g in groups]
    )
    assert value == expected
    assert not (least & ~largest).any()
    for side in (least, largest):
        assert side[groups[0]].all()
        assert not side[groups[1]].any()
        assert slow.cost_of(dict(enumerate(side.tolist())), pairs, capacity.tolist()) == value


@given(cuts(most=7, most_groups=4, single=True), st.data())
def test_more_groups_cost_less_than_twice_the_least(case, data):
    graph, members, seeds = case
    weights = np.array([data.draw(st.integers(1, 50)) for _ in range(graph.n_boundaries)], float)
    parts = min_cut(graph, members, seeds, weights, isolating=True)
    owner = {node: k for k, part in enumerate(parts) for node in part.tolist()}
    rows = [k for k, e in enumerate(graph.edges.tolist()) if e[0] in owner]
    edges = [tuple(graph.edges[k].tolist()) for k in rows]
    costs = weights[rows].tolist()
    least = slow.cheapest_partition(members.tolist(), edges, costs, seeds)
    assert slow.cost_of(owner, edges, costs) <= (2 - 2 / len(seeds)) * least


@given(cuts(single=True))
def test_seeded_equals_naive_agglomeration_under_constraints(case):
    graph, members, seeds = case
    parts = seeded(graph, members, seeds)
    apart = list(itertools.combinations([seed for (seed,) in seeds], 2))
    merges, _ = merge_naively(graph, cannot_link=apart)
    root = {k: k for k in range(1, graph.n_regions + 1)}
    for winner, loser, _ in merges:
        root = {k: winner if r == loser else r for k, r in root.items()}
    expected = [[k for k in members.tolist() if root[k] == root[seed]] for (seed,) in seeds]
    assert [part.tolist() for part in parts] == expected


@given(repairs.graphs(), st.data())
def test_seeded_by_a_forest_equals_the_loop_that_evaluates_every_tree(graph, data):
    members = data.draw(st.sampled_from(connected_pieces(graph, np.arange(1, graph.n_regions + 1))))
    assume(len(members) > 1)
    chosen = data.draw(st.permutations(members.tolist()))[: data.draw(st.integers(2, 5))]
    seeds = [chosen[::2], chosen[1::2]]
    features = feature_map(graph)
    seed, n_trees = data.draw(st.integers(0, 999)), data.draw(st.integers(1, 20))
    policy = LearnedPolicy(features, repairs.random_forest(seed, features.width, n_trees))
    calls = []

    def eager(graph, policy, **options):
        calls.append(policy)
        merges = merge_greedily(graph, policy, rescore=True, **options)
        return merge_tree_of(graph, merges)

    parts = [part.tolist() for part in seeded(graph, members, seeds, policy)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[seeded.__module__], "merge_tree", eager)
        assert [part.tolist() for part in seeded(graph, members, seeds, policy)] == parts
    assert calls == [policy]


@given(cuts(most=8))
def test_the_nodes_of_the_tree_are_the_coarsest_that_separate(case):
    graph, members, seeds = case
    children, roots = tree_of(graph)
    node = roots[tuple(members.tolist())]
    group_of = {seed: k for k, group in enumerate(seeds) for seed in group}
    found = separating_nodes(node, children, group_of)
    expected = slow.coarsest_separation(node, children, group_of)
    assert {frozenset(leaves.tolist()) for leaves in found} == expected


@given(cuts(single=True, most_groups=2))
def test_by_tree_undoes_the_lowest_common_ancestor(case):
    graph, members, seeds = case
    tree = agglomerate(graph)
    children, roots = tree_of(graph)
    node = roots[tuple(members.tolist())]
    parts = by_tree(graph, members, seeds, node, children)
    meeting = tree.lowest_common_ancestor(seeds[0][0], seeds[1][0])
    for child in children(meeting):
        held = set(tree.members(child).tolist())
        assert any(held <= set(part.tolist()) for part in parts)


@given(graphs(), st.data())
def test_detached_superpixels_leave_and_everything_is_in_pieces(graph, data):
    every = list(range(1, graph.n_regions + 1))
    members = data.draw(st.lists(st.sampled_from(every), unique=True, min_size=2))
    leaving = data.draw(st.lists(st.sampled_from(members), unique=True, min_size=1))
    assume(len(leaving) < len(members))
    parts = detached(graph, members, leaving)
    assert sorted(np.concatenate(parts).tolist()) == sorted(members)
    for part in parts:
        assert slow.is_connected(part.tolist(), graph.edges.tolist())
        assert set(part.tolist()) <= set(leaving) or not set(part.tolist()) & set(leaving)
    for one, two in itertools.combinations(parts, 2):
        together = [*one.tolist(), *two.tolist()]
        same = (one[0] in leaving) == (two[0] in leaving)
        assert not (same and slow.is_connected(together, graph.edges.tolist()))


@given(cuts())
def test_seeds_are_joined_without_touching_other_groups(case):
    graph, members, seeds = case
    ends = np.searchsorted(members, np.array(inner_edges(graph, members)).reshape(-1, 2))
    groups = [np.sort(np.searchsorted(members, group)) for group in seeds]
    try:
        joined = widened(len(members), ends, np.ones(len(ends)), groups)
    except InvalidInput:
        return
    for group, wide in zip(groups, joined, strict=True):
        assert set(group.tolist()) <= set(wide.tolist())
        assert slow.is_connected(wide.tolist(), ends.tolist())
    assert sum(len(wide) for wide in joined) == len(np.unique(np.concatenate(joined)))


def test_the_path_that_joins_seeds_follows_strong_ties():
    # 1 - 2 - 3 is weak in the middle, 1 - 4 - 5 - 3 is strong
    edges = np.array([[0, 1], [1, 2], [0, 3], [3, 4], [4, 2]])
    cost = np.array([10.0, 0.1, 10.0, 10.0, 10.0])
    (joined, other) = widened(6, edges, cost, [np.array([0, 2]), np.array([5])])
    assert joined.tolist() == [0, 2, 3, 4]
    assert other.tolist() == [5]


def test_a_group_without_a_way_is_asked_first():
    # A ring of 0 1 2 3 with a bridge 4 between 0 and 2: group one would take 1 or 4, as it likes.
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [0, 4], [2, 4], [1, 4]])
    cost = np.array([9.0, 9.0, 0.1, 0.1, 1.0, 1.0, 1.0])
    one, two = widened(5, edges, cost, [np.array([0, 2]), np.array([1, 4])])
    assert one.tolist() == [0, 2, 3]
    assert two.tolist() == [1, 4]


def test_remaining_superpixels_join_their_strongest_tie():
    ends = np.array([[0, 2], [1, 2], [1, 3], [2, 3]])
    cost = np.array([3.0, 2.0, 1.0, 5.0])
    owner = attached(ends, cost, np.arange(4), np.array([0, 1, -1, -1]))
    assert owner.tolist() == [0, 1, 0, 0]
    assert attached(ends, cost, np.arange(4), np.array([0, 1, 1, -1])).tolist() == [0, 1, 1, 1]


@given(st.lists(st.floats(0, 1e12), min_size=1))
@example([2.2250738585072014e-308])
def test_capacities_fit_and_keep_their_order(costs):
    capacity = whole_capacities(np.array(costs))
    assert capacity.min() >= 1
    assert capacity.sum() < 2**31
    for (a, x), (b, y) in itertools.combinations(zip(costs, capacity.tolist(), strict=True), 2):
        assert a == b or (a < b) == (x < y) or x == y


def test_a_method_must_return_a_partition():
    """A cut method of another package is checked where it comes in."""
    problem = CutProblem(None, np.array([1, 2, 3]), [[1], [3]], None, None)
    for parts in ([[1], [3]], [[1, 2, 3]], [[1, 2], [2, 3]], [[3], [1, 2]], [[1, 2], [3, 4]], []):
        method = cut_method("wrong", label="wrong")(lambda _, parts=parts: parts)
        with pytest.raises(InvalidInput) as caught:
            method.parts(problem)
        assert caught.value.argument == "method"
    right = cut_method("right", label="right")(lambda _: [[2, 1], [3]])
    assert [part.tolist() for part in right.parts(problem)] == [[1, 2], [3]]


def test_the_methods_of_this_package_are_registered():
    ours = [m.name for m in cut_methods.values() if m.cut.__module__.startswith("napari_agglo.")]
    assert ours == ["min_cut", "seeded", "tree"]
