"""Agglomeration by any policy: after a merge, every boundary of the new region is scored anew.

Strategy: statistics are rows; a merge adds the rows of the two regions and of the boundaries that
become one, and then asks the policy about every boundary of the region that came out. The queue is
a binary heap of edges in which each edge knows its place, so that a change moves it there and the
heap never holds a stale entry. It is ordered by (priority, smaller id, larger id): all boundaries
whose ids a merge changes belong to the new region, so they are entered anew, one at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import inlined, kernel
from napari_agglo.agglomeration._adjacency import HEAD, NEXT, contract
from napari_agglo.graph import merge_boundaries, merge_regions
from napari_agglo.policy import score_boundary


class EdgeQueue(NamedTuple):
    """An indexed heap of edges, in the order in which kernels take its arrays."""

    priority: NDArray[np.float64]  # of each edge; inf where a merge is forbidden
    ties: NDArray[np.int64]  # (smaller id, larger id) of its regions as one number
    heap: NDArray[np.int32]  # edges, the lowest first
    place: NDArray[np.int32]  # of each edge in the heap, -1 if it is not there
    size: NDArray[np.int64]  # (1,): edges in the heap


def edge_queue(forbidden: NDArray[np.bool_]) -> EdgeQueue:
    """Return an empty queue for all edges that are not forbidden."""
    n = len(forbidden)
    return EdgeQueue(
        priority=np.where(forbidden, np.inf, 0.0),
        ties=np.zeros(n, np.int64),
        heap=np.empty(n, np.int32),
        place=np.full(n, -1, np.int32),
        size=np.zeros(1, np.int64),
    )


@inlined
def _ids_of(ends: Any, ids: Any, edge: Any) -> Any:
    """(smaller id, larger id) of the regions on both sides."""
    a = np.int64(ids[ends[edge, 0]])
    b = np.int64(ids[ends[edge, 1]])
    return min(a, b), max(a, b)


@inlined
def _comes_before(edge: Any, other: Any, priority: Any, ties: Any) -> Any:
    """Whether `edge` is to be merged before `other`."""
    if priority[edge] != priority[other]:
        return priority[edge] < priority[other]
    return ties[edge] < ties[other]


@inlined
def _settle(edge: Any, at: Any, priority: Any, ties: Any, heap: Any, place: Any, size: Any) -> None:
    """Put `edge`, whose place `at` is free, where it belongs."""
    while at > 0:
        above = (at - 1) >> 1
        if not _comes_before(edge, heap[above], priority, ties):
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    while True:
        below = 2 * at + 1
        if below >= size[0]:
            break
        if below + 1 < size[0] and _comes_before(heap[below + 1], heap[below], priority, ties):
            below += 1
        if not _comes_before(heap[below], edge, priority, ties):
            break
        heap[at] = heap[below]
        place[heap[at]] = at
        at = below
    heap[at] = edge
    place[edge] = at


@inlined
def _remove(edge: Any, priority: Any, ties: Any, heap: Any, place: Any, size: Any) -> None:
    """Take `edge` out of the heap, if it is there."""
    at = np.int64(place[edge])
    if at < 0:
        return
    place[edge] = -1
    size[0] -= 1
    if at < size[0]:
        _settle(heap[size[0]], at, priority, ties, heap, place, size)


@inlined
def _enter(
    edge: Any, kind: Any, parameter: Any, ndim: Any, boundaries: Any, ends: Any, ids: Any,
    priority: Any, ties: Any, heap: Any, place: Any, size: Any,
) -> None:  # fmt: skip
    """Score `edge` and put it, new or known, where it belongs in the heap."""
    low, high = _ids_of(ends, ids, edge)
    priority[edge] = score_boundary(kind, parameter, ndim, boundaries, edge, low, high)
    ties[edge] = low * ids.size + high
    at = np.int64(place[edge])
    if at < 0:
        at = size[0]
        size[0] += 1
    _settle(edge, at, priority, ties, heap, place, size)


@kernel
def fill_queue(
    ends: Any, priority: Any, ties: Any, heap: Any, place: Any, size: Any, kind: Any,
    parameter: Any, ndim: Any, boundaries: Any, ids: Any,
) -> None:  # fmt: skip
    """Score all edges that are not forbidden and queue them. No bounds checking."""
    for edge in range(ends.shape[0]):
        if priority[edge] != np.inf:
            _enter(
                edge, kind, parameter, ndim, boundaries, ends, ids,
                priority, ties, heap, place, size,
            )  # fmt: skip


@kernel
def merge_by_rescoring(
    ends: Any, links: Any, nodes: Any, table: Any, filled: Any, kept: Any, absorbed: Any,
    priority: Any, ties: Any, heap: Any, place: Any, size: Any, kind: Any, parameter: Any,
    ndim: Any, regions: Any, boxes: Any, boundaries: Any, ids: Any, winners: Any, losers: Any,
    priorities: Any, done: Any, stop: Any,
) -> Any:  # fmt: skip
    """Do merges `done` to `stop` - 1; return how many are done in all, fewer when none is left.

    No bounds checking is performed. The first line is an `Adjacency` and an `EdgeQueue`, the second
    a policy and the rows of statistics, which are added up in place; `ids` holds the id of the
    region of each node. All of them hold the state between two calls.
    """
    while done < stop and size[0] > 0:
        edge = np.int64(heap[0])
        winners[done], losers[done] = _ids_of(ends, ids, edge)
        priorities[done] = priority[edge]
        _remove(edge, priority, ties, heap, place, size)
        survivor, gone, n_parallel = contract(
            edge, ends, links, nodes, table, filled, kept, absorbed
        )
        ids[survivor] = winners[done]
        done += 1
        merge_regions(regions, boxes, survivor, gone, boundaries, edge, ndim)
        for k in range(n_parallel):
            into = np.int64(kept[k])
            other = np.int64(absorbed[k])
            merge_boundaries(boundaries, into, other)
            _remove(other, priority, ties, heap, place, size)
            if priority[other] == np.inf:  # what is forbidden to a part is forbidden to the whole
                _remove(into, priority, ties, heap, place, size)
                priority[into] = np.inf
        half = np.int64(nodes[survivor, HEAD])
        while half >= 0:
            edge = half >> 1
            if priority[edge] != np.inf:
                _enter(
                    edge, kind, parameter, ndim, boundaries, ends, ids,
                    priority, ties, heap, place, size,
                )  # fmt: skip
            half = np.int64(links[edge, half & 1, NEXT])
    return done
