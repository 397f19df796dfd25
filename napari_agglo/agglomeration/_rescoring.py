"""Agglomeration by any policy: after a merge, every boundary of the new region is scored again.

Strategy: statistics are rows; a merge adds the rows of the two regions and of the boundaries that
become one, and the policy then scores every boundary of the new region. The queue is an indexed
binary heap of edges: an edge whose priority changes is moved, so that the heap never has a stale
entry. It is ordered by (priority, smaller id, larger id): all boundaries whose ids a merge changes
belong to the new region, so they are entered again, one at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo._numba.heaps import heap_settle
from napari_agglo.agglomeration._adjacency import HEAD, NEXT, Adjacency, contract_arrays
from napari_agglo.agglomeration._merge_order import comes_before, ids_of, tie_of_edge
from napari_agglo.features import NDIM, FeatureState, fill_edge, fill_node
from napari_agglo.graph import merge_boundaries, merge_hulls, merge_regions
from napari_agglo.policy import CHUNK, Scoring, score_chunk

# Boundaries to score between two returns to Python: about a twentieth of a second.
_SCORED = 20_000


class EdgeQueue(NamedTuple):
    """Indexed heap of the edges that may be merged, the lowest priority first.

    Invariants: ``heap[place[edge]] == edge`` for each edge in the heap, and ``place[edge] == -1``
    for every other edge. Forbidden and contracted edges are not in the heap; forbidden edges have
    a priority of infinity.
    """

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
def remove_edge(edge: Any, queue: EdgeQueue) -> None:
    """Take `edge` out of the heap, if it is there."""
    priority, ties, heap, place, size = queue
    _remove(edge, priority, ties, heap, place, size)


@inlined
def _remove(edge: Any, priority: Any, ties: Any, heap: Any, place: Any, size: Any) -> None:
    """Do the same as `remove_edge`, with the arrays of an `EdgeQueue` unpacked before a loop."""
    at = np.int64(place[edge])
    if at < 0:
        return
    place[edge] = -1
    size[0] -= 1
    if at < size[0]:
        last = np.int64(heap[size[0]])
        heap_settle(last, at, comes_before, priority, ties, heap, place, size[0])


@inlined
def put_edge(
    edge: Any, score: Any, ends: Any, ids: Any, priority: Any, ties: Any, heap: Any, place: Any,
    size: Any,
) -> None:  # fmt: skip
    """Put `edge`, new or known, where its `score` belongs in the heap."""
    priority[edge] = score
    ties[edge] = tie_of_edge(ends, ids, edge)
    at = np.int64(place[edge])
    if at < 0:
        at = size[0]
        size[0] += 1
    heap_settle(edge, at, comes_before, priority, ties, heap, place, size[0])


@subroutine
def enter_edges(
    edges: Any,
    n: Any,
    queue: EdgeQueue,
    ends: Any,
    ids: Any,
    scoring: Scoring,
    features: FeatureState,
) -> None:
    """Score the first `n` of `edges`, and enter each into the heap or move it within the heap."""
    priority, ties, heap, place, size = queue
    scores = scoring.scores
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        score_chunk(edges, start, m, ends, ids, scoring, features)
        for k in range(m):
            put_edge(edges[start + k], scores[k], ends, ids, priority, ties, heap, place, size)


@kernel
def fill_queue(
    edges: Any, queue: EdgeQueue, ends: Any, ids: Any, scoring: Scoring, features: FeatureState
) -> None:
    """Score all `edges` and queue them. No bounds checking."""
    enter_edges(edges, edges.size, queue, ends, ids, scoring, features)


@subroutine
def merge_pair(
    edge: Any,
    winner: Any,
    touched: Any,
    adjacency: Adjacency,
    queue: EdgeQueue,
    ids: Any,
    features: FeatureState,
) -> Any:
    """Merge the regions of `edge`, which is not queued; return survivor, gone and two counts.

    The statistics of the two regions and of their boundaries are summed. The counts are those of
    the edges absorbed by parallel edges, and of the boundaries of the new region that the policy
    must score, the first of `touched`: all of them, as a merge changes their features and ids.
    """
    ends, links, lists, table, filled, kept, absorbed = adjacency
    priority, ties, heap, place, size = queue
    regions, boxes, boundaries = features.regions, features.boxes, features.boundaries
    learned = features.node_block.size > 0
    survivor, gone, n_parallel = contract_arrays(
        edge, ends, links, lists, table, filled, kept, absorbed
    )
    ids[survivor] = winner
    merge_regions(regions, boxes, survivor, gone, boundaries, edge, features.layout[NDIM])
    if features.hulls.first.size > 0:
        merge_hulls(survivor, gone, features.hulls)
    for k in range(n_parallel):
        into = np.int64(kept[k])
        other = np.int64(absorbed[k])
        merge_boundaries(boundaries, into, other)
        _remove(other, priority, ties, heap, place, size)
        if priority[other] == np.inf:  # what is forbidden to a part is forbidden to the whole
            _remove(into, priority, ties, heap, place, size)
            priority[into] = np.inf
        elif learned:
            fill_edge(into, features)
    if learned:
        fill_node(survivor, features)
    n = np.int64(0)
    half = np.int64(lists[survivor, HEAD])
    while half >= 0:
        edge = half >> 1
        touched[n] = edge
        n += priority[edge] != np.inf
        half = np.int64(links[edge, half & 1, NEXT])
    return survivor, gone, n_parallel, n


@kernel
def merge_by_rescoring(
    adjacency: Adjacency,
    queue: EdgeQueue,
    touched: Any,
    scoring: Scoring,
    features: FeatureState,
    ids: Any,
    winners: Any,
    losers: Any,
    priorities: Any,
    done: Any,
    stop: Any,
) -> Any:
    """Do merges `done` to `stop` - 1; return the number of merges so far, fewer when none is left.

    No bounds checking is performed. `touched` is a buffer for the edges of a node, `ids` has the id
    of the region of each node. The arrays have the whole state between two calls. The kernel also
    returns when it has scored very many boundaries, so that the work can be cancelled.
    """
    ends = adjacency.ends
    priority, ties, heap, place, size = queue
    scored = 0
    while done < stop and size[0] > 0 and scored < _SCORED:
        edge = np.int64(heap[0])
        winner, losers[done] = ids_of(ends, ids, edge)
        winners[done] = winner
        priorities[done] = priority[edge]
        _remove(edge, priority, ties, heap, place, size)
        _, _, _, n = merge_pair(edge, winner, touched, adjacency, queue, ids, features)
        done += 1
        scored += n
        enter_edges(touched, n, queue, ends, ids, scoring, features)
    return done
