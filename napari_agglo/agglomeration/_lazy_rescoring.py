"""Agglomeration by a forest with lazy priorities: the merges of `merge_by_rescoring`, in less time.

The queue is ordered by a lower bound of the priority of each boundary: the sum of the values of the
trees evaluated so far, divided by the number of all trees. Leaves are not negative, trees are added
in one order, and rounding is monotone, so that no bound exceeds the priority, to the last bit. Only
a boundary on top of the queue that all trees have been evaluated for is merged; for another one
further trees are evaluated until that is so, or until it is no longer on top. A boundary that a
merge changes before that never costs the rest of the trees.

To score the boundaries of a new region, a group of trees is evaluated for all of them at once, and
the boundaries whose bound exceeds the priority of the merge just done are left out of the next.
Once that priority is high, this takes many trees. The features of boundaries are then kept as codes
(`policy/_threshold_codes.py`), and a boundary whose codes stay keeps its bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.heaps import heap_settle
from napari_agglo.agglomeration._adjacency import Adjacency
from napari_agglo.agglomeration._merge_order import comes_before, ids_of
from napari_agglo.agglomeration._rescoring import EdgeQueue, _remove, merge_pair, put_edge
from napari_agglo.features import FeatureState, assemble
from napari_agglo.policy import CHUNK, Scoring, Trees, walk_row, walk_rows
from napari_agglo.policy._threshold_codes import CodedForest, coded_forest, update_codes

# Trees between two looks at the bound. Of groups of 1, 2, 4 and 8, with limits of 0.8 to 1.1 times
# the priority, these took the least time on the sample and on real volumes.
_GROUP = 4  # for a chunk of boundaries
_ON_TOP = 8  # for the one on top of the queue, whose features are assembled once more
# Sum of trees to reach from which features are kept as codes: computing these takes as long as some
# ten trees. Of 16, 32 and 64 this took the least time, by a little.
_CODED = 16.0
_STEPS = 20_000  # boundaries scored or refined between two returns to Python


class Bounds(NamedTuple):
    """A forest, buffers for a chunk, and the trees evaluated for each edge."""

    trees: Trees
    rows: NDArray[np.float32]  # buffer: features of a chunk of boundaries
    which: NDArray[np.uint32]  # buffer: rows that are walked further
    totals: NDArray[np.float64]  # buffer: sums of the rows
    walked: NDArray[np.int32]  # of each edge: trees so far, and ...
    sums: NDArray[np.float64]  # ... the sum of their values
    top: NDArray[np.int64]  # buffer: the edge on top of the queue
    coded: CodedForest
    least_coded: (
        float  # sum of trees from which boundaries are coded; infinite if that does not pay
    )
    codes: NDArray[np.uint16]  # (edges, features)
    is_coded: NDArray[np.bool_]  # whether `codes` are those of the present features of an edge
    row_bits: NDArray[np.int32]  # the memory of `rows`


def bounds(scoring: Scoring, n_edges: int) -> Bounds:
    """Return the record of a forest for the loop."""
    width = scoring.rows.shape[1]
    coded = coded_forest(scoring.trees, width)
    return Bounds(
        trees=scoring.trees,
        rows=scoring.rows,
        which=scoring.which,
        totals=scoring.scores,
        walked=np.zeros(n_edges, np.int32),
        sums=np.zeros(n_edges),
        top=np.zeros(1, np.int64),
        coded=coded,
        least_coded=_CODED if coded.pays else np.inf,
        codes=np.zeros((n_edges, width), np.uint16),  # memory is taken where it is first written
        is_coded=np.zeros(n_edges, np.bool_),
        row_bits=scoring.rows.view(np.int32),
    )


@kernel
def enter_bounds(
    edges: Any, n: Any, limit: Any, bounds: Bounds, queue: EdgeQueue, ends: Any, ids: Any,
    features: FeatureState,
) -> None:  # fmt: skip
    """Queue the first `n` of `edges` by bounds that are refined until they exceed `limit`.

    No bounds checking.
    """
    trees, rows, which, totals, walked, sums, _, coded, least_coded, codes, is_coded, bits = bounds
    coded_trees, cuts, moved, _ = coded
    priority, ties, heap, place, size = queue
    n_trees: Any = np.int64(trees.roots.size)
    wall = limit * n_trees
    keeps_codes = wall >= least_coded
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        assemble(edges, start, m, ends, ids, 0, rows, features)
        active: Any = np.int64(0)
        for k in range(m):
            edge = edges[start + k]
            totals[k] = 0.0
            stays = keeps_codes and update_codes(k, bits, edge, codes, cuts, moved)
            if stays and is_coded[edge]:
                tree: Any = np.int64(walked[edge])
                total = sums[edge]
                while total <= wall and tree < n_trees:
                    stop = min(tree + _GROUP, n_trees)
                    total = walk_row(np.uint32(edge), tree, stop, total, codes, coded_trees)
                    tree = stop
                walked[edge] = tree
                totals[k] = total
            else:
                which[active] = k
                active += 1
            is_coded[edge] = keeps_codes
        tree = np.int64(0)
        while active > 0 and tree < n_trees:
            stop = min(tree + _GROUP, n_trees)
            walk_rows(rows, which, active, tree, stop, trees, totals)
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
            put_edge(edge, totals[k] / n_trees, ends, ids, priority, ties, heap, place, size)


@inlined
def _refine(
    edge: Any, bounds: Bounds, queue: EdgeQueue, ends: Any, ids: Any, features: FeatureState
) -> None:
    """Refine the bound of the edge on top until all trees are in it, or another edge is on top."""
    trees, rows, _, _, walked, sums, top, coded, _, codes, is_coded, _ = bounds
    priority, ties, heap, place, size = queue
    n_trees = np.int64(trees.roots.size)
    second = np.inf
    for at in range(1, min(3, size[0])):
        second = min(second, priority[heap[at]])
    if not is_coded[edge]:
        top[0] = edge
        assemble(top, 0, 1, ends, ids, 0, rows, features)
    tree = np.int64(walked[edge])
    total = sums[edge]
    while True:  # one group at least: the product may be rounded to below the sum
        stop = min(tree + _ON_TOP, n_trees)
        if is_coded[edge]:
            total = walk_row(np.uint32(edge), tree, stop, total, codes, coded.trees)
        else:
            total = walk_row(np.uint32(0), tree, stop, total, rows, trees)
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

    The kernel also returns when it has scored very many boundaries. No bounds checking.
    """
    ends = adjacency.ends
    priority, ties, heap, place, size = queue
    walked = bounds.walked
    n_trees = bounds.trees.roots.size
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
