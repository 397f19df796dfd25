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

from napari_agglo._numba import inlined, kernel
from napari_agglo.agglomeration._adjacency import HEAD, NEXT, contract
from napari_agglo.features import fill_edge, fill_node
from napari_agglo.graph import merge_boundaries, merge_regions
from napari_agglo.policy import CHUNK, score_chunk

# Boundaries to ask a policy about between two looks at the world: a twentieth of a second or so.
_ASKED = 20_000


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
def remove_edge(edge: Any, priority: Any, ties: Any, heap: Any, place: Any, size: Any) -> None:
    """Take `edge` out of the heap, if it is there."""
    at = np.int64(place[edge])
    if at < 0:
        return
    place[edge] = -1
    size[0] -= 1
    if at < size[0]:
        _settle(heap[size[0]], at, priority, ties, heap, place, size)


@inlined
def enter_edges(
    edges: Any, n: Any, priority: Any, ties: Any, heap: Any, place: Any, size: Any,
    ends: Any, ids: Any,
    kind: Any, parameter: Any, roots: Any, nodes: Any, thresholds: Any, values: Any, weights: Any,
    in_bag: Any, group: Any, rows: Any, owners: Any, which: Any, counts: Any, scores: Any,
    regions: Any, boxes: Any, boundaries: Any, layout: Any, quantiles: Any, scale: Any,
    node_block: Any, edge_block: Any, entropy: Any, axis: Any,
) -> None:  # fmt: skip
    """Score the first `n` of `edges` and put each, new or known, where it belongs in the heap."""
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        score_chunk(
            edges, start, m, ends, ids,
            kind, parameter, roots, nodes, thresholds, values, weights,
            in_bag, group, rows, owners, which, counts, scores,
            regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
        for k in range(m):
            edge = edges[start + k]
            low, high = _ids_of(ends, ids, edge)
            priority[edge] = scores[k]
            ties[edge] = low * ids.size + high
            at = np.int64(place[edge])
            if at < 0:
                at = size[0]
                size[0] += 1
            _settle(edge, at, priority, ties, heap, place, size)


@kernel
def fill_queue(
    touched: Any, priority: Any, ties: Any, heap: Any, place: Any, size: Any, ends: Any, ids: Any,
    kind: Any, parameter: Any, roots: Any, nodes: Any, thresholds: Any, values: Any, weights: Any,
    in_bag: Any, group: Any, rows: Any, owners: Any, which: Any, counts: Any, scores: Any,
    regions: Any, boxes: Any, boundaries: Any, layout: Any, quantiles: Any, scale: Any,
    node_block: Any, edge_block: Any, entropy: Any, axis: Any,
) -> None:  # fmt: skip
    """Score all edges in `touched` and queue them. No bounds checking."""
    enter_edges(
        touched, touched.size, priority, ties, heap, place, size, ends, ids,
        kind, parameter, roots, nodes, thresholds, values, weights,
        in_bag, group, rows, owners, which, counts, scores,
        regions, boxes, boundaries, layout, quantiles, scale,
        node_block, edge_block, entropy, axis,
    )  # fmt: skip


@inlined
def merge_pair(
    edge: Any, winner: Any, touched: Any,
    ends: Any, links: Any, lists: Any, table: Any, filled: Any, kept: Any, absorbed: Any,
    priority: Any, ties: Any, heap: Any, place: Any, size: Any, ids: Any,
    regions: Any, boxes: Any, boundaries: Any, layout: Any, quantiles: Any, scale: Any,
    node_block: Any, edge_block: Any, entropy: Any, axis: Any,
) -> Any:  # fmt: skip
    """Merge the regions of `edge`, which is not queued; return survivor, gone and two counts.

    All that is known of the two regions and of their boundaries is added up. The counts are of the
    edges absorbed by parallel ones and of the boundaries of the new region that the policy must be
    asked about, the first of `touched`.
    """
    survivor, gone, n_parallel = contract(edge, ends, links, lists, table, filled, kept, absorbed)
    ids[survivor] = winner
    merge_regions(regions, boxes, survivor, gone, boundaries, edge, layout[0])
    for k in range(n_parallel):
        into = np.int64(kept[k])
        other = np.int64(absorbed[k])
        merge_boundaries(boundaries, into, other)
        remove_edge(other, priority, ties, heap, place, size)
        if priority[other] == np.inf:  # what is forbidden to a part is forbidden to the whole
            remove_edge(into, priority, ties, heap, place, size)
            priority[into] = np.inf
        elif node_block.size > 0:
            fill_edge(
                into, regions, boxes, boundaries, layout, quantiles, scale,
                node_block, edge_block, entropy, axis,
            )  # fmt: skip
    if node_block.size > 0:
        fill_node(
            survivor, regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
    n = 0
    half = np.int64(lists[survivor, HEAD])
    while half >= 0:
        edge = half >> 1
        touched[n] = edge
        n += priority[edge] != np.inf
        half = np.int64(links[edge, half & 1, NEXT])
    return survivor, gone, n_parallel, n


@kernel
def merge_by_rescoring(
    ends: Any, links: Any, lists: Any, table: Any, filled: Any, kept: Any, absorbed: Any,
    priority: Any, ties: Any, heap: Any, place: Any, size: Any, touched: Any,
    kind: Any, parameter: Any, roots: Any, nodes: Any, thresholds: Any, values: Any, weights: Any,
    in_bag: Any, group: Any, rows: Any, owners: Any, which: Any, counts: Any, scores: Any,
    regions: Any, boxes: Any, boundaries: Any, layout: Any, quantiles: Any, scale: Any,
    node_block: Any, edge_block: Any, entropy: Any, axis: Any,
    ids: Any, winners: Any, losers: Any, priorities: Any, done: Any, stop: Any,
) -> Any:  # fmt: skip
    """Do merges `done` to `stop` - 1; return how many are done in all, fewer when none is left.

    No bounds checking is performed. The first line is an `Adjacency`, then come an `EdgeQueue`, a
    buffer for the edges of a node, a `Scoring` and a `FeatureState`; `ids` holds the id of the
    region of each node. All of them hold the state between two calls. Returns early, too, when it
    has asked the policy about very many boundaries, so that a cancel is noticed.
    """
    asked = 0
    while done < stop and size[0] > 0 and asked < _ASKED:
        edge = np.int64(heap[0])
        winners[done], losers[done] = _ids_of(ends, ids, edge)
        priorities[done] = priority[edge]
        remove_edge(edge, priority, ties, heap, place, size)
        _, _, _, n = merge_pair(
            edge, winners[done], touched, ends, links, lists, table, filled, kept, absorbed,
            priority, ties, heap, place, size, ids,
            regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
        done += 1
        asked += n
        enter_edges(
            touched, n, priority, ties, heap, place, size, ends, ids,
            kind, parameter, roots, nodes, thresholds, values, weights,
            in_bag, group, rows, owners, which, counts, scores,
            regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
    return done
