"""The greedy run again, from a frontier upwards: what is recorded is believed, the rest is asked.

A recorded merge of two untouched regions stays as it is. A region is *dirty* when its recorded end
cannot come, for its partner is gone, or when it is not in the record at all; only of dirty regions
the policy is asked, and a dirty region that comes out equal to a recorded one is clean again.

The loop has one place where the policy is asked and one where two regions are united, and goes
round once for each: every further copy of these would take half a minute to compile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.callbacks import raise_error
from napari_agglo._numba.heaps import heap_pop, heap_push
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import find_edge, policy_scoring
from napari_agglo.features import FeatureState, empty_features
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, Scoring, no_features, policy_features
from napari_agglo.session._hierarchy.events import (
    ASSEMBLE,
    FROM,
    KIND,
    PARTIAL,
    TO,
    WHICH,
    Happening,
    are_free,
    ask,
    first_of,
    list_inside,
    may_join,
    put_boundary,
    unite,
    want_boundaries,
    want_within,
)
from napari_agglo.session._hierarchy.fences import Constraints, empty_bags, fill_bags
from napari_agglo.session._hierarchy.moment_queue import empty_queue, remove_item
from napari_agglo.session._hierarchy.nodes import (
    BIRTH,
    EDIT,
    FIRST,
    LAST,
    LOW,
    MARK,
    N_ASKED,
    N_EVENTS,
    N_KNOWN,
    N_LOGGED,
    N_NODES,
    PARENT,
    PRIORITY,
    SECOND,
    UNTIL,
    Nodes,
    add_node,
    roll_back,
    set_link,
    set_until,
    take_place,
    twin,
)
from napari_agglo.session._hierarchy.working_graph import (
    CLEAN,
    DIRTY,
    JOINED,
    KNOWN,
    LOCKED,
    NODE,
    OPEN,
    STAMP,
    STATUS,
    Ground,
    Working,
    expect,
    find_slot,
    partner_of,
    wait_for,
)

# Where a run must begin again for a cut: just before the first merge that crosses its parts.


def before_crossing(
    nodes: Nodes, order: NDArray[np.int64], part_of: NDArray[np.int32]
) -> tuple[NDArray[np.int64], float]:
    """Return the regions that live just before the first merge that crosses parts, and its birth.

    Parameters
    ----------
    nodes : Nodes
    order : ndarray of int64
        A node and all that it is made of, parents first.
    part_of : ndarray of int32
        The part of each superpixel.

    Notes
    -----
    Many merges may have one birth, the running maximum, and priorities fall; but in which order
    they came is known: each as soon as its two regions were there, the lowest priority first. So
    the merges of that birth are done again, those of edits last, until one crosses.
    """
    links, scales, _ = nodes.arrays
    stack = np.zeros(len(order), np.int64)
    lowest = float(_mark_parts(order, part_of, stack, links, scales))
    if lowest == np.inf:
        links[order, MARK] = 0
        return order[:1], lowest
    inner = order[(links[order, FIRST] >= 0) & (links[order, EDIT] < 0)]
    same = inner[scales[inner, BIRTH] == lowest]
    ends = links[links[same][:, [FIRST, SECOND]], LOW]  # the regions of a merge
    low, high = ends.min(axis=1), ends.max(axis=1)
    ranked = same[np.lexsort((high, low, scales[same, PRIORITY]))]
    alive = np.zeros(len(order), np.int64)
    heap = np.zeros(len(same) + 1, np.int64)
    n = _run_until_crossing(order, ranked, lowest, heap, alive, links, scales)
    return alive[:n], lowest


@kernel
def _mark_parts(order: Any, part_of: Any, stack: Any, links: Any, scales: Any) -> Any:
    """Mark nodes that cross parts with -1, others with 1; return the lowest birth of the former.

    Read backwards, the parts of the two regions of a node are on top of `stack`, a buffer. Infinite
    if there is no such node. No bounds checking.
    """
    lowest = np.inf
    depth = 0
    for k in range(order.size - 1, -1, -1):
        node = order[k]
        links[node, MARK] = 1
        if links[node, FIRST] < 0:
            stack[depth] = part_of[links[node, LOW]]
            depth += 1
        else:
            depth -= 1
            if stack[depth] < 0 or stack[depth] != stack[depth - 1]:
                stack[depth - 1] = -1
                links[node, MARK] = -1
                lowest = min(lowest, scales[node, BIRTH])
    return lowest


@kernel
def _run_until_crossing(
    order: Any, ranked: Any, lowest: Any, heap: Any, alive: Any, links: Any, scales: Any
) -> Any:
    """Do the merges of birth `lowest` until one crosses; write who lives then, return how many.

    No bounds checking. `ranked` has those merges, lowest key first. Marks, which come as -1 for
    what crosses, are for a merge that waits 2 + rank, negative if it crosses; for what lives 1; and
    0 at the end.
    """
    size = 0
    for rank in range(ranked.size):
        node = ranked[rank]
        links[node, MARK] = -2 - rank if links[node, MARK] < 0 else 2 + rank
    for k in range(order.size):
        node = order[k]
        if links[node, MARK] == -1 or scales[node, BIRTH] > lowest:
            links[node, MARK] = 0  # not there yet
        elif links[node, EDIT] >= 0 and scales[node, BIRTH] == lowest:
            links[node, MARK] = 0
    for rank in range(ranked.size):
        node = ranked[rank]
        if links[links[node, FIRST], MARK] == 1 and links[links[node, SECOND], MARK] == 1:
            size = heap_push(heap, heap, size, rank, rank)
    while size > 0:
        rank = heap[0]
        size = heap_pop(heap, heap, size)
        node = ranked[rank]
        if links[node, MARK] < 0:
            break
        links[node, MARK] = 1
        up = np.int64(links[node, PARENT])
        if abs(links[up, MARK]) > 1:
            other = links[up, FIRST] if links[up, SECOND] == node else links[up, SECOND]
            if links[other, MARK] == 1:
                rank = abs(links[up, MARK]) - 2
                size = heap_push(heap, heap, size, rank, rank)
    n = 0
    for k in range(order.size):
        node = order[k]
        if links[node, MARK] != 1:
            continue
        if k == 0 or links[links[node, PARENT], MARK] != 1:
            alive[n] = node
            n += 1
    for k in range(order.size):
        links[order[k], MARK] = 0
    return n


# What the loop is at: the next moment, a part whose regions are joined in turn, or by the policy.
_NEXT, _IN_TURN, _BY_POLICY = 0, 1, 2


@inlined
def _recorded_join(u: Any, v: Any, edit: Any, nodes: Any, work: Any) -> Any:
    """Return the node that an edit is recorded to make of two slots, or -1."""
    links, scales, _ = nodes
    slots = work[0]
    x = slots[u, NODE]
    y = slots[v, NODE]
    up = np.int64(links[x, PARENT])
    known = slots[u, STATUS] == CLEAN and slots[v, STATUS] == CLEAN
    known = known and scales[x, UNTIL] == np.inf and scales[y, UNTIL] == np.inf
    if known and up >= 0 and up == links[y, PARENT] and links[up, EDIT] == edit:
        return up
    return np.int64(-1)


@kernel
def start_replay(
    known: Any, known_priority: Any, nodes: Any, work: Any, graph: Any, edges: Any, queue: Any
) -> None:
    """Let all slots wait, and enter what is `known` of boundaries between nodes.

    No bounds checking is performed.
    """
    slots, _, _, slot_of, _ = work
    links = nodes[0]
    info, priority, _ = edges
    for slot in range(slots.shape[0]):
        if slots[slot, LOCKED] == 0:
            expect(slot, nodes, work, edges, queue)
    for k in range(known.shape[0]):
        u = np.int64(slot_of[links[known[k, 0], LOW]])
        v = np.int64(slot_of[links[known[k, 1], LOW]])
        if u < 0 or v < 0 or slots[u, NODE] != known[k, 0] or slots[v, NODE] != known[k, 1]:
            continue
        edge = find_edge(u, v, graph)
        if edge >= 0:
            info[edge, KNOWN] = 1
            priority[edge] = known_priority[k]


@kernel
def replay(
    target: Any, most_asked: Any, most_steps: Any, events: Any, event_scale: Any,
    event_members: Any, nodes: Any, work: Any, graph: Any, edges: Any, queue: Any, cuts: Any,
    ground: Any, policy: Any, log: Any, buffers: Any,
) -> Any:  # fmt: skip
    """Run up to the scale `target`, edits at it included; return whether it got there.

    No bounds checking is performed. Returns early when it has asked the policy about `most_asked`
    boundaries or done `most_steps`, so that a cancel is noticed; all state is in the arrays.
    """
    links, scales, sizes = nodes
    slots = work[0]
    n_edges = edges[0].shape[0]
    state = log[2]
    wanted, batch, floors = buffers
    inside = np.empty(0, np.int64)
    stop = state[N_ASKED] + most_asked
    steps = 0
    doing = _NEXT
    event = np.int64(0)
    joined = n_inside = 0
    scale = 0.0
    edit = np.int64(-1)
    offered = np.int64(-1)  # the slot whose boundaries are to wait
    offer_all = False
    level = peak = priority = 0.0  # the moment that it is now: a peak, and a priority
    peak_tie = LAST
    while True:
        if offered >= 0 or doing == _BY_POLICY:
            if offered >= 0:
                n = want_boundaries(
                    offered, offer_all, nodes, work, graph, queue, cuts, wanted, floors
                )
            else:
                n = want_within(
                    inside, n_inside, event + 1, scale, edit, nodes, work, graph, cuts, wanted
                )
            ask(wanted, n, work, graph, edges, ground, policy, log, batch)
            if offered >= 0:
                for k in range(n):
                    put_boundary(wanted[k], floors[k], nodes, work, graph, edges, queue)
                offered = np.int64(-1)
                continue
            best = first_of(wanted, n, work, graph, edges[1])
            if best < 0:
                doing = _NEXT
                continue
            u = np.int64(graph[0][best, 0])
            v = np.int64(graph[0][best, 1])
            if work[2][v] < work[2][u]:
                u, v = v, u
            node = np.int64(-1)
        elif doing == _IN_TURN:
            if joined == n_inside:
                doing = _NEXT
                continue
            u = find_slot(inside[0], slots)
            v = inside[joined]
            node = _recorded_join(u, v, edit, nodes, work)
            joined += 1
        else:
            if steps == most_steps or state[N_ASKED] >= stop:
                return False
            steps += 1
            level = peak = priority = np.inf
            peak_tie = LAST
            item = np.int64(-1)
            if queue[4][0] > 0:
                item = np.int64(queue[2][0])
                level = queue[0][item, 0]
                peak = queue[0][item, 1]
                peak_tie = queue[1][item, 0]
                priority = queue[0][item, 2]
            event = state[N_EVENTS]
            if event < events.shape[0] and (
                event_scale[event] < level or (event_scale[event] == level and peak == np.inf)
            ):
                scale = event_scale[event]
                if scale > target:
                    return True
                state[N_EVENTS] = event + 1
                edit = events[event, WHICH]
                level = scale
                peak = np.inf
                peak_tie = LAST
                if events[event, KIND] == ASSEMBLE:
                    inside = np.empty(events[event, TO] - events[event, FROM], np.int64)
                    n_inside = list_inside(event, event + 1, events, event_members, work, inside)
                    free = events[event, PARTIAL] == 0
                    free = free and are_free(inside, n_inside, scale, edit, nodes, work, cuts)
                    doing = _IN_TURN if free else _BY_POLICY
                    joined = 1
                    continue
                u = find_slot(work[3][events[event, FROM]], slots)
                v = find_slot(work[3][events[event, TO]], slots)
                if u == v or not may_join(u, v, scale, edit, nodes, work, cuts):
                    continue  # together already, or asleep
                node = _recorded_join(u, v, edit, nodes, work)
            elif item < 0 or level > target or (level == target and peak == np.inf):
                return True
            else:
                remove_item(item, queue)
                edit = np.int64(-1)
                node = np.int64(-1)
                if item < n_edges:
                    u = np.int64(graph[0][item, 0])
                    v = np.int64(graph[0][item, 1])
                else:
                    u = item - n_edges
                    v = np.int64(-1)
                    if slots[u, STATUS] == CLEAN:
                        v = partner_of(u, nodes, work)
                        if v >= 0:
                            node = np.int64(links[slots[u, NODE], PARENT])
        slot = u
        recorded = node >= 0
        was_dirty = slots[u, STATUS] == DIRTY and v < 0
        if v >= 0:
            if not recorded:
                birth = scale if edit >= 0 else level
                node = add_node(
                    slots[u, NODE], slots[v, NODE], birth,
                    np.nextafter(scale, np.inf) if edit >= 0 else level,
                    np.nan if edit >= 0 else priority, edit,
                    edit >= 0 and events[event, KIND] != ASSEMBLE, birth,
                    links, scales, sizes, log[0], log[1], log[2],
                )  # fmt: skip
            slot = unite(u, v, node, nodes, work, graph, edges, queue, cuts, ground, policy)
            slots[slot, STAMP] = event + 1 if doing == _BY_POLICY else slots[slot, STAMP]
        node = slots[slot, NODE]
        how = 1 if recorded else twin(node, level, peak, peak_tie, links, scales, sizes)
        if how == 1:
            slots[slot, STATUS] = CLEAN
            if not recorded:
                take_place(node, links, scales, log[0], log[1], log[2])
            expect(slot, nodes, work, edges, queue)
            if not was_dirty and (edit < 0 or scale < target):
                offered = slot
                offer_all = False
        elif edit >= 0:
            set_until(node, scale, scales, log[0], log[1], log[2])
            slots[slot, STATUS] = OPEN
            expect(slot, nodes, work, edges, queue)
        elif not was_dirty:
            slots[slot, STATUS] = DIRTY
            if how == 2:  # it will be a recorded one, if it lives to see that
                other = np.int64(links[node, PARENT])
                wait_for(slot, other, True, nodes, edges, queue)
            offered = slot
            offer_all = True


@kernel
def finish_replay(
    target: Any, holder: Any, known: Any, known_priority: Any, nodes: Any, work: Any, graph: Any,
    edges: Any, log: Any,
) -> None:  # fmt: skip
    """Note of the regions that live at the end how far they are known, and what was asked of them.

    With a `holder`, the segment that was cut, they are its parts, and free from there on.
    """
    links, scales, _ = nodes
    slots = work[0]
    for slot in range(slots.shape[0]):
        if slots[slot, JOINED] != slot or slots[slot, LOCKED] != 0:
            continue
        node = slots[slot, NODE]
        if holder >= 0:
            set_link(node, PARENT, holder, links, log[0], log[2])
            set_until(node, target, scales, log[0], log[1], log[2])
        elif slots[slot, STATUS] == DIRTY:
            set_until(node, target, scales, log[0], log[1], log[2])
            if target == np.inf:
                set_link(node, PARENT, -1, links, log[0], log[2])
        elif slots[slot, STATUS] == CLEAN and scales[node, UNTIL] == np.inf:
            up = np.int64(links[node, PARENT])
            if up >= 0 and scales[up, BIRTH] <= target:  # an edit that did not happen this time
                set_until(node, target, scales, log[0], log[1], log[2])
    ends = graph[0]
    info, priority, _ = edges
    state = log[2]
    for edge in range(ends.shape[0]):
        if ends[edge, 0] >= 0 and info[edge, KNOWN] != 0:
            known[state[N_KNOWN], 0] = slots[ends[edge, 0], NODE]
            known[state[N_KNOWN], 1] = slots[ends[edge, 1], NODE]
            known_priority[state[N_KNOWN]] = priority[edge]
            state[N_KNOWN] += 1


# One repair: the arrays that its kernels share, and the loop that notices a cancel.


# Boundaries to ask a policy about, and steps to take, between two looks at the world: a tenth of a
# second or so.
_ASKED, _STEPS = 20_000, 100_000


@dataclass(frozen=True, eq=False)
class Known:
    """What the policy said of boundaries between nodes that live where the record ends."""

    pairs: NDArray[np.int64]
    priorities: NDArray[np.float64]

    @classmethod
    def nothing(cls) -> Known:
        return cls(np.zeros((0, 2), np.int64), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Changes:
    """What a repair changed in the nodes: enough to put it back."""

    log: NDArray[np.int64]
    logged: NDArray[np.float64]
    count: int  # nodes before


class Asker:
    """A policy ready to be asked by kernels, about graphs of any size."""

    def __init__(self, graph: RegionGraph, policy: Policy) -> None:
        self.graph = graph
        self.scoring = policy_scoring(graph, policy)
        self.features = policy_features(policy)

    def arrays(self, n_slots: int, n_edges: int) -> tuple[Scoring, FeatureState]:
        """Return a `Scoring` and a `FeatureState` for so many regions and boundaries."""
        layout = self.graph.layout
        regions = np.zeros((n_slots, layout.region_width), np.int64)
        boxes = np.zeros((n_slots, 2, layout.ndim), np.int32)
        boundaries = np.zeros((n_edges, layout.boundary_width), np.int64)
        features = self.features
        if features is None:
            return self.scoring, no_features(regions, boxes, boundaries, layout.ndim)
        return self.scoring, empty_features(self.graph, features, regions, boxes, boundaries)


def repair(
    nodes: Nodes,
    ground: Ground,
    constraints: Constraints,
    asker: Asker,
    work: Working,
    happening: Happening,
    known: Known,
    target: float,
    holder: int = -1,
    progress: ProgressCallback | None = None,
) -> tuple[Changes, Known, int]:
    """Repair `nodes` from where `work` starts up to `target`.

    Returns what changed, what the policy said of boundaries at the end, and how many boundaries it
    was asked about. When it is cancelled, nothing has changed.
    """
    n_slots = len(work.slots)
    n_edges = len(work.info)
    nodes.make_room(n_slots)
    state = np.zeros(8, np.int64)
    state[N_NODES] = before = nodes.count
    # A merge logs nine changes at most, and the end two for each region.
    log = np.zeros((12 * n_slots + 16, 3), np.int64)
    logged = np.zeros(len(log))
    bags = empty_bags(n_slots, constraints.incidences(work.members))
    fill_bags(
        work.members, work.places.slot_of, constraints.heads, constraints.pool,
        constraints.scales, nodes.sizes, nodes.leaves, *bags,
    )  # fmt: skip
    arrays = (
        nodes.arrays,
        (work.slots, work.levels, work.ids, work.places.slot_of, work.places.leaf_next),
        work.graph,
        (work.info, work.priority, work.chain),
        empty_queue(n_edges + n_slots),
    )
    rest = (
        (*bags, constraints.scales),
        ground.arrays,
        asker.arrays(n_slots, n_edges),
        (log, logged, state),
        tuple(np.zeros(max(n_slots, n_edges), kind) for kind in (np.int64, np.int64, np.float64)),
    )
    what = (happening.table, happening.scales, happening.members)
    start_replay(known.pairs, known.priorities, *arrays)
    try:
        while True:
            report(progress, "repair", int(state[N_NODES] - before), n_slots)
            over = replay(target, _ASKED, _STEPS, *what, *arrays, *rest)
            raise_error()
            if over:
                break
    except BaseException:
        roll_back(nodes.links, nodes.scales, log, logged, state[N_LOGGED])
        raise
    found = Known(np.zeros((n_edges, 2), np.int64), np.zeros(n_edges))
    finish_replay(target, holder, found.pairs, found.priorities, *arrays[:4], rest[3])
    nodes.count = int(state[N_NODES])
    n = int(state[N_LOGGED])
    m = int(state[N_KNOWN])
    return (
        Changes(log[:n].copy(), logged[:n].copy(), before),
        Known(found.pairs[:m].copy(), found.priorities[:m].copy()),
        int(state[N_ASKED]),
    )
