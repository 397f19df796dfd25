"""The graph that a repair works on: the regions that live where it starts, as slots.

Rows of statistics are not added up until the policy is asked: a slot has the list of its
superpixels, an edge the list of the boundaries that it is made of, and lists are joined in no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.hash_tables import find_or_enter
from napari_agglo._numba.union_find import find_root
from napari_agglo.agglomeration import Adjacency, link
from napari_agglo.graph import Division, RegionGraph
from napari_agglo.session._hierarchy.moment_queue import put_item
from napari_agglo.session._hierarchy.nodes import (
    BIRTH,
    EDIT,
    FIRST,
    LAST,
    LEVEL,
    LOW,
    PARENT,
    PRIORITY,
    SECOND,
    UNTIL,
    Nodes,
    peak_of,
    tie_of,
)

# What is known of the superpixels themselves: neighbours, and rows of statistics to add up.


@dataclass(eq=False)
class Ground:
    """Superpixels, whom each touches, and their rows.

    Rows of superpixels and boundaries that came later, by dividing a superpixel, are kept apart:
    the graph itself may be mapped from a file, and is never copied.
    """

    graph: RegionGraph
    start: NDArray[np.int64]  # of the neighbours of each superpixel in `adjacent` ...
    stop: NDArray[np.int64]  # ... and where they end
    adjacent: NDArray[np.int32]  # neighbour, boundary ...
    n_adjacent: int  # ... of which so many are in use
    more_regions: NDArray[np.int64]
    more_boundaries: NDArray[np.int64]
    row_of: NDArray[np.int64]  # of each superpixel, counted through both tables

    @classmethod
    def of(cls, graph: RegionGraph) -> Ground:
        """Return the ground of a graph."""
        n = graph.n_regions
        start = np.zeros(n + 2, np.int64)
        adjacent = np.zeros((2 * graph.n_boundaries, 2), np.int32)
        _neighbours(np.ascontiguousarray(graph.edges), start, adjacent)
        return cls(
            graph=graph,
            start=start[:-1].copy(),
            stop=start[1:].copy(),
            adjacent=adjacent,
            n_adjacent=len(adjacent),
            more_regions=np.zeros((0, graph.layout.region_width), np.int64),
            more_boundaries=np.zeros((0, graph.layout.boundary_width), np.int64),
            row_of=np.arange(n + 1),
        )

    def divide(self, division: Division) -> None:
        """Exchange the boundaries of a superpixel for those of its pieces.

        Tables of superpixels have room for the pieces. Lists of neighbours that change are written
        anew behind the others, so that the old ones are found again.
        """
        pieces = division.members
        first_row = len(self.graph.regions) + len(self.more_regions)
        first_edge = len(self.graph.boundaries) + len(self.more_boundaries)
        self.row_of[pieces] = first_row + np.arange(len(pieces))
        self.more_regions = np.concatenate([self.more_regions, division.new.regions])
        self.more_boundaries = np.concatenate([self.more_boundaries, division.new.boundaries])
        touching: dict[int, list[tuple[int, int]]] = {}
        for k, (u, v) in enumerate(division.new.edges.tolist()):
            touching.setdefault(u, []).append((v, first_edge + k))
            touching.setdefault(v, []).append((u, first_edge + k))
        for superpixel in pieces.tolist():
            touching.setdefault(superpixel, [])
        for superpixel, new in touching.items():
            if superpixel not in pieces:
                old = self.adjacent[self.start[superpixel] : self.stop[superpixel]]
                new = [*map(tuple, old[old[:, 0] != division.superpixel].tolist()), *new]
            self._write(superpixel, np.array(new, np.int32).reshape(-1, 2))

    def _write(self, superpixel: int, neighbours: NDArray[np.int32]) -> None:
        n = self.n_adjacent + len(neighbours)
        if n > len(self.adjacent):
            more = np.zeros((max(n, len(self.adjacent)), 2), np.int32)
            self.adjacent = np.concatenate([self.adjacent, more])
        self.adjacent[self.n_adjacent : n] = neighbours
        self.start[superpixel] = self.n_adjacent
        self.stop[superpixel] = self.n_adjacent = n

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What kernels take."""
        return (
            self.start,
            self.stop,
            self.adjacent,
            self.graph.regions,
            self.more_regions,
            self.graph.boundaries,
            self.more_boundaries,
            self.row_of,
        )


@kernel
def _neighbours(edges: Any, start: Any, adjacent: Any) -> None:
    """Fill `start`, which is zero, and `adjacent`. No bounds checking."""
    n = start.size - 1
    for k in range(edges.shape[0]):
        for side in range(2):
            start[edges[k, side] + 1] += 1
    for node in range(n):
        start[node + 1] += start[node]
    # `start` of a node moves on to its end, which is the start of the next.
    for k in range(edges.shape[0]):
        for side in range(2):
            at = start[edges[k, side]]
            adjacent[at, 0] = edges[k, 1 - side]
            adjacent[at, 1] = k
            start[edges[k, side]] = at + 1
    for node in range(n, 0, -1):
        start[node] = start[node - 1]
    start[0] = 0


@inlined
def add_row(rows: Any, more: Any, at: Any, sums: Any, into: Any) -> None:
    """Add row `at`, wherever it is kept, to ``sums[into]``."""
    if at < rows.shape[0]:
        for column in range(sums.shape[1]):
            sums[into, column] += rows[at, column]
    else:
        for column in range(sums.shape[1]):
            sums[into, column] += more[at - rows.shape[0], column]


@inlined
def face_count(rows: Any, more: Any, at: Any, axis: Any) -> Any:
    """Faces of a boundary across an axis."""
    if at < rows.shape[0]:
        return rows[at, axis]
    return more[at - rows.shape[0], axis]


# Columns of `slots` ...
NODE, STATUS, GROUP, LOCKED, JOINED, FIRST_LEAF, LAST_LEAF, ROWED, BAG, STAMP = range(10)
# ... what the status can be: as recorded, touched and not yet scored, touched and scored ...
CLEAN, OPEN, DIRTY = 0, 1, 2
# ... columns of `info`, of each edge, and how far its row, or that of a slot, is: summed, read off.
FIRST_LINK, LAST_LINK, EDGE_ROWED, KNOWN = 0, 1, 2, 3
SUMMED, READ = 1, 2


@dataclass(eq=False)
class Places:
    """Buffers with a place for each superpixel, used again so that no edit has to clear them."""

    slot_of: NDArray[np.int32]  # -1 but while a repair runs
    leaf_next: NDArray[np.int32]


@dataclass(eq=False)
class Working:
    """Slots and edges, as kernels take them."""

    members: NDArray[np.int32]  # superpixels
    slots: NDArray[np.int64]
    levels: NDArray[np.float64]
    ids: NDArray[np.int32]
    places: Places
    graph: Adjacency  # its last edge is free
    info: NDArray[np.int32]
    priority: NDArray[np.float64]
    chain: NDArray[np.int32]  # (boundaries, 2): boundary, next


def working_graph(
    nodes: Nodes,
    ground: Ground,
    places: Places,
    members: NDArray[np.int32],
    slot_nodes: NDArray[np.int64],
    groups: NDArray[np.int64],
    locked: NDArray[np.bool_],
) -> Working:
    """Return the graph of the regions `slot_nodes`; ``places.slot_of`` says which holds whom.

    Regions of different groups, and locked ones, have no edges.
    """
    n = len(slot_nodes)
    slots = np.zeros((n, 10), np.int64)
    slots[:, NODE] = slot_nodes
    slots[:, GROUP] = groups
    slots[:, LOCKED] = locked
    slots[:, JOINED] = slots[:, BAG] = np.arange(n)
    slots[:, FIRST_LEAF] = slots[:, LAST_LEAF] = -1
    _chain_leaves(members, places.slot_of, places.leaf_next, slots)
    most = 0
    if n > len(np.unique(groups)):  # else no two of them could merge
        most = int((ground.stop[members] - ground.start[members]).sum()) // 2
    ends = np.zeros((most, 2), np.int64)
    info = np.zeros((most + 1, 4), np.int32)
    chain = np.zeros((most, 2), np.int32)
    table = np.zeros(1 << max(3, (2 * most).bit_length()), np.int64)
    n_edges = 0
    if most:
        n_edges = _find_edges(
            members, places.slot_of, slots, ground.start, ground.stop, ground.adjacent,
            ends, info, chain, table,
        )  # fmt: skip
    info[n_edges] = (-1, -1, READ, 0)
    adjacency = link(ends[:n_edges], n)
    graph = adjacency._replace(  # the last edge is none
        ends=np.concatenate([adjacency.ends, np.full((1, 2), -1, np.int32)]),
        links=np.concatenate([adjacency.links, np.zeros((1, 2, 2), np.int32)]),
    )
    return Working(
        members=members,
        slots=slots,
        levels=nodes.scales[slot_nodes, LEVEL],
        ids=nodes.links[slot_nodes, LOW],
        places=places,
        graph=graph,
        info=info[: n_edges + 1],
        priority=np.zeros(n_edges + 1),
        chain=chain,
    )


@kernel
def number_regions(regions: Any, number: Any, slot_of: Any, out: Any) -> Any:
    """Give regions numbers, write those of superpixels to `slot_of` and the regions to `out`.

    `number` is a zeroed buffer of nodes. Returns how many there are. No bounds checking.
    """
    n = 0
    for superpixel in range(1, regions.size):
        node = regions[superpixel]
        if number[node] == 0:
            out[n] = node
            n += 1
            number[node] = n
        slot_of[superpixel] = number[node] - 1
    return n


@kernel
def claim_leaves(slot_nodes: Any, links: Any, stack: Any, slot_of: Any, members: Any) -> Any:
    """Say of each leaf of each node which slot it is in, list it, and return how many there are.

    No bounds checking.
    """
    n = 0
    for slot in range(slot_nodes.size):
        depth = 1
        stack[0] = slot_nodes[slot]
        while depth > 0:
            depth -= 1
            at = np.int64(stack[depth])
            if links[at, FIRST] < 0:
                members[n] = links[at, LOW]
                slot_of[links[at, LOW]] = slot
                n += 1
            else:
                stack[depth] = links[at, FIRST]
                stack[depth + 1] = links[at, SECOND]
                depth += 2
    return n


@kernel
def _chain_leaves(members: Any, slot_of: Any, leaf_next: Any, slots: Any) -> None:
    """List the superpixels of each slot. No bounds checking."""
    for k in range(members.size):
        superpixel = members[k]
        slot = slot_of[superpixel]
        leaf_next[superpixel] = -1
        if slots[slot, FIRST_LEAF] < 0:
            slots[slot, FIRST_LEAF] = superpixel
        else:
            leaf_next[slots[slot, LAST_LEAF]] = superpixel
        slots[slot, LAST_LEAF] = superpixel


@kernel
def _find_edges(
    members: Any, slot_of: Any, slots: Any, start: Any, stop: Any, adjacent: Any,
    ends: Any, info: Any, chain: Any, table: Any,
) -> Any:  # fmt: skip
    """Find the edges between slots and what each is made of; return how many there are.

    No bounds checking.
    """
    n_edges = np.int64(0)
    n_links = 0
    for k in range(members.size):
        superpixel = members[k]
        slot = np.int64(slot_of[superpixel])
        if slots[slot, LOCKED] != 0:
            continue
        for at in range(start[superpixel], stop[superpixel]):
            neighbour = adjacent[at, 0]
            other = np.int64(slot_of[neighbour])
            if neighbour < superpixel or other < 0 or other == slot or slots[other, LOCKED] != 0:
                continue
            if slots[slot, GROUP] != slots[other, GROUP]:
                continue
            u = min(slot, other)
            v = max(slot, other)
            edge = find_or_enter(n_edges, u, v, False, ends, table)
            chain[n_links, 0] = adjacent[at, 1]
            chain[n_links, 1] = -1
            if edge < 0:
                edge = n_edges
                n_edges += 1
                ends[edge, 0] = u
                ends[edge, 1] = v
                info[edge, FIRST_LINK] = n_links
            else:
                chain[info[edge, LAST_LINK], 1] = n_links
            info[edge, LAST_LINK] = n_links
            n_links += 1
    return n_edges


@inlined
def find_slot(slot: Any, slots: Any) -> Any:
    """Return the slot that holds what was in `slot`."""
    return find_root(np.int64(slot), slots[:, JOINED])


@inlined
def sum_edge(edge: Any, info: Any, chain: Any, ground: Any, boundaries: Any) -> None:
    """Add up the row of an edge, unless that is done."""
    if info[edge, EDGE_ROWED] > 0:
        return
    rows = ground[5]
    more = ground[6]
    for column in range(boundaries.shape[1]):
        boundaries[edge, column] = 0
    at = np.int64(info[edge, FIRST_LINK])
    while at >= 0:
        add_row(rows, more, np.int64(chain[at, 0]), boundaries, edge)
        at = np.int64(chain[at, 1])
    info[edge, EDGE_ROWED] = SUMMED


@inlined
def sum_slot(
    slot: Any, slots: Any, slot_of: Any, leaf_next: Any, ground: Any, regions: Any, ndim: Any
) -> None:
    """Add up the row of a slot, unless that is done: faces within it are contact no more."""
    if slots[slot, ROWED] > 0:
        return
    start = ground[0]
    stop = ground[1]
    adjacent = ground[2]
    for column in range(regions.shape[1]):
        regions[slot, column] = 0
    superpixel = slots[slot, FIRST_LEAF]
    while superpixel >= 0:
        add_row(ground[3], ground[4], ground[7][superpixel], regions, slot)
        for at in range(start[superpixel], stop[superpixel]):
            other = slot_of[adjacent[at, 0]]
            if other >= 0 and find_slot(other, slots) == slot:
                for axis in range(ndim):
                    faces = face_count(ground[5], ground[6], np.int64(adjacent[at, 1]), axis)
                    regions[slot, 1 + 2 * ndim + axis] -= faces
        superpixel = np.int64(leaf_next[superpixel])
    slots[slot, ROWED] = SUMMED


# What regions wait for: their recorded end, or the end of what is recorded of them.


@inlined
def slot_item(slot: Any, edges: Any) -> Any:
    """Return the item of the queue that stands for a slot; the edges come first."""
    return edges[0].shape[0] + slot


@inlined
def partner_of(slot: Any, nodes: Any, work: Any) -> Any:
    """Return the slot with which a clean one is recorded to merge, or -1 if that is not there."""
    links, scales, _ = nodes
    slots, _, _, slot_of, _ = work
    node = slots[slot, NODE]
    up = np.int64(links[node, PARENT])
    nowhere = np.int64(-1)
    if up < 0 or scales[node, UNTIL] < np.inf or links[up, EDIT] >= 0:
        return nowhere
    partner = np.int64(links[up, FIRST] if links[up, SECOND] == node else links[up, SECOND])
    start = slot_of[links[partner, LOW]]
    if links[partner, PARENT] != up or scales[partner, UNTIL] < np.inf or start < 0:
        return nowhere
    other = find_slot(start, slots)
    if slots[other, NODE] != partner or slots[other, STATUS] != CLEAN:
        return nowhere
    if slots[other, LOCKED] != 0 or slots[other, GROUP] != slots[slot, GROUP]:
        return nowhere
    return other


@kernel
def wait_for(slot: Any, node: Any, present: Any, nodes: Any, edges: Any, queue: Any) -> None:
    """Let a slot wait for the moment at which a node was made.

    If its regions are not both `present`, that is the last moment at which they can be: merges of
    one peak hold one another, and the outer may have the smaller key.
    """
    links, scales, _ = nodes
    item = slot_item(slot, edges)
    if links[node, EDIT] >= 0:
        put_item(item, scales[node, BIRTH], np.inf, LAST, np.inf, LAST, queue)
        return
    peak, peak_tie = peak_of(node, links, scales)
    priority = scales[node, PRIORITY] if present else np.inf
    put_item(item, scales[node, LEVEL], peak, peak_tie, priority, tie_of(node, links), queue)


@kernel
def expect(slot: Any, nodes: Any, work: Any, edges: Any, queue: Any) -> None:
    """Let a recorded region wait for its recorded end, or for the end of what is recorded.

    Where an edit made that end, it happens anew; then it shows whether it is one again.
    """
    links, scales, _ = nodes
    node = work[0][slot, NODE]
    up = np.int64(links[node, PARENT])
    if scales[node, UNTIL] < np.inf:
        put_item(slot_item(slot, edges), scales[node, UNTIL], np.inf, LAST, np.inf, LAST, queue)
    elif up >= 0:
        wait_for(slot, up, partner_of(slot, nodes, work) >= 0, nodes, edges, queue)
