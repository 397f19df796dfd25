"""Where a run must begin again for a cut: just before the first merge that crosses its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel
from napari_agglo.agglomeration import heap_pop, heap_push
from napari_agglo.session._repair._nodes import (
    BIRTH,
    EDIT,
    FIRST,
    LOW,
    MARK,
    PARENT,
    PRIORITY,
    SECOND,
    Nodes,
)


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
    n = _run_until_crossing(order, ranked, lowest, heap, heap.copy(), alive, links, scales)
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
    order: Any, ranked: Any, lowest: Any, heap: Any, spare: Any, alive: Any, links: Any,
    scales: Any,
) -> Any:  # fmt: skip
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
            size = heap_push(heap, spare, size, rank, 0)
    while size > 0:
        rank = heap[0]
        size = heap_pop(heap, spare, size)
        node = ranked[rank]
        if links[node, MARK] < 0:
            break
        links[node, MARK] = 1
        up = np.int64(links[node, PARENT])
        if abs(links[up, MARK]) > 1:
            other = links[up, FIRST] if links[up, SECOND] == node else links[up, SECOND]
            if links[other, MARK] == 1:
                size = heap_push(heap, spare, size, abs(links[up, MARK]) - 2, 0)
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
