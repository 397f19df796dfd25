"""Neighbour lists in cache lines against sets of neighbours, contraction by contraction."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo._numba import kernel
from napari_agglo.agglomeration._edge_lists import (
    COUNT,
    FIRST,
    NEXT_LINE,
    contract_lists,
    edge_records,
    link_lists,
)
from tests.examples import examples


@kernel
def _contract(
    edge, is_large, ends, lines, nodes, table, filled, kept, absorbed, places, spare, out
):
    survivor, gone, n_parallel = contract_lists(
        edge, is_large, ends, lines, nodes, table, filled, kept, absorbed, places, spare
    )
    out[0] = survivor
    out[1] = gone
    out[2] = n_parallel


def linked(pairs, n_nodes):
    """Return the lists of a graph; node 0 has no edges, as that of a region graph."""
    edges = np.array(pairs, np.int64).reshape(-1, 2)
    return link_lists(edges, n_nodes, edge_records(len(edges)))


def listed(graph, node):
    """Return the living edges in the list of a node."""
    found, line = [], graph.nodes[node, 0]
    while line >= 0:
        found += graph.lines[line, FIRST : FIRST + graph.lines[line, COUNT]].tolist()
        line = graph.lines[line, NEXT_LINE]
    return [edge for edge in found if graph.ends[edge, 0] >= 0]


@st.composite
def graphs(draw):
    """Return the edges of a graph with a hub or without, and its number of nodes."""
    n = draw(st.integers(2, 60))
    pair = st.tuples(st.integers(1, n - 1), st.integers(1, n - 1)).filter(lambda p: p[0] < p[1])
    pairs = draw(st.sets(pair, max_size=150)) if n > 2 else set()
    if draw(st.booleans()):
        pairs |= {(1, k) for k in range(2, n)}
    return sorted(pairs), n


@examples(200)
@given(graphs(), st.booleans(), st.randoms(use_true_random=False))
def test_contractions_are_those_of_sets(drawn, is_large, random):
    pairs, n_nodes = drawn
    graph = linked(pairs, n_nodes)
    alive = {edge: frozenset(pair) for edge, pair in enumerate(pairs)}
    out = np.zeros(3, np.int64)
    while True:
        for node in range(n_nodes):
            mine = sorted(edge for edge, ends in alive.items() if node in ends)
            assert sorted(listed(graph, node)) == mine
            assert graph.nodes[node, 1] == len(mine)
        ends = {e: frozenset(graph.ends[e].tolist()) for e in range(len(pairs))}
        assert {e: pair for e, pair in ends.items() if -1 not in pair} == alive
        if not alive:
            break
        edge = random.choice(sorted(alive))
        pair = alive.pop(edge)
        degree = {node: sum(node in ends for ends in alive.values()) for node in pair}
        _contract(edge, is_large, *graph, out)
        survivor, gone, n_parallel = out.tolist()
        assert {survivor, gone} == pair
        assert degree[survivor] >= degree[gone]
        twins = {}
        for other, ends in sorted(alive.items()):
            if gone in ends:
                moved = ends - {gone} | {survivor}
                kept = [e for e, known in alive.items() if known == moved and e != other]
                if kept:
                    twins[other] = kept[0]
                    del alive[other]
                else:
                    alive[other] = moved
        found = graph.absorbed[:n_parallel].tolist(), graph.kept[:n_parallel].tolist()
        assert dict(zip(*found, strict=True)) == twins


@pytest.mark.compiled
@pytest.mark.parametrize("n_edges", [0, 1])
def test_one_kernel_serves_graphs_of_any_size(n_edges):
    # Numba compiles once for each type, and the type of an array says whether it is contiguous.
    chain = [(k, k + 1) for k in range(9)]
    assert numba.typeof(linked(chain[:n_edges], 10)) == numba.typeof(linked(chain, 10))


def test_neither_an_edge_nor_a_line_is_in_two_cache_lines():
    records = edge_records(5)
    assert records.itemsize == 32
    assert records.ctypes.data % 64 == 0
    assert linked([(1, 2)], 3).lines.ctypes.data % 64 == 0
