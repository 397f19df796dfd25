"""Graph under contraction for the loop of the mean: the lists of neighbours in cache lines.

A large graph is in main memory, where each access takes as long as hundreds of instructions: the
loop of the mean does little but wait. All data of an edge are in one cache line. So is a link in
the list of a node: the numbers of up to fourteen edges, and the next line. From a line, the edges,
then the places of their new pairs in the hash table, and then the edges in those places are asked
for, each all at once (`prefetch`), before the first of them is read. With a list that leads from
edge to edge, as in `Adjacency`, the whole loop takes a sixth longer on five million edges.

As in `Adjacency`, the edges of the node of smaller degree move to the other. An edge that is
absorbed by a parallel one stays in the list of its other node, without ends, until this moves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.hash_tables import find_or_enter, pair_hash
from napari_agglo._numba.prefetch import prefetch
from napari_agglo.agglomeration._adjacency import DEGREE, HEAD, fill_table

# All data of an edge that the mean needs: half a cache line.
_EDGE = np.dtype(
    [
        ("ends", np.int32, (2,)),
        ("sums", np.int64, (2,)),
        ("entered", np.float64),
    ]
)
# Columns of a line: the next line of the list, or -1; the number of its edges; the edges.
NEXT_LINE, COUNT, FIRST = 0, 1, 2
_WIDTH = 16
_ROOM = _WIDTH - FIRST
# Edges beyond which a graph is in main memory: below, asking ahead only takes time.
LARGE = 1 << 18


class EdgeLists(NamedTuple):
    """A graph under contraction.

    Invariants: two nodes have one living edge at most, and no edge joins a node to itself. Every
    living edge is in the lists of both its nodes and in the table. All lines of a list but the
    first are full, or were: edges that are gone count.
    """

    ends: NDArray[np.int32]  # (edges, 2): the node at each end; -1 at both for an edge that is gone
    lines: NDArray[np.int32]  # (lines, 16)
    nodes: NDArray[np.int32]  # (nodes, 2): first line, and degree
    table: NDArray[np.int64]  # part of the hash and, below it, edge + 1; 0 for an empty slot
    filled: NDArray[np.int64]  # (1,): slots in use
    kept: NDArray[np.int32]  # buffer: edges that absorbed a parallel edge in the last contraction
    absorbed: NDArray[np.int32]  # buffer: the edges that they absorbed
    places: NDArray[np.int64]  # buffer: places in the table
    spare: NDArray[np.int64]  # (1,): the first unused line, which leads to the next


def edge_records(n_edges: int) -> NDArray[np.void]:
    """Return records for edges, two in a cache line, and two at the least; none has ends yet.

    The column of a single record would be contiguous, and kernels be compiled for that once more.
    """
    records = _in_lines(max(n_edges, 2) * _EDGE.itemsize).view(_EDGE)
    records["ends"] = -1
    return records


def _in_lines(size: int) -> NDArray[np.uint8]:
    """Return so many zeros from the start of a cache line."""
    raw = np.zeros(size + 64, np.uint8)
    first = -raw.ctypes.data % 64
    return raw[first : first + size]


def link_lists(edges: NDArray[np.int64], n_nodes: int, records: NDArray[np.void]) -> EdgeLists:
    """Build the lists and the table of a graph of nodes 0..`n_nodes` - 1; the ends are of records.

    Lists are in ascending order of edges.
    """
    records["ends"][: len(edges)] = edges
    degrees = np.bincount(edges.reshape(-1), minlength=n_nodes)
    n_lines = np.maximum(1, -(-degrees // _ROOM))
    stops = np.cumsum(n_lines)
    room = 4 * _WIDTH * (int(n_lines.sum()) + 1)
    lines = _in_lines(room).view(np.int32).reshape(-1, _WIDTH)
    graph = EdgeLists(
        ends=records["ends"],
        lines=lines,
        nodes=np.stack([stops - n_lines, np.zeros(n_nodes, np.int64)], axis=1).astype(np.int32),
        table=np.zeros(1 << max(4, (2 * len(edges) - 1).bit_length()), np.int64),
        filled=np.zeros(1, np.int64),
        kept=np.empty(n_nodes, np.int32),
        absorbed=np.empty(n_nodes, np.int32),
        places=np.empty(_ROOM, np.int64),
        spare=np.array([len(lines) - 1]),
    )
    # The last line of a node is the first of its list, since only that one may have room.
    lines[:, NEXT_LINE] = np.arange(len(lines)) - 1
    lines[graph.nodes[:, HEAD], NEXT_LINE] = -1
    lines[-1, NEXT_LINE] = -1
    _link_all(graph)
    return graph


@kernel
def _link_all(graph: EdgeLists) -> None:
    """Enter all edges in the lists and the table. No bounds checking."""
    ends, lines, nodes, table, filled, _, _, _, _ = graph
    for edge in range(ends.shape[0]):
        if ends[edge, 0] < 0:
            continue
        for side in range(2):
            node = ends[edge, side]
            line = np.int64(nodes[node, HEAD])
            if lines[line, COUNT] == _ROOM:
                line += 1
                nodes[node, HEAD] = line
            lines[line, FIRST + lines[line, COUNT]] = edge
            lines[line, COUNT] += 1
            nodes[node, DEGREE] += 1
    fill_table(ends, table, filled)


@inlined
def _ask(
    line: Any, survivor: Any, gone: Any, ends: Any, lines: Any, nodes: Any, table: Any, places: Any
) -> None:
    """Ask for the edges of a line, then the places of their new pairs, then the edges in these."""
    mask = table.size - 1
    stop = FIRST + lines[line, COUNT]
    for k in range(FIRST, stop):
        prefetch(ends, np.int64(lines[line, k]))
    living = np.int64(0)
    for k in range(FIRST, stop):
        low = np.int64(ends[lines[line, k], 0])
        if low >= 0:
            far = np.int64(ends[lines[line, k], 1]) if low == gone else low
            place = pair_hash(min(survivor, far), max(survivor, far)) & mask
            prefetch(table, place)
            prefetch(nodes, far)
            places[living] = place
            living += 1
    for k in range(living):
        prefetch(ends, (table[places[k]] & 0xFFFFFFFF) - 1)


@inlined
def contract_lists(
    edge: Any, is_large: Any, ends: Any, lines: Any, nodes: Any, table: Any, filled: Any,
    kept: Any, absorbed: Any, places: Any, spare: Any,
) -> Any:  # fmt: skip
    """Merge the two nodes of `edge`, as `contract_arrays` of an `Adjacency` does.

    Return the survivor, the node that is gone, and the number of parallel edges merged. `is_large`
    is whether the graph is in main memory, so that asking for what will be read pays.
    """
    survivor = np.int64(ends[edge, 0])
    gone = np.int64(ends[edge, 1])
    ends[edge, 0] = -1
    ends[edge, 1] = -1
    nodes[survivor, DEGREE] -= 1
    nodes[gone, DEGREE] -= 1
    if nodes[survivor, DEGREE] < nodes[gone, DEGREE]:
        survivor, gone = gone, survivor
    # Every edge that moves may fill a slot. Invariant: a quarter stays empty, so that searches end.
    if 4 * (filled[0] + nodes[gone, DEGREE]) > 3 * table.size:
        fill_table(ends, table, filled)
    unused = spare[0]
    into = np.int64(nodes[survivor, HEAD])
    room = _ROOM - np.int64(lines[into, COUNT])
    degree = np.int64(nodes[survivor, DEGREE])
    line = np.int64(nodes[gone, HEAD])
    n_parallel = 0
    while line >= 0:
        after = np.int64(lines[line, NEXT_LINE])
        if is_large:
            prefetch(lines, after)
            _ask(line, survivor, gone, ends, lines, nodes, table, places)
        for k in range(FIRST, FIRST + lines[line, COUNT]):
            moved = np.int64(lines[line, k])
            low = np.int64(ends[moved, 0])
            if low < 0:
                continue
            side = np.int64(low != gone)
            far = np.int64(ends[moved, 1 - side])
            # The old entry of `moved` stays behind: its edge now has other ends, or none.
            twin = find_or_enter(moved, survivor, far, True, ends, table)
            if twin >= 0:
                ends[moved, 0] = -1
                ends[moved, 1] = -1
                nodes[far, DEGREE] -= 1
                kept[n_parallel] = twin
                absorbed[n_parallel] = moved
                n_parallel += 1
                continue
            filled[0] += 1
            ends[moved, side] = survivor
            degree += 1
            if room == 0:
                lines[into, COUNT] = _ROOM
                new = unused
                unused = np.int64(lines[new, NEXT_LINE])
                lines[new, NEXT_LINE] = into
                into = new
                room = np.int64(_ROOM)
            lines[into, _WIDTH - room] = moved
            room -= 1
        # Invariant: one line is spare before each of the list, whose edges need one at most.
        lines[line, NEXT_LINE] = unused
        unused = line
        line = after
    lines[into, COUNT] = _ROOM - room
    spare[0] = unused
    nodes[survivor, DEGREE] = degree
    nodes[survivor, HEAD] = into
    nodes[gone, HEAD] = -1
    nodes[gone, DEGREE] = 0
    return survivor, gone, n_parallel
