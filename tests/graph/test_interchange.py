"""Graphs of given weights, against means computed one by one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo import InvalidInput, RegionGraph, Session, agglomerate, region_graph

# Parallel edges and any contacts; weights of few digits, so that there are ties.
EDGES = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 40), st.integers(1, 5)).filter(
        lambda edge: edge[0] != edge[1]
    ),
    min_size=1,
    max_size=25,
)


def merges_of(edges):
    """Return the merges of weighted edges by their mean, one by one: names and priority."""
    total, merges = {}, []
    for u, v, weight, contact in edges:
        pair = (min(u, v), max(u, v))
        sum_, count = total.get(pair, (0, 0))
        total[pair] = (sum_ + weight * contact, count + contact)
    while total:
        winner, loser = min(total, key=lambda pair: (total[pair][0] / total[pair][1], pair))
        merges.append((winner, loser, total[winner, loser][0] / total[winner, loser][1] / 8))
        new = {}
        for (u, v), (sum_, count) in total.items():
            ends = sorted({winner if end == loser else end for end in (u, v)})
            if len(ends) == 2:
                before = new.get(tuple(ends), (0, 0))
                new[tuple(ends)] = (before[0] + sum_, before[1] + count)
        total = new
    return merges


@examples(60)
@given(EDGES)
def test_weights_are_merged_by_their_mean(edges):
    pairs = [edge[:2] for edge in edges]
    weights, contacts = ([edge[k] for edge in edges] for k in (2, 3))
    graph = RegionGraph.from_edges(pairs, np.array(weights) / 8, contacts=contacts)
    tree = agglomerate(graph)
    found = list(zip(graph.ids[tree.winners], graph.ids[tree.losers], strict=True))
    expected = merges_of(edges)
    assert [(int(u), int(v)) for u, v in found] == [merge[:2] for merge in expected]
    assert np.allclose(tree.priorities, [merge[2] for merge in expected], rtol=1e-9, atol=1e-9)
    assert graph.boundary_table()["faces"].sum() == sum(contacts)


def test_a_networkx_graph_goes_in_and_comes_out():
    path = nx.Graph()
    path.add_weighted_edges_from([(7, 3, 0.5), (3, 9, 30.0)])
    path.add_node(11)
    graph = RegionGraph.from_networkx(path)
    assert graph.ids.tolist() == [0, 3, 7, 9, 11]
    assert graph.boundary_mean().tolist() == [0.5, 30.0]
    again = RegionGraph.from_networkx(graph.to_networkx(), "boundary_mean", contact="faces")
    assert again.boundary_mean().tolist() == [0.5, 30.0]
    by_graph, by_pairs = agglomerate(path), agglomerate(([(7, 3), (3, 9)], [0.5, 30.0]))
    assert by_graph.segment(20).tolist() == [3, 3, 9, 11]
    assert by_pairs.segment(20).tolist() == [3, 3, 9]
    assert agglomerate(nx.MultiGraph([(1, 2, {"weight": 1.0}), (1, 2, {"weight": 2})])).heights == [
        1.5
    ]
    assert agglomerate(nx.Graph()).n_superpixels == 0


def test_own_weights_have_a_session(tmp_path):
    labels = np.array([[5, 5, 6], [8, 8, 6]])
    weights = {(5, 6): 0.25, (5, 8): 40.0, (6, 8): 60.0}
    graph = RegionGraph.from_edges(list(weights), list(weights.values()), superpixels=labels)
    assert graph.sizes.tolist() == [0, 2, 2, 2]
    tree = agglomerate(graph)
    assert tree.heights.tolist() == [0.25, 50.0]
    with Session.create(tmp_path / "a.agglo", graph, tree=tree) as session:
        session.threshold = 1.0
        assert session.labels().tolist() == [[5, 5, 5], [8, 8, 5]]
        session.merge(5, 8)
    with Session.open(tmp_path / "a.agglo") as session:
        assert session.graph.face_parts == graph.face_parts
        assert session.graph.contact_area().tolist() == [1.0, 1.0, 1.0]
        assert len(np.unique(session.labels())) == 1


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: RegionGraph.from_edges([(1, 1)], [1.0]), "edges"),
        (lambda: RegionGraph.from_edges([(0, 1)], [1.0]), "edges"),
        (lambda: RegionGraph.from_edges([1, 2], [1.0, 2.0]), "edges"),
        (lambda: RegionGraph.from_edges([(1, 2), (3,)], [1.0, 2.0]), "edges"),
        (lambda: RegionGraph.from_edges([(1.5, 2.0)], [1.0]), "edges"),
        (lambda: RegionGraph.from_edges([(1, 9)], [1.0], superpixels=np.array([1, 2])), "edges"),
        (lambda: RegionGraph.from_edges([(1, 2)], [1.0, 2.0]), "weights"),
        (lambda: RegionGraph.from_edges([(1, 2)], [-1.0]), "weights"),
        (lambda: RegionGraph.from_edges([(1, 2)], [np.nan]), "weights"),
        (lambda: RegionGraph.from_edges([(1, 2)], ["high"]), "weights"),
        (lambda: RegionGraph.from_edges([(1, 2)], [1e300]), "weights"),
        (lambda: RegionGraph.from_edges([(1, 2)], [1.0], contacts=[0]), "contacts"),
        (lambda: RegionGraph.from_edges([(1, 2)], [1.0], contacts=[1, 2]), "contacts"),
        (lambda: RegionGraph.from_networkx(nx.Graph([(1, 2)])), "graph"),
        (lambda: RegionGraph.from_networkx(nx.Graph([("a", "b")])), "graph"),
        (lambda: agglomerate(np.zeros((3, 3))), "graph"),
        (lambda: region_graph(np.array([1, 2]), np.zeros(2)).cue_index("x"), "cue"),
    ],
)
def test_refusals_name_the_argument(call, argument):
    with pytest.raises(InvalidInput) as refusal:
        call()
    assert refusal.value.argument == argument
    assert refusal.value.remedy is not None
