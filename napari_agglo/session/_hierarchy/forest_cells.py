"""Priorities of a forest for boundaries that change little: what stays in its cell is not scored.

The priority of a boundary stays the same as long as no feature passes a threshold of any tree. Each
boundary has a *cell*: for each feature the two thresholds around its value, and the leaf that the
boundary reached in each tree. When a feature has passed some thresholds, only the trees are walked
again in which one of these thresholds is on the way to the leaf.

A large region changes little by a merge, but it has thousands of boundaries. Computing all their
features to find that none has passed a threshold took most of the time of a look. `_stays` finds
that out without computing all of them, in three ways:

- The features of one region are compared with thresholds once for all its boundaries. A region gets
  a new *stamp* when one of them passes a threshold.
- Differences of moments, shares of the surface and shapes are cheap: they are computed, by the
  functions that `assemble` calls.
- The divergence of two histograms is bounded. Its square root is a metric, that is, a distance to
  which the triangle inequality applies: if one histogram moves by a and the other by b, the
  distance of the two changes by at most a + b. `moved` has the sum of the moves of a region so far,
  and a boundary keeps the sum at which its divergence was last computed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo.features import NDIM, FeatureMap, FeatureState, assemble
from napari_agglo.features._kernels import (
    ANGLES,
    BINS,
    COMPARISONS,
    HULLS,
    N_CUES,
    POWERS,
    _first_cue,
    compare_contact,
    compare_moments,
)
from napari_agglo.policy import FOREST, Scoring, Trees, tree_values

# Boundaries and regions whose cells are kept, the last ones.
_EDGES, _SLOTS = 1 << 15, 1 << 13
# Thresholds passed, by tree, above which looking for those on the way costs more than walking.
_PASSED = 16
# Rounding of a divergence, and of the float32 that is kept of it, is far below these.
_ABSOLUTE, _RELATIVE = 1e-12, 1e-6


class Thresholds(NamedTuple):
    """The thresholds of a forest: those of a feature ascend, between -inf and inf.

    Leaves are numbered so that those below a node follow each other.
    """

    starts: NDArray[np.int64]  # of each feature
    values: NDArray[np.float32]
    trees: NDArray[np.int32]  # that each is of
    spans: NDArray[np.int32]  # (thresholds, 2): the leaves below its node, first and one past last
    forest: Trees  # with the number of a leaf as its value
    leaf_values: NDArray[np.float64]


class Cells(NamedTuple):
    """Cells of regions and boundaries.

    Features of a region are other columns where it is the smaller of two regions (side 0) than
    where it is the larger one. The place of a feature is the number of the first threshold that is
    not below it.
    """

    counts: NDArray[np.int64]  # (3,): stamps so far, the next cells of a region and a boundary
    slot_cell: NDArray[np.int32]  # of each slot, -1 until it grows; it may be another one's by now
    slot: NDArray[np.int32]  # (cells,): whose it is, -1 at first
    stamps: NDArray[np.int64]  # (cells, sides): another one when the region has left its cell
    slot_places: NDArray[np.int32]  # (cells, sides, features of one region)
    shares: NDArray[np.float64]  # (cells, cues, bins): histograms
    moved: NDArray[np.float64]  # (cells, cues): bound of the way that they have gone
    edge_cell: NDArray[np.int32]  # of each edge; it may be another one's by now
    edge: NDArray[np.int32]  # (cells,): whose it is, -1 at first
    priority: NDArray[np.float64]
    places: NDArray[np.int32]  # (cells, features)
    limits: NDArray[np.float32]  # (cells, features of a pair, 2): thresholds around these
    leaves: NDArray[np.int32]  # (cells, trees)
    sides: NDArray[np.int64]  # (cells, sides): the stamps of its regions then
    then: NDArray[np.float64]  # (cells, cues, 3): `moved` then, and bounds of a root of divergence
    row: NDArray[np.float32]  # buffer (1, features)


def forest_thresholds(scoring: Scoring, features: FeatureMap | None) -> Thresholds | None:
    """Return all thresholds of a forest.

    None for another policy, and where features are computed in Python or from words.
    """
    if scoring.kind != FOREST or features is None or features.blocks or features.words:
        return None
    width = features.width
    features_of, thresholds, trees_of = scoring.trees.splits()
    feature = np.concatenate([np.repeat(np.arange(width), 2), features_of])
    ends = np.tile(np.array([-np.inf, np.inf], np.float32), width)
    values = np.concatenate([ends, thresholds])
    trees = np.concatenate([np.zeros(2 * width, np.int32), trees_of.astype(np.int32)])
    forest = scoring.trees
    inner = np.isfinite(forest.thresholds[:, 0])
    below = _leaf_spans(forest, inner)
    spans = np.concatenate([np.zeros((2 * width, 2), np.int32), below[inner]])
    is_leaf = ~inner & (below[:, 0] < below[:, 1])
    leaf_values = np.zeros(is_leaf.sum())
    leaf_values[below[is_leaf, 0]] = forest.values[is_leaf]
    order = np.lexsort((values, feature))
    starts = np.zeros(width + 1, np.int64)
    starts[1:] = np.cumsum(np.bincount(feature, minlength=width))
    numbers: Any = below[:, 0].copy()
    numbered = forest._replace(values=numbers)
    return Thresholds(starts, values[order], trees[order], spans[order], numbered, leaf_values)


def _leaf_spans(forest: Trees, inner: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the first leaf below each node, and one past the last; its own number for a leaf.

    Nodes that fill a line up, and are in no tree, have no leaf.
    """
    at = np.arange(len(inner))
    left = (forest.nodes[:, 1] & np.uint32((1 << int(forest.bits)) - 1)).astype(np.int64)
    left += forest.roots[np.searchsorted(forest.roots, at, "right") - 1]
    levels = [forest.roots.astype(np.int64)]
    while len(levels[-1]):
        above = levels[-1][inner[levels[-1]]]
        levels.append(np.concatenate([left[above], left[above] + 1]))
    counts = np.zeros(len(inner), np.int64)
    for level in levels[::-1]:
        above = level[inner[level]]
        counts[level] = 1
        counts[above] = counts[left[above]] + counts[left[above] + 1]
    first = np.zeros(len(inner), np.int64)
    first[forest.roots] = np.cumsum(counts[forest.roots]) - counts[forest.roots]
    for level in levels:
        above = level[inner[level]]
        first[left[above]] = first[above]
        first[left[above] + 1] = first[above] + counts[left[above]]
    return np.stack([first, first + counts], axis=1).astype(np.int32)


def empty_cells(features: FeatureState, table: Thresholds) -> Cells:
    """Return cells for the regions and boundaries of a replay."""
    width, n_trees = len(table.starts) - 1, len(table.forest.roots)
    n_slots, n_edges = len(features.regions), len(features.boundaries)
    n_cues, bins = int(features.layout[N_CUES]), int(features.layout[BINS])
    n, m = min(_EDGES, n_edges), min(_SLOTS, n_slots)
    return Cells(
        counts=np.zeros(3, np.int64),
        slot_cell=np.full(n_slots, -1, np.int32),
        slot=np.full(m, -1, np.int32),
        stamps=np.zeros((m, 2), np.int64),
        slot_places=np.zeros((m, 2, features.node_block.shape[1] + 1), np.int32),
        shares=np.zeros((m, n_cues, bins)),
        moved=np.zeros((m, n_cues)),
        edge_cell=np.zeros(n_edges, np.int32),
        edge=np.full(n, -1, np.int32),
        priority=np.zeros(n),
        places=np.zeros((n, width), np.int32),
        limits=np.zeros((n, width - 3 * features.node_block.shape[1], 2), np.float32),
        leaves=np.zeros((n, n_trees), np.int32),
        sides=np.zeros((n, 2), np.int64),
        then=np.zeros((n, n_cues, 3)),
        row=np.zeros((1, width), np.float32),
    )


@inlined
def _take_cell(item: Any, cell_of: Any, owner: Any, counts: Any, which: Any) -> Any:
    """Assign the oldest cell to an item that has none, and return the cell."""
    cell = counts[which]
    counts[which] = (cell + 1) % owner.size
    owner[cell] = item
    cell_of[item] = cell
    return cell


@inlined
def _is_at(value: Any, place: Any, thresholds: Any) -> Any:
    """Tell whether a place is that of a value; as in a tree, left of a threshold includes it."""
    return thresholds[place - 1] < value <= thresholds[place]


@subroutine
def _find_place(value: Any, column: Any, starts: Any, thresholds: Any) -> Any:
    """Return the place of a value of a feature; what is not a number has that of -inf."""
    if value != value:
        return starts[column]
    low = starts[column] + 1
    high = starts[column + 1] - 1
    while low < high:
        middle = (low + high) >> 1
        if thresholds[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _stamp(slot: Any, side: Any, cells: Cells) -> Any:
    """Return the stamp of a region on one side of a boundary; 0, no stamp, if it is not known.

    A region that has never grown has one of its own, below 0. One that has lost its cell may have
    grown since, unnoticed by then: its stamp is not known until it grows again.
    """
    cell = np.int64(cells.slot_cell[slot])
    if cell < 0:
        return -(2 * slot + side + 1)
    return cells.stamps[cell, side] if cells.slot[cell] == slot else np.int64(0)


@inlined
def _way(slot: Any, cue: Any, cells: Cells) -> Any:
    """Return the bound of the way that the histogram of a region with a stamp has gone."""
    cell = np.int64(cells.slot_cell[slot])
    return cells.moved[cell, cue] if cell >= 0 else 0.0


@subroutine
def _note_growth(slot: Any, features: FeatureState, table: Thresholds, cells: Cells) -> None:
    """Update the cells of a region that has grown, and add up how far its histograms moved."""
    regions, layout, node_block = features.regions, features.layout, features.node_block
    starts, thresholds = table.starts, table.values
    places = cells.slot_places
    n_cues = layout[N_CUES]
    size = float(regions[slot, 0])
    cell = np.int64(cells.slot_cell[slot])
    is_new = cell < 0 or cells.slot[cell] != slot
    if is_new:
        cell = _take_cell(slot, cells.slot_cell, cells.slot, cells.counts, 1)
    column = _first_cue(layout[NDIM]) + layout[POWERS]
    for cue in range(n_cues):
        # In bits, the divergence is at most half of the triangular discrimination (Topsoe 2000).
        apart = 0.0
        for k in range(layout[BINS]):
            share = regions[slot, column + k] / size
            old = cells.shares[cell, cue, k]
            if share + old > 0:
                apart += (share - old) ** 2 / (share + old)
            cells.shares[cell, cue, k] = share
        cells.moved[cell, cue] += math.sqrt(0.5 * apart) * (1 + _RELATIVE) + _ABSOLUTE
        column += layout[POWERS] + layout[BINS]
    width = node_block.shape[1]
    log_size = np.float32(math.log2(size))
    for side in range(2):
        leaves = False
        for k in range(width + 1):
            value = node_block[slot, k] if k < width else log_size
            column = side * width + k if k < width else 3 * width + 5 * n_cues + side
            if is_new or not _is_at(value, np.int64(places[cell, side, k]), thresholds):
                places[cell, side, k] = _find_place(value, column, starts, thresholds)
                leaves = True
        if leaves:
            cells.counts[0] += 1
            cells.stamps[cell, side] = cells.counts[0]


@inlined
def _stays(edge: Any, u: Any, v: Any, cell: Any, features: FeatureState, cells: Cells) -> Any:
    """Tell whether a boundary of a smaller and a larger region is certainly in its cell still.

    With a preset that has angles or hulls the answer is always no.
    """
    layout = features.layout
    limits = cells.limits
    row = cells.row
    # No two regions, and no two sides of one, have the same stamp: so neither has left its cell,
    # and the smaller of them is the same as before.
    stamp_u = _stamp(u, np.int64(0), cells)
    stamp_v = _stamp(v, np.int64(1), cells)
    if stamp_u == 0 or stamp_v == 0:
        return False
    if cells.sides[cell, 0] != stamp_u or cells.sides[cell, 1] != stamp_v:
        return False
    if layout[COMPARISONS] & (ANGLES | HULLS) > 0:
        return False
    # The first column of `limits` is that of the first feature of a pair.
    first = 3 * features.node_block.shape[1]
    column = first
    for cue in range(layout[N_CUES]):
        compare_moments(u, v, cue, row, np.int64(0), column, features)
        for k in range(column, column + 4):
            if not limits[cell, k - first, 0] < row[0, k] <= limits[cell, k - first, 1]:
                return False
        drift = _way(u, cue, cells) + _way(v, cue, cells) - cells.then[cell, cue, 0]
        low = np.float32(max(cells.then[cell, cue, 1] - drift, 0.0) ** 2 - _ABSOLUTE)
        high = np.float32((cells.then[cell, cue, 2] + drift) ** 2 + _ABSOLUTE)
        k = column + 4 - first
        if not (limits[cell, k, 0] < low and high <= limits[cell, k, 1]):
            return False
        column += 5
    column += 3  # the sizes, which the stamps stand for, and the area of the boundary
    compare_contact(edge, u, v, row, np.int64(0), column, features)
    for k in range(column, row.shape[1]):
        if not limits[cell, k - first, 0] < row[0, k] <= limits[cell, k - first, 1]:
            return False
    return True


@kernel
def score_in_cells(
    batch: Any, grown: Any, changed: Any, ends: Any, ids: Any, features: FeatureState,
    table: Thresholds, cells: Cells, priorities: Any,
) -> None:  # fmt: skip
    """Write the priorities of a forest for edges in `batch`, to the last bit.

    `grown` and `changed` are the slots and the edges whose rows have changed since the last call.
    No bounds checking.
    """
    regions, layout = features.regions, features.layout
    starts, thresholds, trees, spans, forest, leaf_values = table
    row = cells.row
    leaves = cells.leaves
    n_trees = np.int64(forest.roots.size)
    first = 3 * features.node_block.shape[1]
    for k in range(changed.size):
        cells.sides[cells.edge_cell[changed[k]], 0] = 0  # no stamp
    for k in range(grown.size):
        _note_growth(grown[k], features, table, cells)
    for k in range(batch.size):
        edge = np.int64(batch[k])
        u = np.int64(ends[edge, 0])
        v = np.int64(ends[edge, 1])
        if (regions[v, 0], ids[v]) < (regions[u, 0], ids[u]):
            u, v = v, u
        cell = np.int64(cells.edge_cell[edge])
        is_own = cells.edge[cell] == edge
        if is_own and _stays(edge, u, v, cell, features, cells):
            priorities[k] = cells.priority[cell]
            continue
        assemble(batch, k, 1, ends, ids, 0, row, features)
        if not is_own:
            cell = _take_cell(edge, cells.edge_cell, cells.edge, cells.counts, 2)
        entire = not is_own
        n_passed = 0
        n_walked = 0
        for column in range(row.shape[1]):
            value = row[0, column]
            old = np.int64(cells.places[cell, column])
            if is_own and _is_at(value, old, thresholds):
                continue
            place = _find_place(value, column, starts, thresholds)
            cells.places[cell, column] = place
            if column >= first:
                cells.limits[cell, column - first, 0] = thresholds[place - 1]
                cells.limits[cell, column - first, 1] = thresholds[place]
            n_passed += abs(place - old)
            # What is not a number has no place among the thresholds: all trees are walked.
            is_number = min(place, old) > starts[column]
            entire = entire or not is_number or n_passed > _PASSED * n_trees
            if entire:
                continue
            for passed in range(min(old, place), max(old, place)):
                own = np.int64(trees[passed])
                if spans[passed, 0] <= leaves[cell, own] < spans[passed, 1]:
                    tree_values(np.uint32(0), own, own + 1, row, forest, leaves, cell)
                    n_walked += 1
        if entire:
            tree_values(np.uint32(0), np.int64(0), n_trees, row, forest, leaves, cell)
        if entire or n_walked > 0:
            total = 0.0
            for tree in range(n_trees):
                total += leaf_values[leaves[cell, tree]]
            cells.priority[cell] = total / n_trees
        priorities[k] = cells.priority[cell]
        cells.sides[cell, 0] = _stamp(u, np.int64(0), cells)
        cells.sides[cell, 1] = _stamp(v, np.int64(1), cells)
        for cue in range(layout[N_CUES]):
            divergence = float(row[0, first + 5 * cue + 4])
            slack = divergence * _RELATIVE + _ABSOLUTE
            cells.then[cell, cue, 0] = _way(u, cue, cells) + _way(v, cue, cells)
            cells.then[cell, cue, 1] = math.sqrt(max(divergence - slack, 0.0))
            cells.then[cell, cue, 2] = math.sqrt(divergence + slack)
