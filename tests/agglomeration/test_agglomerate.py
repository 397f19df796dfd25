"""The merge loops against looking at all boundaries each time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles.agglomerate import graph_of_edges, mean_score, merge_naively, random_score
from refusals import refuses

from napari_agglo import Cancelled, InvalidInput, agglomerate, region_graph
from napari_agglo.agglomeration import _agglomerate, merge_greedily
from napari_agglo.errors import SetOption
from napari_agglo.graph import contracted
from napari_agglo.policy import MeanPolicy, RandomPolicy


@st.composite
def graphs(draw, most=12, values=4):
    """Draw small graphs with few different values, so that there are ties everywhere."""
    n = draw(st.integers(1, most))
    pairs = [(u, v) for u in range(1, n + 1) for v in range(u + 1, n + 1)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    faces = draw(st.lists(st.integers(1, 3), min_size=len(edges), max_size=len(edges)))
    values = draw(st.lists(st.integers(0, values), min_size=len(edges), max_size=len(edges)))
    sums = [60 * value * face for value, face in zip(values, faces, strict=True)]
    return graph_of_edges(n, edges, sums, faces)


def constraints(n):
    pairs = st.tuples(st.integers(1, n), st.integers(1, n)).filter(lambda p: p[0] != p[1])
    links = st.lists(pairs, max_size=4) if n > 1 else st.just([])
    return st.tuples(links, st.lists(st.integers(1, n), max_size=2))


def as_list(merges):
    return list(
        zip(
            merges.winners.tolist(),
            merges.losers.tolist(),
            merges.priorities.tolist(),
            strict=True,
        )
    )


@given(graphs())
def test_mean_equals_the_naive_order_merge_for_merge(graph):
    assert as_list(merge_greedily(graph, MeanPolicy())) == merge_naively(graph)[0]


@given(graphs())
def test_the_general_loop_gives_the_same_tree_for_the_mean(graph):
    merges = merge_greedily(graph, MeanPolicy(), rescore=True)
    assert as_list(merges) == merge_naively(graph, mean_score)[0]


@given(graphs(), st.integers(0, 2**32 - 1))
def test_random_equals_the_naive_order(graph, seed):
    merges = merge_greedily(graph, RandomPolicy(seed))
    assert as_list(merges) == merge_naively(graph, random_score(seed))[0]


@given(graphs(), st.data(), st.booleans())
def test_constraints_hold_and_change_nothing_else(graph, data, rescore):
    cannot_link, locked = data.draw(constraints(graph.n_regions))
    merges = merge_greedily(
        graph, MeanPolicy(), cannot_link=cannot_link, locked=locked, rescore=rescore
    )
    assert as_list(merges) == merge_naively(graph, mean_score, cannot_link, locked)[0]
    region = np.arange(graph.n_regions + 1)
    for winner, loser in zip(merges.winners, merges.losers, strict=True):
        region[region == loser] = winner
    assert all(region[a] != region[b] for a, b in cannot_link)
    assert all((region == region[k]).sum() == 1 for k in locked)


@given(graphs(), st.integers(1, 5), st.booleans())
def test_slices_do_not_show(graph, size, rescore):
    whole = merge_greedily(graph, MeanPolicy(), rescore=rescore)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_agglomerate, "_SLICE", size)
        sliced = merge_greedily(graph, MeanPolicy(), rescore=rescore)
    assert as_list(sliced) == as_list(whole)


@given(graphs())
def test_the_graph_is_not_changed(graph):
    before = [a.copy() for a in (graph.edges, graph.regions, graph.boundaries, graph.boxes)]
    merge_greedily(graph, MeanPolicy())
    merge_greedily(graph, RandomPolicy(3))
    for was, now in zip(
        before, (graph.edges, graph.regions, graph.boundaries, graph.boxes), strict=True
    ):
        assert np.array_equal(was, now)


@given(st.integers(0, 2**32 - 1))
def test_statistics_in_the_general_loop_are_those_of_the_merged_pixels(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(1, 8, (4, 4, 3))
    graph = region_graph(labels, {"boundary": rng.random((4, 4, 3)), "b": rng.random((4, 4, 3))})
    policy = RandomPolicy(seed)
    stop = int(rng.integers(1, graph.n_regions))
    state = _agglomerate.rescoring_state(
        graph, graph.edges, np.zeros(graph.n_boundaries, bool), policy
    )
    adjacency, _, _, _, features, ids = state
    winners, losers = np.zeros((2, graph.n_regions), np.int64)
    priorities = np.zeros(graph.n_regions)
    done = _agglomerate.merge_by_rescoring(*state, winners, losers, priorities, 0, stop)
    regions, boxes, rows = features.regions, features.boxes, features.boundaries
    lut = np.arange(graph.n_regions + 1)
    for k in range(done - 1, -1, -1):
        lut[losers[k]] = lut[winners[k]]
    expected = contracted(graph, lut)
    ends = adjacency.ends
    node_of = {int(ids[node]): node for node in set(ends[ends[:, 0] >= 0].ravel().tolist())}
    kept = np.unique(lut)
    for dense, region in enumerate(kept.tolist()):
        if region in node_of:
            assert np.array_equal(regions[node_of[region]], expected.regions[dense])
            assert np.array_equal(boxes[node_of[region]], expected.boxes[dense])
    found = {
        tuple(sorted(ids[pair].tolist())): row
        for pair, row in zip(ends, rows, strict=True)
        if pair[0] >= 0
    }
    assert len(found) == expected.n_boundaries
    for (u, v), row in zip(kept[expected.edges].tolist(), expected.boundaries, strict=True):
        assert np.array_equal(found[u, v], row)


@given(graphs(values=200), st.randoms(use_true_random=False))
def test_renumbering_gives_the_same_tree_where_no_tie_is_broken(graph, random):
    merges, tied = merge_naively(graph)
    assume(not tied)
    n = graph.n_regions
    new = [0, *random.sample(range(1, n + 1), n)]
    edges = [tuple(sorted((new[u], new[v]))) for u, v in graph.edges.tolist()]
    column = graph.layout.boundary_sums(0).start
    other = graph_of_edges(n, edges, graph.boundaries[:, column], graph.boundaries[:, 0])
    renumbered = merge_greedily(other, MeanPolicy())
    assert renumbered.priorities.tolist() == [priority for *_, priority in merges]

    def partitions(sequence, name):
        members = {k: frozenset([name[k]]) for k in range(1, n + 1)}
        for winner, loser, _ in sequence:
            members[winner] |= members.pop(loser)
            yield frozenset(members.values())

    assert list(partitions(merges, new)) == list(
        partitions(as_list(renumbered), list(range(n + 1)))
    )


@pytest.mark.parametrize("hub", ["first", "middle", "last"])
@pytest.mark.parametrize("order", ["ascending", "descending", "equal"])
def test_a_star_collapses_whatever_the_hub_is_called(hub, order):
    n = 60
    centre = {"first": 1, "middle": n // 2, "last": n}[hub]
    leaves = [k for k in range(1, n + 1) if k != centre]
    edges = [tuple(sorted((k, centre))) for k in leaves]
    sums = {
        "ascending": range(1, n),
        "descending": range(n - 1, 0, -1),
        "equal": [7] * (n - 1),
    }[order]
    graph = graph_of_edges(n, edges, list(sums), [1] * (n - 1))
    assert as_list(merge_greedily(graph, MeanPolicy())) == merge_naively(graph)[0]


def test_the_random_policy_depends_on_its_seed_alone():
    rng = np.random.default_rng(0)
    graph = region_graph(rng.integers(1, 30, (8, 8)), rng.random((8, 8)))
    one, again, other = (agglomerate(graph, "random", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.priorities, again.priorities)
    assert not np.array_equal(one.priorities, other.priorities)
    assert 0 <= one.priorities.min() <= one.priorities.max() < 1


def test_the_mean_of_another_cue():
    graph = region_graph(np.array([1, 2, 3]), {"a": np.array([0, 0, 1.0]), "b": np.eye(3)[0]})
    assert agglomerate(graph, MeanPolicy("a")).segment(0.1).tolist() == [1, 1, 3]
    assert agglomerate(graph, MeanPolicy("b")).segment(0.1).tolist() == [1, 2, 2]
    with refuses("cue", SetOption("cues", None, "boundary")):
        agglomerate(graph)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"policy": "median"}, ("policy", "pass one of these names, a function, or")),
        ({"policy": "random", "seed": -1}, ("seed", SetOption("seed", 0))),
        ({"cannot_link": [(1, 1)]}, ("cannot_link", "remove entries that are not pairs")),
        ({"cannot_link": [1, 2]}, ("cannot_link", "remove entries that are not pairs")),
        ({"cannot_link": [(1.5, 2)]}, ("cannot_link", "use the ids of the label image")),
        ({"locked": 5}, ("locked", SetOption("locked", [5]))),
        ({"cannot_link": [(1, 9)]}, ("cannot_link", "use the ids of the label image")),
        ({"locked": [0]}, ("locked", "use the ids of the label image")),
        ({"locked": [-3]}, ("locked", "use the ids of the label image")),
    ],
)
def test_refusals(options, refusal):
    graph = region_graph(np.array([1, 2]), np.zeros(2))
    with refuses(*refusal):
        agglomerate(graph, **options)


@pytest.mark.parametrize("policy", ["mean", "random"])
def test_cancel_comes_through(policy, monkeypatch):
    monkeypatch.setattr(_agglomerate, "_SLICE", 3)
    graph = region_graph(np.arange(1, 65).reshape(8, 8), np.zeros((8, 8)))
    seen = []

    def stop(progress):
        seen.append(progress.done)
        if progress.fraction >= 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        agglomerate(graph, policy, progress=stop)
    assert seen == sorted(seen)
    assert 0 < seen[-1] < 63


@pytest.mark.parametrize(
    "labels", [np.zeros((2, 2), int), np.ones((2, 2), int), np.ones((0, 3), int)]
)
def test_nothing_to_merge(labels):
    for policy in ("mean", "random"):
        tree = agglomerate(region_graph(labels, np.zeros(labels.shape)), policy)
        assert tree.n_merges == 0
        assert np.array_equal(tree.segment(1.0), labels)


def test_arguments_that_are_no_graph_are_refused():
    with pytest.raises(InvalidInput) as refusal:
        agglomerate(np.array([1, 2]))
    assert refusal.value.argument == "graph"
    assert "region_graph(superpixels, cues)" in str(refusal.value.remedy)


def test_two_threads_at_once_do_not_disturb_each_other():
    from concurrent.futures import ThreadPoolExecutor

    rng = np.random.default_rng(0)
    graphs = [region_graph(rng.integers(1, 60, (12, 12)), rng.random((12, 12))) for _ in range(4)]
    alone = [agglomerate(graph).priorities for graph in graphs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(agglomerate, [graph for graph in graphs for _ in range(5)]))
    for k, tree in enumerate(together):
        assert np.array_equal(tree.priorities, alone[k // 5])
