"""Kernels that collect the examples of one epoch: agglomerate by a policy, and label each merge.

``strict`` (agglo): a merge that is wrong by the gold standard becomes an example but is not done,
until no right merge is left; so every region stays within one gold segment. ``loose`` (lash): every
merge is done, and the sign of its effect on the Rand index is the label of the example.

A good policy suggests hardly any wrong merge before all right ones are done. The examples then have
merges at every scale, but boundaries to keep only among superpixels and among whole objects, and
the forest learns that a medium size is a reason to merge. So ``strict`` may also collect *near
misses*: of the boundaries of a new region that must stay, the one of the lowest priority.

The kernels return to Python when the arrays of examples are full and when they have scored very
many boundaries, so that progress is reported and the work can be cancelled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo.agglomeration import Adjacency, EdgeQueue, enter_edges, merge_pair, remove_edge
from napari_agglo.features import FeatureState, assemble
from napari_agglo.policy import Scoring, owner_of

# Boundaries to score between two returns to Python: about a twentieth of a second.
_SCORED = 20_000
# Examples that one iteration of a loop may add.
AT_ONCE = 2
# Places in `tally`.
EXAMPLES, MERGES, LEFT = 0, 1, 2


class Room(NamedTuple):
    """Arrays for examples, and the tally of the epoch."""

    rows: NDArray[np.float32]  # (room, features)
    labels: NDArray[np.int8]  # -1 merge, +1 not
    owners: NDArray[np.int64]
    tally: NDArray[np.int64]  # examples in this room, merges, and edges labelled -1 that are left
    edge: NDArray[np.int64]  # buffer: the edge that becomes an example


class Cells(NamedTuple):
    """Overlaps of each node with each gold segment: linked lists, sorted by gold segment."""

    head: NDArray[np.int64]  # first cell of each node, or -1
    following: NDArray[np.int64]  # next cell, or -1
    key: NDArray[np.int64]  # gold segment, numbered through all gold standards
    pixels: NDArray[np.int64]
    gold_of: NDArray[np.int64]  # gold standard of each key
    sums: NDArray[np.float64]  # (golds, 3): buffer


@inlined
def _label(u: Any, v: Any, assigned: Any) -> Any:
    """Return the sign of the sum of the labels of a pair: -1 merge, +1 not, 0 don't know."""
    total = 0
    for gold in range(assigned.shape[0]):
        a = assigned[gold, u]
        b = assigned[gold, v]
        if a > 0 and b > 0:
            total += -1 if a == b else 1
    return min(max(total, -1), 1)


@subroutine
def _note(
    edge: Any, label: Any, room: Room, ends: Any, ids: Any, group: Any, features: FeatureState
) -> None:
    """Append the features of a boundary, its label and its owner to the examples."""
    u = np.int64(ends[edge, 0])
    v = np.int64(ends[edge, 1])
    at = room.tally[EXAMPLES]
    room.edge[0] = edge
    assemble(room.edge, 0, 1, ends, ids, at, room.rows, features)
    room.labels[at] = label
    room.owners[at] = owner_of(group[u], group[v])
    room.tally[EXAMPLES] = at + 1


@kernel
def collect_strict(
    adjacency: Adjacency,
    queue: EdgeQueue,
    touched: Any,
    scoring: Scoring,
    features: FeatureState,
    ids: Any,
    assigned: Any,
    labels: Any,
    near_misses: Any,
    room: Room,
) -> Any:
    """Continue an epoch of agglo; return whether it is over. No bounds checking.

    `assigned` is the gold segment of each node, by gold standard, and `labels` the label of each
    edge that follows from it.

    Strategy: pop the first edge, add it to the examples, and merge its regions unless its label is
    +1. A merge changes labels only at the new region. Invariants: ``tally[LEFT]`` counts the living
    edges labelled -1, all of which are queued, so that the queue is not empty before none is left;
    and edges labelled 0 are not queued.
    """
    ends, absorbed = adjacency.ends, adjacency.absorbed
    priority, _, heap, _, size = queue
    group = scoring.group
    tally = room.tally
    most = room.labels.size
    scored = 0
    while tally[LEFT] > 0:
        if tally[EXAMPLES] + AT_ONCE > most or scored > _SCORED:
            return False
        edge = np.int64(heap[0])
        remove_edge(edge, queue)
        _note(edge, np.int64(labels[edge]), room, ends, ids, group, features)
        if labels[edge] > 0:
            continue
        winner = np.int64(min(ids[ends[edge, 0]], ids[ends[edge, 1]]))
        survivor, gone, n_parallel, n = merge_pair(
            edge, winner, touched, adjacency, queue, ids, features
        )
        tally[MERGES] += 1
        tally[LEFT] -= 1
        for k in range(n_parallel):
            tally[LEFT] -= labels[absorbed[k]] < 0
        for gold in range(assigned.shape[0]):
            if assigned[gold, survivor] != assigned[gold, gone]:
                assigned[gold, survivor] = 0
        # Of the boundaries of the new region, `touched` keeps those with a label other than 0.
        known: Any = np.int64(0)
        for k in range(n):
            other = touched[k]
            label = _label(np.int64(ends[other, 0]), np.int64(ends[other, 1]), assigned)
            tally[LEFT] += np.int64(label < 0) - np.int64(labels[other] < 0)
            labels[other] = label
            touched[known] = other
            known += label != 0
            if label == 0:
                remove_edge(other, queue)
        scored += known
        enter_edges(touched, known, queue, ends, ids, scoring, features)
        nearest = np.int64(-1)
        for k in range(known if near_misses else 0):
            other = np.int64(touched[k])
            if labels[other] > 0 and (nearest < 0 or priority[other] < priority[nearest]):
                nearest = other
        if nearest >= 0:
            _note(nearest, np.int64(1), room, ends, ids, group, features)
    # The edges that are left should not be merged, and are not among the examples with their
    # present features. They are added from the end of the heap: its layout orders these examples.
    while size[0] > 0:
        if tally[EXAMPLES] + AT_ONCE > most:
            return False
        edge = np.int64(heap[size[0] - 1])
        remove_edge(edge, queue)
        _note(edge, np.int64(labels[edge]), room, ends, ids, group, features)
    return True


@inlined
def rand_gain(u: Any, v: Any, cells: Cells) -> Any:
    """Return the sign, summed over gold standards, of the change of the Rand index by a merge.

    A merge joins every pair of pixels of the two regions, rightly if both are in one gold segment.
    """
    head, following, key, pixels, gold_of, sums = cells
    sums[:] = 0.0
    a = head[u]
    b = head[v]
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and key[a] < key[b]):
            sums[gold_of[key[a]], 0] += pixels[a]
            a = following[a]
        elif a < 0 or key[b] < key[a]:
            sums[gold_of[key[b]], 1] += pixels[b]
            b = following[b]
        else:
            gold = gold_of[key[a]]
            sums[gold, 0] += pixels[a]
            sums[gold, 1] += pixels[b]
            sums[gold, 2] += float(pixels[a]) * float(pixels[b])
            a = following[a]
            b = following[b]
    total: Any = 0
    for gold in range(sums.shape[0]):
        gain = 2.0 * sums[gold, 2] - sums[gold, 0] * sums[gold, 1]
        total += np.int64(gain > 0) - np.int64(gain < 0)
    return total


@inlined
def merge_cells(into: Any, other: Any, cells: Cells) -> None:
    """Merge two sorted lists of overlaps into one; overlaps with one gold segment are summed."""
    head, following, key, pixels, _, _ = cells
    a = head[into]
    b = head[other]
    last = -1  # end of the merged part of the list, -1 while it is empty
    while a >= 0 and b >= 0:
        if key[a] == key[b]:
            pixels[a] += pixels[b]
            b = following[b]
            continue
        if key[a] < key[b]:
            chosen = a
            a = following[a]
        else:
            chosen = b
            b = following[b]
        if last < 0:
            head[into] = chosen
        else:
            following[last] = chosen
        last = chosen
    rest = a if a >= 0 else b
    if last < 0:
        head[into] = rest
    else:
        following[last] = rest
    head[other] = -1


@kernel
def collect_loose(
    adjacency: Adjacency,
    queue: EdgeQueue,
    touched: Any,
    scoring: Scoring,
    features: FeatureState,
    ids: Any,
    cells: Cells,
    room: Room,
) -> Any:
    """Continue an epoch of lash; return whether it is over. No bounds checking."""
    ends = adjacency.ends
    heap, size = queue.heap, queue.size
    group = scoring.group
    tally = room.tally
    scored = 0
    while size[0] > 0:
        if tally[EXAMPLES] + AT_ONCE > room.labels.size or scored > _SCORED:
            return False
        edge = np.int64(heap[0])
        remove_edge(edge, queue)
        u = np.int64(ends[edge, 0])
        v = np.int64(ends[edge, 1])
        gain = rand_gain(u, v, cells)
        if gain != 0:
            _note(edge, np.int64(-1 if gain > 0 else 1), room, ends, ids, group, features)
        winner = np.int64(min(ids[u], ids[v]))
        survivor, gone, _, n = merge_pair(edge, winner, touched, adjacency, queue, ids, features)
        merge_cells(survivor, gone, cells)
        tally[MERGES] += 1
        scored += n
        enter_edges(touched, n, queue, ends, ids, scoring, features)
    return True
