"""Agglomeration by the mean of a cue over the boundary: the loop in which speed matters most.

Strategy: when two regions merge, only a boundary that absorbs a parallel one changes its mean. So
the boundaries of the initial graph are sorted once, and a heap has only those that have changed. A
boundary has one valid entry, under the key `entered`, in the sorted list or in the heap. When its
mean falls below that key, it is entered again at once; when it rises, only when that entry is
popped, as most boundaries change several times before that.

A mean never falls below the smaller of its parts, so the lowest priority never falls, and all
boundaries of equal priority, a *plateau*, can be merged together: in the order of the *current* ids
of their regions, from a second heap that is emptied before the next plateau. An id only changes to
a smaller one; then the boundaries of that region are entered there again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.heaps import heap_arrays, heap_order, heap_pop, heap_push
from napari_agglo._numba.prefetch import prefetch
from napari_agglo.agglomeration._adjacency import DEGREE, HEAD
from napari_agglo.agglomeration._edge_lists import (
    COUNT,
    FIRST,
    LARGE,
    NEXT_LINE,
    contract_lists,
)
from napari_agglo.agglomeration._merge_order import tie_of_edge

# Sort of edges by priority: a radix sort of the bits of non-negative floats, in linear time.
#
# numpy's argsort took a fifth of the time of a whole agglomeration of five million boundaries; this
# takes a quarter of that.


_AHEAD = 8  # entries of the order between two requests for memory: the best of 4, 8 and 16
_BITS = 11  # of a digit: the 2048 places that are written to stay in the first-level cache


def sort_edges(priority: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the edges of finite priority >= 0, lowest first, and their priorities.

    Edges of equal priority stay in the order of their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> sort_edges(np.array([0.5, 0.0, np.inf, 0.25]))
    (array([1, 3, 0], dtype=int32), array([0.  , 0.25, 0.5 ]))
    """
    edges = np.flatnonzero(priority < np.inf).astype(np.int32)
    # Adding zero turns -0.0, whose sign bit would sort it last, into 0.0.
    keys = (priority[edges] + 0.0).view(np.int64)
    other_keys = np.empty_like(keys)
    other_edges = np.empty_like(edges)
    for shift in range(0, 64, _BITS):
        counts = np.zeros(1 << _BITS, np.int64)
        _count_digits(keys, shift, counts)
        if counts.max() == len(keys):  # all agree in this digit
            continue
        starts = np.cumsum(counts) - counts
        _scatter(keys, edges, shift, starts, other_keys, other_edges)
        keys, other_keys = other_keys, keys
        edges, other_edges = other_edges, edges
    return edges, keys.view(np.float64)


@kernel
def _count_digits(keys: Any, shift: Any, counts: Any) -> None:
    """Count the keys of each digit. No bounds checking."""
    for k in range(keys.size):
        counts[(keys[k] >> shift) & (counts.size - 1)] += 1


@kernel
def _scatter(keys: Any, edges: Any, shift: Any, starts: Any, out_keys: Any, out_edges: Any) -> None:
    """Write each key and edge to the next place of its digit, `starts`. No bounds checking."""
    for k in range(keys.size):
        digit = (keys[k] >> shift) & (starts.size - 1)
        at = starts[digit]
        starts[digit] = at + 1
        out_keys[at] = keys[k]
        out_edges[at] = edges[k]


class MeanQueue(NamedTuple):
    """Queue of the edges to merge; the fields are in the order of the kernel's arguments."""

    # (edges, 2): of the cue, and of the pixels in that sum; without pixels, and so with a mean of
    # infinity, where an edge is gone or must not be merged.
    sums: NDArray[np.int64]
    entered: NDArray[np.float64]  # key of the entry that counts
    gone: NDArray[np.bool_]  # edges that will not be merged any more; a byte each, so quickly read
    order: NDArray[np.int32]  # edges of the initial graph by ascending priority ...
    order_keys: NDArray[np.float64]  # ... and that priority
    changed_keys: NDArray[Any]  # heap of edges that have changed: priority ...
    changed: NDArray[Any]  # ... and edge
    tie_keys: NDArray[Any]  # heap of the current plateau: ids of both regions ...
    ties: NDArray[Any]  # ... and edge
    state: NDArray[np.int64]  # how far `order` has been read, and the sizes of the two heaps
    plateau: NDArray[np.float64]  # (1,): the priority of the current plateau


def mean_queue(records: NDArray[np.void], forbidden: NDArray[np.bool_]) -> MeanQueue:
    """Queue the edges that are not forbidden by their mean, ``sums[:, 0] / (255 sums[:, 1])``."""
    n = len(forbidden)
    sums = records["sums"]
    sums[:n, 1][forbidden] = 0
    mean = np.full(n, np.inf)
    np.divide(sums[:n, 0], 255.0 * sums[:n, 1], out=mean, where=~forbidden)
    records["entered"] = np.inf
    records["entered"][:n] = mean
    order, order_keys = sort_edges(mean)
    # An edge is entered again at most once for each edge that it absorbs and once for each pop;
    # ties are entered again when a region is renamed, and cleared when the heap is full.
    changed_keys, changed = heap_arrays(2 * n, np.float64)
    tie_keys, ties = heap_arrays(3 * n, np.int64)
    return MeanQueue(
        sums=sums,
        entered=records["entered"],
        gone=forbidden.copy(),
        order=order,
        order_keys=order_keys,
        changed_keys=changed_keys,
        changed=changed,
        tie_keys=tie_keys,
        ties=ties,
        state=np.zeros(3, np.int64),
        plateau=np.zeros(1, np.float64),
    )


@inlined
def _mean(edge: Any, sums: Any) -> Any:
    """Return the mean of an edge: computing it takes less time than reading it from memory."""
    return sums[edge, 0] / (255.0 * sums[edge, 1]) if sums[edge, 1] > 0 else np.inf


@inlined
def _renamed(
    node: Any, new_id: Any, ends: Any, lines: Any, nodes: Any, ids: Any, sums: Any,
    tie_keys: Any, ties: Any, n_ties: Any, plateau: Any,
) -> Any:  # fmt: skip
    """Assign a new, smaller id to a node, and new keys to its ties; return the number of ties.

    The time is that of the smaller of its degree and the number of ties: neither a hub that is
    renamed often nor a plateau of half the graph may make the whole quadratic. Invariant: a tie
    whose mean has risen stays in this heap, under any key, until it is popped and entered in the
    other one; it must not be dropped.
    """
    if n_ties < nodes[node, DEGREE] or n_ties + nodes[node, DEGREE] > ties.size:
        kept = np.int64(0)
        for k in range(n_ties):
            edge = ties[k]
            now = _mean(edge, sums)
            risen = now != plateau
            if now < np.inf and (risen or tie_keys[k] == tie_of_edge(ends, ids, edge)):
                ties[kept] = edge
                kept += 1
        ids[node] = new_id
        for k in range(kept):
            tie_keys[k] = tie_of_edge(ends, ids, ties[k])
        heap_order(tie_keys, ties, kept)
        return kept
    ids[node] = new_id
    line = np.int64(nodes[node, HEAD])
    while line >= 0:
        for k in range(FIRST, FIRST + lines[line, COUNT]):
            edge = np.int64(lines[line, k])
            if _mean(edge, sums) == plateau:
                n_ties = heap_push(tie_keys, ties, n_ties, tie_of_edge(ends, ids, edge), edge)
        line = np.int64(lines[line, NEXT_LINE])
    return n_ties


@inlined
def _ask_ahead(cursor: Any, order: Any, gone: Any, ends: Any, nodes: Any, lines: Any) -> None:
    """Ask for the edges that come next in the order, then for their nodes, then for the lists."""
    for step in range(3):
        at = cursor + _AHEAD * (3 - step)
        if at >= order.size:
            continue
        edge = np.int64(order[at])
        if gone[edge]:
            continue
        if step == 0:
            prefetch(ends, edge)
        for side in range(2):
            if step == 1:
                prefetch(nodes, np.int64(ends[edge, side]))
            if step == 2:
                prefetch(lines, np.int64(nodes[ends[edge, side], HEAD]))


@kernel
def merge_by_mean(
    ends: Any, lines: Any, nodes: Any, table: Any, filled: Any, kept: Any, absorbed: Any,
    places: Any, spare: Any, sums: Any, entered: Any, gone: Any, order: Any,
    order_keys: Any, changed_keys: Any, changed: Any, tie_keys: Any, ties: Any, state: Any,
    plateau: Any, ids: Any, winners: Any, losers: Any, priorities: Any, done: Any, stop: Any,
) -> Any:  # fmt: skip
    """Do merges `done` to `stop` - 1; return the number of merges so far, fewer when none is left.

    No bounds checking is performed. The first nine arguments are `EdgeLists`, the next are a
    `MeanQueue`, `ids` has the id of the region of each node; they keep the state between calls.
    """
    # Single arrays, not records as in the other kernels: with records the loop took 5 to 10 %
    # longer, measured in one process.
    cursor, n_changed, n_ties = state
    lowest = plateau[0]
    is_large = ends.shape[0] > LARGE
    while done < stop:
        if n_ties == 0:
            lowest = np.inf
            if cursor < order.size:
                lowest = order_keys[cursor]
            if n_changed > 0:
                lowest = min(lowest, changed_keys[0])
            if lowest == np.inf:
                break
        while True:  # all entries at this priority; some may have risen, or their edges be gone
            if cursor < order.size and order_keys[cursor] == lowest:
                edge = np.int64(order[cursor])
                cursor += 1
                if is_large:
                    _ask_ahead(cursor, order, gone, ends, nodes, lines)
            elif n_changed > 0 and changed_keys[0] == lowest:
                edge = np.int64(changed[0])
                n_changed = heap_pop(changed_keys, changed, n_changed)
            else:
                break
            if gone[edge] or entered[edge] != lowest:
                continue
            now = _mean(edge, sums)
            if now == lowest:
                n_ties = heap_push(tie_keys, ties, n_ties, tie_of_edge(ends, ids, edge), edge)
            else:
                entered[edge] = now
                n_changed = heap_push(changed_keys, changed, n_changed, now, edge)
        if n_ties == 0:
            continue
        edge = np.int64(ties[0])
        key = tie_keys[0]
        n_ties = heap_pop(tie_keys, ties, n_ties)
        now = _mean(edge, sums)
        if now != lowest:
            if entered[edge] == lowest and now < np.inf:  # its mean rose while it was in this heap
                entered[edge] = now
                n_changed = heap_push(changed_keys, changed, n_changed, now, edge)
            continue
        if key != tie_of_edge(ends, ids, edge):
            continue
        a = np.int64(ids[ends[edge, 0]])
        b = np.int64(ids[ends[edge, 1]])
        winners[done] = min(a, b)
        losers[done] = max(a, b)
        priorities[done] = lowest
        done += 1
        sums[edge, 1] = 0
        gone[edge] = True
        n_ties = _renamed(
            ends[edge, 0 if a > b else 1], min(a, b),
            ends, lines, nodes, ids, sums, tie_keys, ties, n_ties, lowest,
        )  # fmt: skip
        _, _, n_parallel = contract_lists(
            edge, is_large, ends, lines, nodes, table, filled, kept, absorbed, places, spare
        )
        for k in range(n_parallel):
            into = np.int64(kept[k])
            other = np.int64(absorbed[k])
            if sums[into, 1] == 0 or sums[other, 1] == 0:
                sums[into, 1] = 0  # a merge forbidden to a part is forbidden to the whole
                gone[into] = True
            else:
                sums[into, 0] += sums[other, 0]
                sums[into, 1] += sums[other, 1]
                mean = _mean(into, sums)
                if mean < entered[into]:
                    entered[into] = mean
                    n_changed = heap_push(changed_keys, changed, n_changed, mean, into)
            sums[other, 1] = 0
            gone[other] = True
    state[0] = cursor
    state[1] = n_changed
    state[2] = n_ties
    plateau[0] = lowest
    return done
