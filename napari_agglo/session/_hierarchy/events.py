"""Edits that happen again during a repair: merges between two superpixels, and parts made whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo.agglomeration import HEAD, NEXT, attach, contract, find_edge
from napari_agglo.features import NDIM, fill_edge, fill_node
from napari_agglo.graph import merge_boundaries, merge_regions
from napari_agglo.policy import CHUNK, PYTHON, RANDOM, score_chunk
from napari_agglo.session._edits import Cut, Ids, Merge
from napari_agglo.session._hierarchy.fences import (
    CUT,
    FIRST_CUT,
    N_CUTS,
    NEXT_CUT,
    Constraints,
    apart_until,
    merge_bags,
)
from napari_agglo.session._hierarchy.moment_queue import put_item, remove_item
from napari_agglo.session._hierarchy.nodes import LAST, LEVEL, LOW, N_ASKED, peak_of
from napari_agglo.session._hierarchy.working_graph import (
    BAG,
    DIRTY,
    EDGE_ROWED,
    FIRST_LEAF,
    FIRST_LINK,
    GROUP,
    JOINED,
    KNOWN,
    LAST_LEAF,
    LAST_LINK,
    LOCKED,
    NODE,
    READ,
    ROWED,
    STAMP,
    STATUS,
    SUMMED,
    find_slot,
    slot_item,
    sum_edge,
    sum_slot,
)

# What a repair does to its working graph: ask the policy, unite two regions, let them wait.
#
# All take the same groups of arrays, which `Repair` puts together: `nodes` (links, scales, sizes),
# `work` (slots, levels, ids, slot_of, leaf_next), `graph` (an `Adjacency`), `edges` (info,
# priority, chain), `queue`, `cuts` (the arrays of the bags, and the scale of each edit), `ground`,
# `policy` (a `Scoring` and a `FeatureState`), `log` (log, logged, state) and `buffers`. No bounds
# are checked.


@inlined
def ask(
    wanted: Any, n: Any, work: Any, graph: Any, edges: Any, ground: Any, policy: Any, log: Any,
    batch: Any,
) -> None:  # fmt: skip
    """Ask the policy about those of the first `n` of `wanted` edges of which it was not asked."""
    slots, _, ids, slot_of, leaf_next = work
    info, priority, chain = edges
    ends = graph[0]
    scoring, features = policy
    regions = features.regions
    boundaries = features.boundaries
    ndim = features.layout[NDIM]
    scores = scoring.scores
    learned = features.node_block.size > 0
    reads_regions = learned or scoring.kind == PYTHON
    asked = 0
    for k in range(n):
        edge = wanted[k]
        if info[edge, KNOWN] == 0:
            batch[asked] = edge
            asked += 1
            if scoring.kind != RANDOM and info[edge, EDGE_ROWED] != READ:
                sum_edge(edge, info, chain, ground, boundaries)
                if learned:
                    fill_edge(edge, features)
                info[edge, EDGE_ROWED] = READ
            if reads_regions:
                for side in range(2):
                    slot = np.int64(ends[edge, side])
                    if slots[slot, ROWED] != READ:
                        sum_slot(slot, slots, slot_of, leaf_next, ground, regions, ndim)
                        if learned:
                            fill_node(slot, features)
                        slots[slot, ROWED] = READ
    for start in range(0, asked, CHUNK):
        m = min(CHUNK, asked - start)
        score_chunk(batch, start, m, ends, ids, scoring, features)
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
    boundaries = policy[1].boundaries
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
    ends, elinks, lists, _, _, kept, absorbed = graph
    info, _, chain = edges
    edge = find_edge(u, v, graph)
    if edge < 0:
        edge = np.int64(ends.shape[0] - 1)
        attach(edge, u, v, graph)
    remove_item(edge, queue)
    remove_item(slot_item(u, edges), queue)
    remove_item(slot_item(v, edges), queue)
    features = policy[1]
    ndim = features.layout[NDIM]
    regions = features.regions
    boundaries = features.boundaries
    rows = slots[u, ROWED] > 0 or slots[v, ROWED] > 0
    if rows:
        sum_edge(edge, info, chain, ground, boundaries)
        for side in range(2):
            slot = v if side else u
            sum_slot(slot, slots, slot_of, leaf_next, ground, regions, ndim)
    into, gone, n_parallel = contract(edge, graph)
    slots[gone, JOINED] = into
    leaf_next[slots[into, LAST_LEAF]] = slots[gone, FIRST_LEAF]
    slots[into, LAST_LEAF] = slots[gone, LAST_LEAF]
    if rows:
        merge_regions(regions, features.boxes, into, gone, boundaries, edge, ndim)
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


# Columns of `events`: which edit, what it does, and to whom: two superpixels, or a range of the
# members of parts; and whether more of that part lies where this repair does not look.
WHICH, KIND, FROM, TO, PARTIAL = 0, 1, 2, 3, 4
JOIN, ASSEMBLE = 0, 1


@inlined
def may_join(u: Any, v: Any, scale: Any, edit: Any, nodes: Any, work: Any, cuts: Any) -> Any:
    """Whether an edit may join two slots: no newer cut and no lock keeps them apart."""
    slots = work[0]
    if slots[u, LOCKED] != 0 or slots[v, LOCKED] != 0 or slots[u, GROUP] != slots[v, GROUP]:
        return False
    return apart(u, v, scale, edit, nodes, work, cuts) <= scale


@inlined
def list_inside(event: Any, stamp: Any, events: Any, members: Any, work: Any, inside: Any) -> Any:
    """Stamp and list the slots that reach into the part of an event, by their ids; return how many.

    `inside` has room for all of them.
    """
    slots, _, ids, slot_of, _ = work
    n = 0
    for k in range(events[event, FROM], events[event, TO]):
        slot = find_slot(slot_of[members[k]], slots)
        if slots[slot, STAMP] != stamp:
            slots[slot, STAMP] = stamp
            inside[n] = np.int64(ids[slot]) << 32 | slot
            n += 1
    inside[:n].sort()
    for k in range(n):
        inside[k] &= 0xFFFFFFFF
    return n


@inlined
def _has_newer(slot: Any, edit: Any, work: Any, cuts: Any) -> Any:
    """Whether a slot reaches into a part of a cut newer than `edit`."""
    bags, entries = cuts[0], cuts[1]
    cut = bags[work[0][slot, BAG], FIRST_CUT]
    while cut >= 0:
        if entries[cut, CUT] > edit:
            return True
        cut = entries[cut, NEXT_CUT]
    return False


@inlined
def are_free(inside: Any, n: Any, scale: Any, edit: Any, nodes: Any, work: Any, cuts: Any) -> Any:
    """Whether an edit may join all of these slots."""
    slots = work[0]
    concerned = False
    for k in range(n):
        slot = inside[k]
        concerned |= slots[slot, LOCKED] != 0 or slots[slot, GROUP] != slots[inside[0], GROUP]
        concerned |= _has_newer(slot, edit, work, cuts)
    if concerned:
        for k in range(n):
            for other in range(k):
                if not may_join(inside[k], inside[other], scale, edit, nodes, work, cuts):
                    return False
    return True


@inlined
def want_within(
    inside: Any, n: Any, stamp: Any, scale: Any, edit: Any, nodes: Any, work: Any, graph: Any,
    cuts: Any, wanted: Any,
) -> Any:  # fmt: skip
    """List the boundaries within a part across which an edit may join; return how many."""
    slots = work[0]
    ends, links, lists = graph[0], graph[1], graph[2]
    m = 0
    for k in range(n):
        slot = inside[k]
        if slots[slot, JOINED] != slot:
            continue
        half = np.int64(lists[slot, HEAD])
        while half >= 0:
            edge = half >> 1
            other = np.int64(ends[edge, 1 - (half & 1)])
            within = half & 1 == 0 and slots[other, STAMP] == stamp
            if within and may_join(slot, other, scale, edit, nodes, work, cuts):
                wanted[m] = edge
                m += 1
            half = np.int64(links[edge, half & 1, NEXT])
    return m


@inlined
def first_of(wanted: Any, m: Any, work: Any, graph: Any, priority: Any) -> Any:
    """Return the edge that the policy puts first, or -1 if there is none."""
    best = np.int64(-1)
    best_priority = np.inf
    best_tie = LAST
    for k in range(m):
        edge = wanted[k]
        tie = tie_of_edge(edge, work, graph)
        first = best < 0 or priority[edge] < best_priority
        if first or (priority[edge] == best_priority and tie < best_tie):
            best = np.int64(edge)
            best_priority = priority[edge]
            best_tie = tie
    return best


# Which edits happen in a repair, and in which order.


@dataclass(frozen=True, eq=False)
class Happening:
    """Edits that are to happen, by scale and then by age; see `_events` for the columns."""

    table: NDArray[np.int64]
    scales: NDArray[np.float64]
    members: Ids


def happening_between(constraints: Constraints, low: float, high: float) -> Happening:
    """Return what happens above the scale `low`, up to `high`."""
    names = []
    for index, edit in enumerate(constraints.edits):
        if low < edit.scale <= high:
            n = len(edit.pairs) if isinstance(edit, Merge) else len(constraints.parts[index])
            names += [(index, k) for k in range(n)]
    return _happening(constraints, names)


def happening_within(
    constraints: Constraints, members: Ids, slot_of: NDArray[np.int32], low: float, cut: Cut
) -> Happening:
    """Return what happens among `members`, which have slots, from `low` up to a cut and with it.

    A merge of which one end lies elsewhere sleeps: it would cross the border of what is cut.
    """
    return _happening(constraints, constraints.concerning(members, low, cut.scale), slot_of, cut)


def _happening(
    constraints: Constraints,
    names: list[tuple[int, int]],
    slot_of: NDArray[np.int32] | None = None,
    cut: Cut | None = None,
) -> Happening:
    rows: list[tuple[int, int, int, int, bool]] = []
    scales: list[float] = []
    lists: list[Ids] = []
    n = 0

    def assemble(index: int, part: Ids, partial: bool) -> None:
        nonlocal n
        rows.append((index, ASSEMBLE, n, n + len(part), partial))
        lists.append(part)
        n += len(part)

    for scale, index, k in sorted((constraints.scales[name[0]], *name) for name in names):
        edit = constraints.edits[index]
        if isinstance(edit, Merge):
            a, b = edit.pairs[k]
            if slot_of is not None and (slot_of[a] < 0 or slot_of[b] < 0):
                continue
            rows.append((index, JOIN, a, b, False))
        else:
            part = constraints.parts[index][k]
            inside = part if slot_of is None else part[slot_of[part] >= 0]
            assemble(index, inside, len(inside) < len(part))
        scales.append(scale)
    if cut is not None:
        for part in cut.parts:
            assemble(len(constraints.edits), part, False)
            scales.append(cut.scale)
    return Happening(
        table=np.array(rows, np.int64).reshape(-1, 5),
        scales=np.array(scales, np.float64),
        members=np.concatenate(lists) if lists else np.zeros(0, np.int32),
    )
