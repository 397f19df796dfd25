"""Merges that are final within a group of blocks, for graphs that do not fit in memory.

By the mean of a boundary, two regions merge in the end, and at the same priority, if their boundary
is the strictly lowest of all boundaries of both: whatever merges elsewhere, the mean of two higher
boundaries is higher too, so nothing can come before. Where both regions are *complete* in a group,
with all their voxels and boundaries, such a merge is made there, and the group passes on its merged
regions instead of its superpixels.

Of equal priorities the ids of regions decide: the merge of the smallest pair of ids comes first. So
all boundaries of the lowest priority that hang together, through regions of which each has no lower
one, are a *tie* that is decided by itself: whatever merges elsewhere, at this priority or below, no
other boundary of its regions falls to that priority. If all its regions are complete, its merges
are final, in the order of the whole: the smallest id merges with its neighbours of the tie, the
smallest of them first, until it has none, then the next id does.

A group is agglomerated in order of priority. A region is *frozen*, which leaves its decisions to a
larger group, if it is not complete, if its lowest boundary leads to a frozen region, or if it is in
a tie with one, or in a tie of very many regions. Freezing more than needed is always right, it only
leaves more for later.

By a learned policy nothing is proven: a merge elsewhere may lower a priority. `merge_likely` makes
merges that are nearly certain, among complete regions of a group, and the result is near that of
the whole graph. Of these, a merge comes before all that follow from it, and otherwise in the order
of heights.

By the mean, the merges of all groups and those of what is left at the end are the two parts of one
sequence, that of the whole graph. At one priority its winners ascend, and all merges of one winner
are in one part. So merges of groups are sorted by priority and winner, those of one winner in the
order in which they were made, and the parts are combined by comparing their heads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo._numba.heaps import heap_arrays, heap_pop, heap_push
from napari_agglo.agglomeration._adjacency import HEAD, NEXT, Adjacency, contract_arrays, link
from napari_agglo.blocks._block_graph import whole_graph
from napari_agglo.blocks._block_grid import Slices
from napari_agglo.graph import Layout, add_rows

Arrays = dict[str, NDArray[Any]]
_MOST_TIED = 1000  # regions of a tie: each merge looks at all boundaries of its winner


class FinalMerges(NamedTuple):
    """Merges as ids of superpixels and priorities, in any order."""

    winners: NDArray[np.uint64]
    losers: NDArray[np.uint64]
    priorities: NDArray[np.float64]


def complete_regions(
    table: Arrays, group: Slices, whole: Sequence[int], dams: bool
) -> NDArray[np.bool_]:
    """Return whether each region of a table has all its voxels and boundaries in the group."""
    complete = table["regions"][:, 0] > 0
    for axis, (side, n) in enumerate(zip(group, whole, strict=True)):
        if side.start > 0:
            complete &= table["low"][:, axis] > side.start + (1 if dams else 0)
        if side.stop < n:
            complete &= table["high"][:, axis] < side.stop
    return complete


def merge_final(
    table: Arrays, complete: NDArray[np.bool_], layout: Layout, cue: int
) -> tuple[Arrays, FinalMerges]:
    """Make the final merges of a group; return the table that is left, and the merges."""
    n, edges = len(table["ids"]), table["edges"]
    sums = np.zeros((len(edges), 2), np.int64)
    sums[:, 0] = table["boundaries"][:, layout.boundary_sums(cue).start]
    sums[:, 1] = 2 * table["boundaries"][:, layout.faces] @ layout.sampled(cue)
    priority = sums[:, 0] / (255.0 * sums[:, 1])
    keys, heap = heap_arrays(2 * len(edges) + 1, np.float64)
    keys[: len(edges)] = np.sort(priority)
    heap[: len(edges)] = np.argsort(priority, kind="stable")
    merged = np.zeros((n, 2), np.int64)
    priorities = np.zeros(n)
    queue = _Queue(priority, keys, heap, len(edges))
    ids = np.arange(n, dtype=np.int64)
    made = _Made(ids, merged, priorities, ids.copy(), np.zeros(n, np.int64), ids.copy())
    count = _merge_final(link(edges, n), sums, ~complete, queue, made)
    merged, priorities = merged[:count], priorities[:count]
    lut = np.arange(n, dtype=np.int64)
    for winner, loser in merged[::-1].tolist():  # a region loses once, after all that it won
        lut[loser] = lut[winner]
    winners, losers = table["ids"][merged[:, 0]], table["ids"][merged[:, 1]]
    return _contract(table, lut, layout), FinalMerges(winners, losers, priorities)


class _Queue(NamedTuple):
    """Present priority of each boundary, and the heap; entries under another one are stale."""

    priority: NDArray[np.float64]
    keys: NDArray[Any]
    heap: NDArray[Any]
    size: int


class _Made(NamedTuple):
    """The smallest region of each node, the final merges, in their order, and buffers of a tie."""

    ids: NDArray[np.int64]
    merged: NDArray[np.int64]
    priorities: NDArray[np.float64]
    node_of: NDArray[np.int64]  # node of a region that is the smallest of it, -1 once it has lost
    tie_of: NDArray[np.int64]  # number of the last tie that a node was found in
    members: NDArray[np.int64]  # nodes of the tie


@kernel
def _merge_final(graph: Adjacency, sums: Any, frozen: Any, queue: _Queue, made: _Made) -> Any:
    """Merge while a merge is final; return the number of merges. No bounds checking.

    Invariant: a boundary is in the heap under its present priority. Frozen nodes never merge.
    """
    ends, links, nodes, adjacent, filled, kept, absorbed = graph
    priority, keys, heap, size = queue
    ids, merged, priorities, node_of, tie_of, members = made
    done = 0
    n_ties = 0
    while size > 0:
        edge = np.int64(heap[0])
        lowest = keys[0]
        size = heap_pop(keys, heap, size)
        if ends[edge, 0] < 0 or priority[edge] != lowest:
            continue
        # Find the regions that hang together by boundaries of this priority.
        n_ties += 1
        u = np.int64(ends[edge, 0])
        members[0] = u
        tie_of[u] = n_ties
        count = 1
        at = 0
        closed = True
        while closed and at < count:
            u = members[at]
            at += 1
            closed = not frozen[u] and count <= _MOST_TIED
            half = np.int64(nodes[u, HEAD])
            while closed and half >= 0:
                other = half >> 1
                closed = priority[other] >= lowest
                if priority[other] == lowest:
                    v = np.int64(ends[other, 1 - (half & 1)])
                    if tie_of[v] != n_ties:
                        tie_of[v] = n_ties
                        members[count] = v
                        count += 1
                half = np.int64(links[other, half & 1, NEXT])
        if not closed:
            for k in range(count):
                frozen[members[k]] = True
            continue
        for k in range(count):  # their ids, ascending
            winner = ids[members[k]]
            at = k
            while at > 0 and members[at - 1] > winner:
                members[at] = members[at - 1]
                at -= 1
            members[at] = winner
        for k in range(count):
            winner = members[k]
            while node_of[winner] >= 0:
                # Invariant: boundaries of this priority lead to larger ids only.
                u = node_of[winner]
                loser = np.int64(-1)
                half = np.int64(nodes[u, HEAD])
                while half >= 0:
                    other = half >> 1
                    if priority[other] == lowest:
                        v = ids[ends[other, 1 - (half & 1)]]
                        if loser < 0 or v < loser:
                            loser = v
                            edge = np.int64(other)
                    half = np.int64(links[other, half & 1, NEXT])
                if loser < 0:
                    break
                merged[done, 0] = winner
                merged[done, 1] = loser
                priorities[done] = lowest
                done += 1
                survivor, _, n_parallel = contract_arrays(
                    edge, ends, links, nodes, adjacent, filled, kept, absorbed
                )
                ids[survivor] = winner
                node_of[winner] = survivor
                node_of[loser] = -1
                for i in range(n_parallel):
                    into = np.int64(kept[i])
                    other = np.int64(absorbed[i])
                    sums[into, 0] += sums[other, 0]
                    sums[into, 1] += sums[other, 1]
                    mean = sums[into, 0] / (255.0 * sums[into, 1])
                    if mean != priority[into]:
                        priority[into] = mean
                        size = heap_push(keys, heap, size, mean, into)
    return done


def merge_likely(
    table: Arrays,
    complete: NDArray[np.bool_],
    layout: Layout,
    merges_of: Callable[[Arrays], FinalMerges],
    below: float,
) -> tuple[Arrays, FinalMerges]:
    """Make the merges of a group that a policy calls likely; return the table left, and the merges.

    `merges_of` agglomerates a graph, given by the arrays of a `RegionGraph`: that of the complete
    regions, whose rows are those of the whole volume. Merges count up to the first that is not
    below the priority `below`.
    """
    whole = whole_graph(table, layout)
    kept = np.flatnonzero(complete)
    rank = np.zeros(len(complete) + 1, np.int64)
    rank[kept + 1] = np.arange(1, len(kept) + 1)
    inside = (rank[whole["edges"]] > 0).all(axis=1)
    rows = np.concatenate([[0], kept + 1])
    part = {name: whole[name][rows] for name in ("ids", "regions", "boxes")}
    part |= {"edges": rank[whole["edges"][inside]], "boundaries": whole["boundaries"][inside]}
    merges = merges_of(part)
    above = np.flatnonzero(np.maximum.accumulate(merges.priorities) >= below)
    count = int(above[0]) if len(above) else len(merges.priorities)
    made = FinalMerges(merges.winners[:count], merges.losers[:count], merges.priorities[:count])
    lut = np.arange(len(complete), dtype=np.int64)
    pairs = np.searchsorted(table["ids"], np.stack([made.winners, made.losers], axis=1))
    for winner, loser in pairs[::-1].tolist():  # a region loses once, after all that it won
        lut[loser] = lut[winner]
    return _contract(table, lut, layout), made


def in_order_of_heights(
    ids: NDArray[np.uint64], groups: Sequence[FinalMerges], rest: FinalMerges
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return winners, losers (dense ids) and priorities of all merges, none before its parts.

    `groups` are in the order in which they were made, those of smaller groups first. The height of
    a merge is the highest priority among it and those before it that it depends on; the merges of
    `rest` stay in their order, so that without groups they are the result.
    """
    pooled = [np.concatenate([getattr(g, name) for g in groups]) for name in FinalMerges._fields]
    first = [np.searchsorted(ids, some).astype(np.int64) for some in pooled[:2]]
    last = [np.searchsorted(ids, some).astype(np.int64) for some in rest[:2]]
    reached = np.zeros(len(ids))
    heights = np.empty(len(pooled[2]) + len(rest.priorities))
    n = len(pooled[2])
    _branch_heights(first[0], first[1], pooled[2], reached, False, heights[:n])
    _branch_heights(last[0], last[1], rest.priorities, reached, True, heights[n:])
    order = np.argsort(heights, kind="stable")
    winners, losers = (np.concatenate([a, b])[order] for a, b in zip(first, last, strict=True))
    return winners, losers, np.concatenate([pooled[2], rest.priorities])[order]


@kernel
def _branch_heights(
    winners: Any, losers: Any, priorities: Any, reached: Any, running: Any, out: Any
) -> None:
    """Write the height of each merge; with `running`, no merge is lower than the one before.

    `reached` has the height of the last merge of each region. No bounds checking.
    """
    before = 0.0
    for k in range(winners.size):
        height = max(priorities[k], reached[winners[k]], reached[losers[k]])
        if running:
            height = max(height, before)
            before = height
        reached[winners[k]] = height
        out[k] = height


def _contract(table: Arrays, lut: NDArray[np.int64], layout: Layout) -> Arrays:
    """Return the table of merged regions; a region has the id of its smallest superpixel."""
    kept = np.flatnonzero(lut == np.arange(len(lut)))
    new = np.searchsorted(kept, lut)
    low = np.full((len(kept), layout.ndim), np.iinfo(np.int32).max, np.int32)
    high = np.zeros((len(kept), layout.ndim), np.int32)
    np.minimum.at(low, new, table["low"])
    np.maximum.at(high, new, table["high"])
    regions = np.zeros((len(kept), layout.region_width), np.int64)
    add_rows(table["regions"], new, regions)
    pairs = np.sort(new[table["edges"]], axis=1)
    keys = pairs[:, 0] * np.int64(max(len(kept), 1)) + pairs[:, 1]
    outside = pairs[:, 0] != pairs[:, 1]
    unique, which = np.unique(keys[outside], return_inverse=True)
    into = np.full(len(pairs), -1, np.int64)
    into[outside] = which
    boundaries = np.zeros((len(unique), layout.boundary_width), np.int64)
    add_rows(table["boundaries"], into, boundaries)
    return {
        "ids": table["ids"][kept],
        "low": low,
        "high": high,
        "edges": np.stack(np.divmod(unique, np.int64(max(len(kept), 1))), axis=1),
        "regions": regions,
        "boundaries": boundaries,
    }


def in_one_order(
    ids: NDArray[np.uint64], groups: Sequence[FinalMerges], rest: FinalMerges
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return winners, losers (dense ids) and priorities of all merges, in the order of the whole.

    `rest` are the merges of the graph that was left, in their order; `ids` those of all
    superpixels, with 0 first.
    """
    pooled = [np.concatenate([getattr(g, name) for g in groups]) for name in FinalMerges._fields]
    winners, losers = (np.searchsorted(ids, some).astype(np.int64) for some in pooled[:2])
    order = np.lexsort((winners, pooled[2]))  # which keeps the order of merges of one winner
    first = winners[order], losers[order], pooled[2][order]
    last = (
        np.searchsorted(ids, rest.winners).astype(np.int64),
        np.searchsorted(ids, rest.losers).astype(np.int64),
        rest.priorities,
    )
    n = len(first[0]) + len(last[0])
    out = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.float64)
    _combine(*first, *last, *out)
    return out


@kernel
def _combine(
    winners: Any, losers: Any, priorities: Any, other_winners: Any, other_losers: Any,
    other_priorities: Any, out_winners: Any, out_losers: Any, out_priorities: Any,
) -> None:  # fmt: skip
    """Combine two sequences of merges by their heads. No bounds checking."""
    i = 0
    j = 0
    for k in range(out_winners.size):
        if j >= other_winners.size:
            first = True
        elif i >= winners.size:
            first = False
        elif priorities[i] != other_priorities[j]:
            first = priorities[i] < other_priorities[j]
        elif winners[i] != other_winners[j]:
            first = winners[i] < other_winners[j]
        else:
            first = losers[i] < other_losers[j]
        if first:
            out_winners[k] = winners[i]
            out_losers[k] = losers[i]
            out_priorities[k] = priorities[i]
            i += 1
        else:
            out_winners[k] = other_winners[j]
            out_losers[k] = other_losers[j]
            out_priorities[k] = other_priorities[j]
            j += 1
