"""Agglomeration by a forest with lazy priorities: the merges of `merge_by_rescoring`, in less time.

A boundary waits in the queue by a lower bound of its priority: the sum of the trees walked so far,
divided by the number of all trees. Leaves are not negative, trees are added in one order, and
rounding is monotone, so that no bound is above the priority, to the last bit. Only a boundary on
top of the queue that has been walked through all trees is merged; another one is walked further
until it is, or until it is on top no more. What a merge scores anew before it gets there never
pays for the rest of the trees.

While the boundaries of a new region are scored, a group of trees is walked for all of them at once,
and those leave whose bound has passed the priority of the merge just made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.heaps import heap_settle
from napari_agglo.agglomeration._adjacency import Adjacency
from napari_agglo.agglomeration._merge_order import comes_before, ids_of, tie_of_edge
from napari_agglo.agglomeration._rescoring import EdgeQueue, _remove, merge_pair
from napari_agglo.features import FeatureState, assemble
from napari_agglo.policy import CHUNK, Forest

_GROUP = 8  # trees between two looks at the bound
_STEPS = 20_000  # boundaries scored or refined between two returns to Python
_LEFT_BITS = 22
_LEFT = np.uint32((1 << _LEFT_BITS) - 1)


class Bounds(NamedTuple):
    """A forest of half-size nodes, buffers for a chunk, and how far each edge has been walked.

    A node is its threshold (the bits of a float32), and its feature and left child in one number;
    the right child is the one after the left. A leaf is its own left child under a threshold of
    infinity.
    """

    roots: NDArray[np.uint32]
    nodes: NDArray[np.uint32]  # (nodes, 2)
    thresholds: NDArray[np.float32]  # the same memory
    values: NDArray[np.float64]
    rows: NDArray[np.float32]  # buffer: features of a chunk of boundaries
    which: NDArray[np.uint32]  # buffer: rows that are walked further
    totals: NDArray[np.float64]  # buffer: sums of the rows
    walked: NDArray[np.int32]  # of each edge: trees so far, and ...
    sums: NDArray[np.float64]  # ... the sum of their values


def fits(forest: Forest, width: int) -> bool:
    """Return whether the nodes of a forest on so many features can be halved."""
    return len(forest.nodes) < 1 << _LEFT_BITS and width <= 1 << (32 - _LEFT_BITS)


def bounds(forest: Forest, width: int, n_edges: int) -> Bounds:
    """Return a forest as the loop takes it."""
    order, place = _siblings_together(forest)
    nodes = forest.nodes[order]
    left = place[nodes[:, 2]]
    halved = np.empty((len(nodes), 2), np.uint32)
    # A leaf is its own left child; nothing goes right of it, whatever threshold the file has there.
    is_leaf = left == np.arange(len(nodes))
    halved[:, 0] = np.where(is_leaf, np.float32(np.inf).view(np.uint32), nodes[:, 1])
    halved[:, 1] = nodes[:, 0] << np.uint32(_LEFT_BITS) | left
    return Bounds(
        roots=place[forest.roots],
        nodes=halved,
        thresholds=halved.view(np.float32),
        values=forest.values[order],
        rows=np.zeros((CHUNK, width), np.float32),
        which=np.zeros(CHUNK, np.uint32),
        totals=np.zeros(CHUNK),
        walked=np.zeros(n_edges, np.int32),
        sums=np.zeros(n_edges),
    )


def _siblings_together(forest: Forest) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return an order of the nodes, tree by tree from the root down, and the place of each in it.

    The two children of a node are neighbours in it.
    """
    tree_of, levels = [np.arange(len(forest.roots))], [forest.roots.astype(np.int64)]
    while len(levels[-1]):
        here = levels[-1]
        inner = forest.nodes[here, 2] != here
        levels.append(forest.nodes[here[inner], 2:].astype(np.int64).reshape(-1))
        tree_of.append(np.repeat(tree_of[-1][inner], 2))
    order = np.concatenate(levels)[np.argsort(np.concatenate(tree_of), kind="stable")]
    place = np.zeros(len(forest.nodes), np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    return order, place


@inlined
def _step(rows: Any, row: Any, node: Any, nodes: Any, thresholds: Any) -> Any:
    """Return the node after `node`. Unsigned indices spare a test for negative ones."""
    word = nodes[node, np.uint64(1)]
    right = not rows[row, word >> np.uint32(_LEFT_BITS)] <= thresholds[node, np.uint64(0)]
    return np.uint32((word & _LEFT) + np.uint32(right))


@inlined
def _walk_rows(
    rows: Any, which: Any, at: Any, root: Any, nodes: Any, thresholds: Any, values: Any, totals: Any
) -> None:
    """Add a tree's value for rows ``which[at]`` to ``which[at + 7]`` to their totals."""
    r0, r1, r2, r3 = which[at], which[at + 1], which[at + 2], which[at + 3]
    r4, r5, r6, r7 = which[at + 4], which[at + 5], which[at + 6], which[at + 7]
    n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = root
    while True:
        m0 = _step(rows, r0, n0, nodes, thresholds)
        m1 = _step(rows, r1, n1, nodes, thresholds)
        m2 = _step(rows, r2, n2, nodes, thresholds)
        m3 = _step(rows, r3, n3, nodes, thresholds)
        m4 = _step(rows, r4, n4, nodes, thresholds)
        m5 = _step(rows, r5, n5, nodes, thresholds)
        m6 = _step(rows, r6, n6, nodes, thresholds)
        m7 = _step(rows, r7, n7, nodes, thresholds)
        low = (m0 ^ n0) | (m1 ^ n1) | (m2 ^ n2) | (m3 ^ n3)
        if low | (m4 ^ n4) | (m5 ^ n5) | (m6 ^ n6) | (m7 ^ n7) == 0:
            break
        n0, n1, n2, n3, n4, n5, n6, n7 = m0, m1, m2, m3, m4, m5, m6, m7
    totals[r0] += values[n0]
    totals[r1] += values[n1]
    totals[r2] += values[n2]
    totals[r3] += values[n3]
    totals[r4] += values[n4]
    totals[r5] += values[n5]
    totals[r6] += values[n6]
    totals[r7] += values[n7]


@kernel
def _walk_trees(
    row: Any, tree: Any, stop: Any, total: Any, rows: Any, roots: Any, nodes: Any, thresholds: Any,
    values: Any,
) -> Any:  # fmt: skip
    """Return a row's `total` with the values of trees `tree` to `stop` - 1, added in their order.

    Four trees go side by side: their walks hide each other's waiting. No bounds checking.
    """
    while tree + 4 <= stop:
        n0, n1, n2, n3 = roots[tree], roots[tree + 1], roots[tree + 2], roots[tree + 3]
        while True:
            m0 = _step(rows, row, n0, nodes, thresholds)
            m1 = _step(rows, row, n1, nodes, thresholds)
            m2 = _step(rows, row, n2, nodes, thresholds)
            m3 = _step(rows, row, n3, nodes, thresholds)
            if (m0 ^ n0) | (m1 ^ n1) | (m2 ^ n2) | (m3 ^ n3) == 0:
                break
            n0, n1, n2, n3 = m0, m1, m2, m3
        total += values[n0]
        total += values[n1]
        total += values[n2]
        total += values[n3]
        tree += 4
    while tree < stop:
        node = roots[tree]
        while True:
            following = _step(rows, row, node, nodes, thresholds)
            if following == node:
                break
            node = following
        total += values[node]
        tree += 1
    return total


@kernel
def enter_bounds(
    edges: Any, n: Any, limit: Any, bounds: Bounds, queue: EdgeQueue, ends: Any, ids: Any,
    features: FeatureState,
) -> None:  # fmt: skip
    """Queue the first `n` of `edges` by bounds that are walked until they pass `limit`.

    No bounds checking.
    """
    roots, nodes, thresholds, values, rows, which, totals, walked, sums = bounds
    priority, ties, heap, place, size = queue
    n_trees: Any = np.int64(roots.size)
    wall = limit * n_trees
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        for k in range(m):
            edge = edges[start + k]
            u = np.int64(ends[edge, 0])
            v = np.int64(ends[edge, 1])
            assemble(edge, u, v, np.int64(ids[u]), np.int64(ids[v]), rows, k, features)
            totals[k] = 0.0
            which[k] = k
        active = m
        tree: Any = np.int64(0)
        while active > 0 and tree < n_trees:
            stop = min(tree + _GROUP, n_trees)
            eights = active - active % 8
            for one in range(tree, stop):
                for at in range(0, eights, 8):
                    _walk_rows(rows, which, at, roots[one], nodes, thresholds, values, totals)
            for at in range(eights, active):
                row = which[at]
                totals[row] = _walk_trees(
                    row, tree, stop, totals[row], rows, roots, nodes, thresholds, values
                )
            tree = stop
            left = 0
            for at in range(active):
                row = which[at]
                walked[edges[start + row]] = tree
                which[left] = row
                left += totals[row] <= wall
            active = left
        for k in range(m):
            edge = edges[start + k]
            sums[edge] = totals[k]
            priority[edge] = totals[k] / n_trees
            ties[edge] = tie_of_edge(ends, ids, edge)
            spot = np.int64(place[edge])
            if spot < 0:
                spot = size[0]
                size[0] += 1
            heap_settle(edge, spot, comes_before, priority, ties, heap, place, size[0])


@inlined
def _refine(
    edge: Any, bounds: Bounds, queue: EdgeQueue, ends: Any, ids: Any, features: FeatureState
) -> None:
    """Walk on for the edge on top until all trees are walked, or another edge comes before it."""
    roots, nodes, thresholds, values, rows, _, _, walked, sums = bounds
    priority, ties, heap, place, size = queue
    n_trees = np.int64(roots.size)
    second = np.inf
    for at in range(1, min(3, size[0])):
        second = min(second, priority[heap[at]])
    u = np.int64(ends[edge, 0])
    v = np.int64(ends[edge, 1])
    assemble(edge, u, v, np.int64(ids[u]), np.int64(ids[v]), rows, np.int64(0), features)
    tree = np.int64(walked[edge])
    total = sums[edge]
    while True:  # one group at least: the product may be rounded to below the sum
        stop = min(tree + _GROUP, n_trees)
        total = _walk_trees(np.uint32(0), tree, stop, total, rows, roots, nodes, thresholds, values)
        tree = stop
        if tree == n_trees or total > second * n_trees:
            break
    walked[edge] = tree
    sums[edge] = total
    priority[edge] = total / n_trees
    heap_settle(edge, np.int64(0), comes_before, priority, ties, heap, place, size[0])


@kernel
def merge_lazily(
    adjacency: Adjacency,
    queue: EdgeQueue,
    touched: Any,
    bounds: Bounds,
    features: FeatureState,
    ids: Any,
    winners: Any,
    losers: Any,
    priorities: Any,
    done: Any,
    stop: Any,
) -> Any:
    """Do merges `done` to `stop` - 1 as `merge_by_rescoring` does them, to the last bit.

    Returns early, too, when it has scored very many boundaries. No bounds checking.
    """
    ends = adjacency.ends
    priority, ties, heap, place, size = queue
    walked = bounds.walked
    n_trees = bounds.roots.size
    scored = 0
    while done < stop and size[0] > 0 and scored < _STEPS:
        edge = np.int64(heap[0])
        if walked[edge] < n_trees:
            scored += 1
            _refine(edge, bounds, queue, ends, ids, features)
            continue
        now = priority[edge]
        winners[done], losers[done] = ids_of(ends, ids, edge)
        priorities[done] = now
        _remove(edge, priority, ties, heap, place, size)
        _, _, _, n = merge_pair(edge, winners[done], touched, adjacency, queue, ids, features)
        done += 1
        scored += n
        enter_bounds(touched, n, now, bounds, queue, ends, ids, features)
    return done
