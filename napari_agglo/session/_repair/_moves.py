"""What a repair does to its working graph: ask the policy, unite two regions, let them wait.

All take the same groups of arrays, which `Repair` puts together: `nodes` (links, scales, sizes),
`work` (slots, levels, ids, slot_of, leaf_next), `graph` (an `Adjacency`), `edges` (info, priority,
chain), `queue`, `cuts` (the arrays of the bags, and the scale of each edit), `ground`, `policy` (a
`Scoring`, then a `FeatureState`), `log` (log, logged, state) and `buffers`. No bounds are checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._jit import inlined, kernel
from napari_agglo.agglomeration import HEAD, NEXT, attach, contract, find_edge
from napari_agglo.features import fill_edge, fill_node
from napari_agglo.graph import merge_boundaries, merge_regions
from napari_agglo.policy import CHUNK, RANDOM, score_chunk
from napari_agglo.session._repair._bags import N_CUTS, apart_until, merge_bags
from napari_agglo.session._repair._expect import slot_item
from napari_agglo.session._repair._growth import N_ASKED
from napari_agglo.session._repair._nodes import LEVEL, LOW, peak_of
from napari_agglo.session._repair._queue import put_item, remove_item
from napari_agglo.session._repair._working import (
    BAG,
    DIRTY,
    EDGE_ROWED,
    FIRST_LEAF,
    FIRST_LINK,
    JOINED,
    KNOWN,
    LAST_LEAF,
    LAST_LINK,
    NODE,
    READ,
    ROWED,
    STATUS,
    SUMMED,
    sum_edge,
    sum_slot,
)

# Where a policy has these.
_KIND, _SCORES, _REGIONS, _BOXES, _BOUNDARIES, _LAYOUT, _NODE_BLOCK = 0, 13, 14, 15, 16, 17, 20


@inlined
def ask(
    wanted: Any, n: Any, work: Any, graph: Any, edges: Any, ground: Any, policy: Any, log: Any,
    batch: Any,
) -> None:  # fmt: skip
    """Ask the policy about those of the first `n` of `wanted` edges of which it was not asked."""
    slots, _, ids, slot_of, leaf_next = work
    info, priority, chain = edges
    ends = graph[0]
    regions = policy[_REGIONS]
    boundaries = policy[_BOUNDARIES]
    ndim = policy[_LAYOUT][0]
    scores = policy[_SCORES]
    learned = policy[_NODE_BLOCK].size > 0
    asked = 0
    for k in range(n):
        edge = wanted[k]
        if info[edge, KNOWN] == 0:
            batch[asked] = edge
            asked += 1
            if policy[_KIND] != RANDOM and info[edge, EDGE_ROWED] != READ:
                sum_edge(edge, info, chain, ground, boundaries)
                if learned:
                    fill_edge(edge, *policy[_REGIONS:])
                info[edge, EDGE_ROWED] = READ
            if learned:
                for side in range(2):
                    slot = np.int64(ends[edge, side])
                    if slots[slot, ROWED] != READ:
                        sum_slot(slot, slots, slot_of, leaf_next, ground, regions, ndim)
                        fill_node(slot, *policy[_REGIONS:])
                        slots[slot, ROWED] = READ
    for start in range(0, asked, CHUNK):
        m = min(CHUNK, asked - start)
        score_chunk(batch, start, m, ends, ids, *policy)
        for k in range(m):
            priority[batch[start + k]] = scores[k]
            info[batch[start + k], KNOWN] = 1
    log[2][N_ASKED] += asked


@inlined
def apart(u: Any, v: Any, level: Any, newer_than: Any, nodes: Any, work: Any, cuts: Any) -> Any:
    """Up to which level cuts keep two slots apart, if that is above `level`."""
    slots = work[0]
    sizes = nodes[2]
    return apart_until(
        slots[u, BAG], slots[v, BAG], sizes[slots[u, NODE]], sizes[slots[v, NODE]],
        level, newer_than, cuts[5], cuts[0], cuts[1], cuts[2], cuts[3],
    )  # fmt: skip


@inlined
def want_boundaries(
    slot: Any, all_of_them: Any, nodes: Any, work: Any, graph: Any, queue: Any, cuts: Any,
    wanted: Any, floors: Any,
) -> Any:  # fmt: skip
    """List the boundaries of a slot that should wait, all or those with dirty regions.

    Writes the level below which each cannot come, too, and returns how many there are.
    """
    slots, levels, _, _, _ = work
    ends, links, lists = graph[0], graph[1], graph[2]
    place = queue[3]
    n = 0
    half = np.int64(lists[slot, HEAD])
    while half >= 0:
        edge = half >> 1
        other = np.int64(ends[edge, 1 - (half & 1)])
        if place[edge] < 0 and (all_of_them or slots[other, STATUS] == DIRTY):
            level = max(levels[slot], levels[other])
            end = apart(slot, other, level, -1, nodes, work, cuts)
            if end < np.inf:
                wanted[n] = edge
                floors[n] = max(level, end)
                n += 1
        half = np.int64(links[edge, half & 1, NEXT])
    return n


@inlined
def tie_of_edge(edge: Any, work: Any, graph: Any) -> Any:
    """Return the ids of the two regions of an edge as one number, the smaller first."""
    ids = work[2]
    a = np.int64(ids[graph[0][edge, 0]])
    b = np.int64(ids[graph[0][edge, 1]])
    return min(a, b) << 32 | max(a, b)


@kernel
def put_boundary(
    edge: Any, floor: Any, nodes: Any, work: Any, graph: Any, edges: Any, queue: Any
) -> None:
    """Let a boundary wait: until its own key, and until the peaks of its regions at least."""
    links, scales, _ = nodes
    priority = edges[1][edge]
    tie = tie_of_edge(edge, work, graph)
    level = max(priority, floor)
    peak = priority
    peak_tie = tie
    for side in range(2):
        node = work[0][graph[0][edge, side], NODE]
        top, top_tie = peak_of(node, links, scales)
        if scales[node, LEVEL] == level and (top, top_tie) > (peak, peak_tie):
            peak = top
            peak_tie = top_tie
    put_item(edge, level, peak, peak_tie, priority, tie, queue)


@inlined
def _absorb_edge(into: Any, other: Any, edges: Any, queue: Any, ground: Any, policy: Any) -> None:
    """Add what an edge is made of to a parallel one."""
    info, _, chain = edges
    boundaries = policy[_BOUNDARIES]
    remove_item(other, queue)
    if info[into, EDGE_ROWED] > 0:
        sum_edge(other, info, chain, ground, boundaries)
        merge_boundaries(boundaries, into, other)
        info[into, EDGE_ROWED] = SUMMED
    chain[info[into, LAST_LINK], 1] = info[other, FIRST_LINK]
    info[into, LAST_LINK] = info[other, LAST_LINK]


@inlined
def unite(
    u: Any, v: Any, node: Any, nodes: Any, work: Any, graph: Any, edges: Any, queue: Any,
    cuts: Any, ground: Any, policy: Any,
) -> Any:  # fmt: skip
    """Make one slot, holding `node`, of two; none of its boundaries is known or waits any more."""
    slots, levels, ids, slot_of, leaf_next = work
    ends, elinks, lists, table, filled, kept, absorbed = graph
    info, _, chain = edges
    edge = find_edge(u, v, ends, table)
    if edge < 0:
        edge = np.int64(ends.shape[0] - 1)
        attach(edge, u, v, ends, elinks, lists)
    remove_item(edge, queue)
    remove_item(slot_item(u, edges), queue)
    remove_item(slot_item(v, edges), queue)
    ndim = policy[_LAYOUT][0]
    regions = policy[_REGIONS]
    rows = slots[u, ROWED] > 0 or slots[v, ROWED] > 0
    if rows:
        sum_edge(edge, info, chain, ground, policy[_BOUNDARIES])
        for side in range(2):
            slot = v if side else u
            sum_slot(slot, slots, slot_of, leaf_next, ground, regions, ndim)
    into, gone, n_parallel = contract(edge, ends, elinks, lists, table, filled, kept, absorbed)
    slots[gone, JOINED] = into
    leaf_next[slots[into, LAST_LEAF]] = slots[gone, FIRST_LEAF]
    slots[into, LAST_LEAF] = slots[gone, LAST_LEAF]
    if rows:
        merge_regions(regions, policy[_BOXES], into, gone, policy[_BOUNDARIES], edge, ndim)
        slots[into, ROWED] = SUMMED
    for k in range(n_parallel):
        _absorb_edge(np.int64(kept[k]), np.int64(absorbed[k]), edges, queue, ground, policy)
    bags, entries, btable, tops, used, _ = cuts
    bag = slots[into, BAG]
    other = slots[gone, BAG]
    if bags[bag, N_CUTS] < bags[other, N_CUTS]:
        bag, other = other, bag
    merge_bags(bag, other, bags, entries, btable, tops, used)
    slots[into, BAG] = bag
    half = np.int64(lists[into, HEAD])
    while half >= 0:
        remove_item(half >> 1, queue)
        info[half >> 1, KNOWN] = 0
        half = np.int64(elinks[half >> 1, half & 1, NEXT])
    slots[into, NODE] = node
    ids[into] = nodes[0][node, LOW]
    levels[into] = nodes[1][node, LEVEL]
    return into
