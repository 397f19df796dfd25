"""Graph under contraction: two neighbour lists merge in the time of the shorter one.

Strategy: an edge is two half-edges, ``2 * edge + side``, each in the doubly linked list of the node
at that end, so that it is removed in one step. One hash table from pair of nodes to edge serves the
whole graph; entries of dead pairs are never looked up again, so nothing is deleted, and the table
is refilled when it is three quarters full. When two nodes merge, the edges of the node of *smaller
degree* move to the other, so that a merge with a hub of a million neighbours costs the list of its
neighbour, not its own: the sum over all merges is O(edges log nodes).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo._numba.hash_tables import find_or_enter


class Adjacency(NamedTuple):
    """A graph under contraction.

    Invariants: two nodes have one living edge at most, and no edge joins a node to itself. Every
    living edge is in the lists of both its nodes, in ascending order of edges at first, and in the
    table. Each access to a field costs a reference count: kernels unpack the tuple before a loop.
    """

    ends: NDArray[np.int32]  # (edges, 2): the node at each end; -1 at both for an edge that is gone
    links: NDArray[np.int32]  # (edges, 2, 2): of each half-edge the next and previous, or -1
    nodes: NDArray[np.int32]  # (nodes, 2): first half-edge, or -1, and degree
    table: NDArray[np.int64]  # part of the hash and, below it, edge + 1; 0 for an empty slot
    filled: NDArray[np.int64]  # (1,): slots in use
    kept: NDArray[np.int32]  # buffer: edges that absorbed a parallel edge in the last contraction
    absorbed: NDArray[np.int32]  # buffer: the edges that they absorbed


# Columns of `links` and `nodes`.
NEXT, PREVIOUS = 0, 1
HEAD, DEGREE = 0, 1


def link(edges: NDArray[np.int64], n_nodes: int) -> Adjacency:
    """Build the lists and the table of a graph of nodes 0..`n_nodes` - 1."""
    slots = 1 << max(4, (2 * len(edges) - 1).bit_length())
    nodes = np.zeros((n_nodes, 2), np.int32)
    nodes[:, HEAD] = -1
    graph = Adjacency(
        ends=edges.astype(np.int32),
        links=np.empty((len(edges), 2, 2), np.int32),
        nodes=nodes,
        table=np.zeros(slots, np.int64),
        filled=np.zeros(1, np.int64),
        kept=np.empty(n_nodes, np.int32),
        absorbed=np.empty(n_nodes, np.int32),
    )
    _link_all(graph)
    return graph


@kernel
def _link_all(adjacency: Adjacency) -> None:
    """Build all lists and the table. No bounds checking."""
    ends, links, nodes, table, filled, _, _ = adjacency
    # Backwards, so that each list comes out in ascending order of edges.
    for edge in range(ends.shape[0] - 1, -1, -1):
        for side in range(2):
            _push(links, nodes, 2 * edge + side, np.int64(ends[edge, side]))
    fill_table(ends, table, filled)


@inlined
def _push(links: Any, nodes: Any, half: Any, node: Any) -> None:
    """Put a half-edge at the head of the list of `node`."""
    first = nodes[node, HEAD]
    links[half >> 1, half & 1, NEXT] = first
    links[half >> 1, half & 1, PREVIOUS] = -1
    if first >= 0:
        links[first >> 1, first & 1, PREVIOUS] = half
    nodes[node, HEAD] = half
    nodes[node, DEGREE] += 1


@inlined
def _take_out(links: Any, nodes: Any, half: Any, node: Any) -> None:
    """Remove a half-edge from the list of `node`."""
    before = links[half >> 1, half & 1, PREVIOUS]
    after = links[half >> 1, half & 1, NEXT]
    if before >= 0:
        links[before >> 1, before & 1, NEXT] = after
    else:
        nodes[node, HEAD] = after
    if after >= 0:
        links[after >> 1, after & 1, PREVIOUS] = before
    nodes[node, DEGREE] -= 1


@subroutine
def fill_table(ends: Any, table: Any, filled: Any) -> None:
    """Empty the table and enter all living edges."""
    table[:] = 0
    filled[0] = 0
    for edge in range(ends.shape[0]):
        if ends[edge, 0] >= 0:
            u = np.int64(ends[edge, 0])
            v = np.int64(ends[edge, 1])
            find_or_enter(edge, u, v, True, ends, table)
            filled[0] += 1


@inlined
def attach(edge: Any, u: Any, v: Any, adjacency: Adjacency) -> None:
    """Put the unused `edge` between `u` and `v`, to contract it at once.

    It is not entered in the table, as the pair is not looked up before the contraction.
    """
    adjacency.ends[edge, 0] = u
    adjacency.ends[edge, 1] = v
    _push(adjacency.links, adjacency.nodes, 2 * edge, u)
    _push(adjacency.links, adjacency.nodes, 2 * edge + 1, v)


@inlined
def contract_arrays(
    edge: Any, ends: Any, links: Any, nodes: Any, table: Any, filled: Any, kept: Any, absorbed: Any
) -> Any:
    """Merge the two nodes of `edge`; return (survivor, gone, number of parallel edges merged).

    The edge is removed. Every other edge of the removed node is moved to the survivor, or, where
    the survivor has an edge to the same neighbour, absorbed by that edge: the first entries of
    `kept` and `absorbed` are these edges, for the caller to merge their data.

    The arrays are those of an `Adjacency`, which the merge loops unpack before they begin: in the
    loop, that took a tenth of the time.
    """
    survivor = np.int64(ends[edge, 0])
    gone = np.int64(ends[edge, 1])
    _take_out(links, nodes, 2 * edge, survivor)
    _take_out(links, nodes, 2 * edge + 1, gone)
    ends[edge, 0] = -1
    ends[edge, 1] = -1
    if nodes[survivor, DEGREE] < nodes[gone, DEGREE]:
        survivor, gone = gone, survivor
    # Every edge that moves may fill a slot. Invariant: a quarter stays empty, so that searches end.
    if 4 * (filled[0] + nodes[gone, DEGREE]) > 3 * table.size:
        fill_table(ends, table, filled)
    n_parallel = 0
    half = np.int64(nodes[gone, HEAD])
    while half >= 0:
        after = np.int64(links[half >> 1, half & 1, NEXT])
        moved = half >> 1
        side = half & 1
        neighbour = np.int64(ends[moved, 1 - side])
        # The old entry of `moved` stays behind: its edge now has other ends, or none.
        twin = find_or_enter(moved, survivor, neighbour, True, ends, table)
        if twin < 0:
            filled[0] += 1
            ends[moved, side] = survivor
            _push(links, nodes, half, survivor)
        else:
            ends[moved, 0] = -1
            ends[moved, 1] = -1
            _take_out(links, nodes, half ^ 1, neighbour)
            kept[n_parallel] = twin
            absorbed[n_parallel] = moved
            n_parallel += 1
        half = after
    nodes[gone, HEAD] = -1
    nodes[gone, DEGREE] = 0
    return survivor, gone, n_parallel
