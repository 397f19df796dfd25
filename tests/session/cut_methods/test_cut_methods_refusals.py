"""Refusals of cut methods, with a remedy; and cuts that would isolate only seeds."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.agglomerate import graph_of_edges
from refusals import refuses

from napari_agglo import MeanPolicy, Session, region_graph
from napari_agglo.policy import RandomPolicy
from napari_agglo.session import CutProblem, cut_method
from napari_agglo.session._cut_methods import (
    boundary_costs,
    by_tree,
    connected_pieces,
    cut_methods,
    detached,
    min_cut,
    seeded,
    segment_of,
)


def chain(*means, faces=None):
    """Superpixels 1..n in a row, with the mean (0..255) of the boundary between each two."""
    faces = faces or [1] * len(means)
    edges = [(k, k + 1) for k in range(1, len(means) + 1)]
    sums = [2 * m * f for m, f in zip(means, faces, strict=True)]
    return graph_of_edges(len(means) + 1, edges, sums, faces)


def tree_of_chain(n):
    """1 and 2 first, then 3, 4, ... one by one: nodes n + 1 to 2 n - 1."""
    tree = {n + 1: [1, 2], **{n + k: [n + k - 1, k + 1] for k in range(2, n)}}
    return 2 * n - 1, lambda node: tree.get(node, [])


def ways(graph, members):
    node, children = tree_of_chain(len(members))
    return [
        lambda seeds: min_cut(graph, members, seeds),
        lambda seeds: seeded(graph, members, seeds),
        lambda seeds: by_tree(graph, members, seeds, node, children),
    ]


@pytest.mark.parametrize("way", [0, 1, 2])
@pytest.mark.parametrize(
    ("seeds", "refusal"),
    [
        ([], ("seeds", "put a seed into each part")),
        ([[1]], ("seeds", "put a seed into each part")),
        ([[1], []], ("seeds", "mark a superpixel, or leave the group out")),
        ([[1], [5]], ("seeds", "remove that seed, or cut the segment")),
        ([[1, 2], [3, 2]], ("seeds", "remove one of the seeds, or cut through")),
        ([[1, 3], [2]], ("seeds", "make the seeds on the far side a group")),
    ],
)
def test_seeds_that_cannot_be(way, seeds, refusal):
    graph = chain(10, 20, 30, 40)
    with refuses(*refusal):
        ways(graph, [1, 2, 3, 4])[way](seeds)


def test_messages_name_the_ids_of_the_user():
    graph = region_graph(np.array([[70, 80, 90]]), np.zeros((1, 3)))
    with refuses("seeds", "remove that seed") as caught:
        min_cut(graph, [1, 2], [[1], [3]])
    assert "Superpixel 90 " in caught.value.problem


@pytest.mark.parametrize("way", [0, 1, 2])
def test_a_segment_in_pieces(way):
    graph = chain(10, 20, 30)
    with refuses("segment", "undo the merge that joined them, or detach"):
        ways(graph, [1, 2, 4])[way]([[1], [2]])


def test_detach_refuses_what_changes_nothing():
    graph = chain(10, 20)
    for leaving, refusal in [
        ([], ("superpixels", "choose the superpixels to take out of")),
        ([1, 2], ("superpixels", "leave out those that should stay")),
        ([3], ("superpixels", "detach it from the segment that contains it")),
    ]:
        with refuses(*refusal):
            detached(graph, [1, 2], leaving)


def test_pieces_come_largest_first():
    graph = region_graph(np.array([[1, 2, 3, 3, 4]]), np.zeros((1, 5)))
    assert [p.tolist() for p in connected_pieces(graph, [1, 3, 4])] == [[3, 4], [1]]
    assert [p.tolist() for p in detached(graph, [1, 2, 3, 4], [2])] == [[3, 4], [1], [2]]


# A seed's outline is cheap because it is small, not because a boundary is there.


def test_a_cut_that_chops_off_only_a_seed_moves_away_from_it():
    graph = chain(60, 60, 70, 60, 60, faces=[9, 40, 40, 40, 9])
    plain = min_cut(graph, range(1, 7), [[1], [6]], isolating=True)
    assert sorted(len(part) for part in plain) == [1, 5], "test invalid"
    parts = min_cut(graph, range(1, 7), [[1], [6]])
    assert [part.tolist() for part in parts] == [[1, 2, 3], [4, 5, 6]]


def test_immovable_superpixels_are_refused_unless_meant():
    # The nearer to a seed, the less in contact, and no evidence anywhere.
    graph = chain(*[30] * 13, faces=[1, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3, 2, 1])
    with refuses("seeds", "put more seeds into the part to be cut off"):
        min_cut(graph, range(1, 15), [[1], [14]])
    parts = min_cut(graph, range(1, 15), [[1], [14]], isolating=True)
    assert sorted(len(part) for part in parts) == [1, 13]


def test_costs_can_be_kept_for_the_next_cut():
    graph = chain(60, 60, 200, 60)
    costs = boundary_costs(graph, segment_of(graph, range(1, 6)), "mean")
    parts = min_cut(graph, range(1, 6), [[1], [5]], costs)
    assert [part.tolist() for part in parts] == [[1, 2, 3], [4, 5]]


def test_a_seed_with_a_clear_outline_may_be_alone():
    graph = chain(250, 30, 30, 30, 30)
    parts = min_cut(graph, range(1, 7), [[1], [6]])
    assert [part.tolist() for part in parts] == [[1], [2, 3, 4, 5, 6]]
    # Costs alone are no evidence: the cut moves on to where it is cheapest but for the seed.
    costs = np.array([1.0, 90.0, 80.0, 90.0, 90.0])
    parts = min_cut(graph, range(1, 7), [[1], [6]], costs)
    assert [part.tolist() for part in parts] == [[1, 2, 3], [4, 5, 6]]


def test_a_segment_with_hardly_anything_but_seeds_is_cut():
    graph = chain(30, 40)
    assert [p.tolist() for p in min_cut(graph, [1, 2, 3], [[1], [3]])] == [[1, 2], [3]]
    assert [p.tolist() for p in min_cut(graph, [1, 2, 3], [[1, 2], [3]])] == [[1, 2], [3]]


def test_a_policy_that_knows_nothing_cuts_where_least_is_in_contact():
    graph = chain(9, 9, 9, 9, faces=[50, 50, 1, 50])
    parts = min_cut(graph, range(1, 6), [[1], [5]], RandomPolicy())
    assert [part.tolist() for part in parts] == [[1, 2, 3], [4, 5]]


WRONG_SEEDS = [
    ([[1]], "put a seed into each part"),
    ([[1], []], "mark a superpixel, or leave the group out"),
    ([[1], [4]], "remove that seed, or cut the segment"),
    ([[1, 2], [2]], "remove one of the seeds, or cut through"),
]


@pytest.mark.parametrize(("seeds", "remedy"), WRONG_SEEDS)
def test_a_method_of_another_package_gets_only_seeds_that_can_be_cut(
    seeds, remedy, tmp_path, monkeypatch
):
    calls = []
    method = cut_method("other", label="other")(calls.append)
    graph = region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.0, 0.0, 0.0, 1.0]]))
    problem = CutProblem(graph, np.array([1, 2, 3]), seeds, MeanPolicy(), None)
    with refuses("seeds", remedy):
        method.parts(problem)
    monkeypatch.setitem(cut_methods._values, "other", method)
    with Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.2
        with refuses("seeds", remedy):
            session.cut(1, seeds, "other")
        assert len(session.history) == 0
    assert not calls
