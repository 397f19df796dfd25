"""Decisions at a scale: boundaries between segments, merges within them, and answers to both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba import kernel
from napari_agglo.graph import RegionGraph
from napari_agglo.session._actions import Cut, Ids
from napari_agglo.session._hierarchy.superpixels import Superpixels
from napari_agglo.session._segment_statistics import segments_of
from napari_agglo.session._suggestions.review_value import as_probabilities
from napari_agglo.session._threshold_view import View


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions of the policy: boundaries between segments, or merges within them, in order.

    `first` and `second` are the two segments of a boundary, by name; or the two regions of a merge,
    by their smallest superpixels, ``first < second``.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    wrong: NDArray[np.float64]  # probability that merging the two is wrong; NaN if there is none
    answered: NDArray[np.bool_]  # by a person: neither suggested nor counted

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        wrong: ArrayLike,
        answered: ArrayLike | None = None,
    ) -> Self:
        """Make decisions of arrays or lists; one without a probability was made by a person."""
        p = np.asarray(wrong, np.float64)
        known = np.isnan(p) | np.asarray(False if answered is None else answered)
        return cls(np.asarray(first, np.int64), np.asarray(second, np.int64), p, known)


@dataclass(frozen=True, eq=False)
class Sides:
    """The two sides of each decision: their pixels, and their bounding boxes if needed."""

    sizes: tuple[NDArray[np.int64], NDArray[np.int64]]
    boxes: tuple[NDArray[np.int32], NDArray[np.int32]] | None


def boundary_sides(
    graph: RegionGraph, lut: NDArray[np.int64], boundaries: Decisions, with_boxes: bool
) -> Sides:
    """Return the sizes, and with `with_boxes` the boxes, of the two segments of each boundary."""
    names = boundaries.first, boundaries.second
    if with_boxes or lut.max(initial=0) > 8 * len(lut) + 1024:
        segments = segments_of(graph, lut)
        first, second = (_numbers(segments.ids, side) for side in names)
        boxes = (segments.boxes[first], segments.boxes[second]) if with_boxes else None
        return Sides((segments.sizes[first], segments.sizes[second]), boxes)
    # Whole numbers far below 2**53: sums of them as floats are exact.
    sizes = np.bincount(lut, graph.sizes).astype(np.int64)
    return Sides((sizes[names[0]], sizes[names[1]]), None)


def _numbers(ids: NDArray[np.uint64], names: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of `names` among `ids`, which ascend and hold all of them."""
    highest = int(ids[-1]) if len(ids) else 0
    if highest < 8 * len(ids) + 1024:  # a table is ten times faster than a search
        table = np.zeros(highest + 1, np.int64)
        table[ids.astype(np.int64)] = np.arange(len(ids))
        return table[names]
    return np.searchsorted(ids, names.astype(np.uint64))


def merge_sides(graph: RegionGraph, merges: Decisions, with_boxes: bool) -> Sides:
    """Return the sizes, and with `with_boxes` the boxes, of the two regions of each merge."""
    m = len(merges)
    sizes = np.zeros((2, m), np.int64)
    # Without boxes, the kernel gets boxes without axes.
    ndim = graph.layout.ndim if with_boxes else 0
    boxes = np.zeros((2, m, 2, ndim), np.int32)
    growing = graph.boxes[:, :, :ndim].copy()
    _note_sides(merges.first, merges.second, graph.sizes.copy(), growing, sizes, boxes)
    return Sides((sizes[0], sizes[1]), (boxes[0], boxes[1]) if with_boxes else None)


@kernel
def _note_sides(
    winners: NDArray[np.int64],
    losers: NDArray[np.int64],
    sizes: NDArray[np.int64],
    boxes: NDArray[np.int32],
    noted_sizes: NDArray[np.int64],
    noted_boxes: NDArray[np.int32],
) -> None:
    """Write pixels and boxes of both regions of each merge, then join them. No bounds checking."""
    for k in range(winners.size):
        winner, loser = winners[k], losers[k]
        noted_sizes[0, k] = sizes[winner]
        noted_sizes[1, k] = sizes[loser]
        sizes[winner] += sizes[loser]
        for axis in range(boxes.shape[2]):
            for end in range(2):
                noted_boxes[0, k, end, axis] = boxes[winner, end, axis]
                noted_boxes[1, k, end, axis] = boxes[loser, end, axis]
            boxes[winner, 0, axis] = min(boxes[winner, 0, axis], boxes[loser, 0, axis])
            boxes[winner, 1, axis] = max(boxes[winner, 1, axis], boxes[loser, 1, axis])


@kernel
def follow_merges(
    winners: NDArray[np.int64], losers: NDArray[np.int64], n_merges: int, where: NDArray[np.int64]
) -> None:
    """Set ``where[id]`` to the region of `id` after so many merges. No bounds checking.

    `where` must be 0, 1, 2, ... at first. From the last merge to the first, the region of a winner
    is known before that of its loser.
    """
    for k in range(n_merges - 1, -1, -1):
        where[losers[k]] = where[winners[k]]


# An answer names two superpixels, one on each side of the decision, because segments change. It is
# valid as long as the two are on both sides of the same boundary, or first meet in the same merge.


Pairs = Sequence[tuple[int, int]] | NDArray[np.int64]


def answered_boundaries(boundaries: Decisions, lut: ArrayLike, pairs: Pairs) -> NDArray[np.bool_]:
    """Return a mask of the boundaries between segments that hold the superpixels of a pair.

    Examples
    --------
    >>> answered_boundaries(Decisions.of([1, 1], [3, 4], [0.6, 0.7]), [0, 1, 1, 3, 4], [(4, 2)])
    array([False,  True])
    """
    if not len(pairs):
        return np.zeros(len(boundaries), np.bool_)
    table = np.asarray(lut, np.int64)
    ends = table[np.asarray(pairs, np.int64)]
    answers = np.unique(_keys(ends[:, 0], ends[:, 1]))
    keys = _keys(boundaries.first, boundaries.second)
    at = np.minimum(np.searchsorted(answers, keys), len(answers) - 1)
    return np.asarray(answers[at] == keys, np.bool_)


def _keys(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each pair of segments, in either order; their names have 32 bits."""
    return np.minimum(a, b) << 32 | np.maximum(a, b)


def answered_merges(merges: Decisions, pairs: Pairs) -> NDArray[np.bool_]:
    """Return a mask of the merges in which the superpixels of a pair first meet.

    Examples
    --------
    >>> answered_merges(Decisions.of([1, 3, 1], [2, 4, 3], [0.1, 0.2, 0.3]), [(2, 4)])
    array([False, False,  True])
    """
    out = np.zeros(len(merges), np.bool_)
    if not len(pairs):
        return out
    never = len(merges)
    lost = np.full(max(int(merges.second.max(initial=0)), int(np.max(pairs))) + 1, never)
    lost[merges.second] = np.arange(never)
    for u, v in pairs:
        k = -1
        while u != v:
            if lost[u] > lost[v]:
                u, v = v, u
            k = int(lost[u])  # follow the region that is merged first
            if k == never:
                break
            u = int(merges.first[k])
        if 0 <= k < never:
            out[k] = True
    return out


def decisions(view: View) -> tuple[Decisions, Decisions]:
    """Return the boundaries between the segments of a view, and the merges within them.

    A decision is answered where there is an edit, an answer, or a lock, and where all of its
    segments are reviewed.
    """
    state, names = view.state, view.names()
    pairs, priorities = view.boundary_scores.now(view)
    first, second, merged = _merges(view)
    p_boundaries, p_merges = as_probabilities(state.policy, view.threshold, priorities, merged)
    boundaries = Decisions.of(pairs[:, 0], pairs[:, 1], p_boundaries)
    merges = Decisions.of(first, second, p_merges)
    two = [a.superpixels for a in state.answers if a.same is not True]
    one = [a.superpixels for a in state.answers if a.same is not False]
    locks = state.tree.constraints.lock_of
    is_locked = np.zeros(int(names.max(initial=0)) + 1, np.bool_)
    is_locked[names[np.flatnonzero(locks)]] = True
    separated = np.concatenate([np.array(two, np.int64).reshape(-1, 2), _cut_pairs(view)])
    answered = answered_boundaries(boundaries, names, separated)
    answered |= is_locked[boundaries.first] | is_locked[boundaries.second]
    confirmed = answered_merges(merges, one) | (locks[first] > 0)
    reviewed = state.marks.reviewed
    if len(reviewed):
        is_reviewed = np.isin(state.graph.ids[: len(is_locked)], reviewed)
        answered |= is_reviewed[boundaries.first] & is_reviewed[boundaries.second]
        confirmed |= is_reviewed[names[first]]
    return (
        replace(boundaries, answered=boundaries.answered | answered),
        replace(merges, answered=merges.answered | confirmed),
    )


def _merges(view: View) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return both regions of each merge by their smallest superpixel, and its priority.

    Merges are in an order in which they can be done.
    """
    tree = view.state.tree
    most = tree.superpixels.n
    nodes, ends, priorities = (
        np.empty(most, np.int64),
        np.empty((2, most), np.int64),
        np.empty(most),
    )
    n = list_merges(view.visible_nodes(), tree.log.rows, nodes, ends, priorities)
    return ends[0, :n], ends[1, :n], priorities[:n]


def _cut_pairs(view: View) -> NDArray[np.int64]:
    """Return superpixels that touch across a live cut, shape (k, 2)."""
    tree = view.state.tree
    part_of = np.zeros(tree.superpixels.n + 1, np.int32)
    pairs_of_cuts = [np.zeros((0, 2), np.int64)]
    known, view.cut_pairs = view.cut_pairs, {}
    for edit, parts in zip(tree.constraints.edits, tree.constraints.parts, strict=True):
        if not isinstance(edit, Cut) or len(parts) < 2:
            continue
        pairs = known.get(id(parts))
        if pairs is None or pairs[0] is not parts:  # parts are replaced when one is divided
            pairs = parts, _across(tree.superpixels, parts, part_of)
        view.cut_pairs[id(parts)] = pairs
        pairs_of_cuts.append(pairs[1])
    return np.concatenate(pairs_of_cuts)


def _across(
    superpixels: Superpixels, parts: tuple[Ids, ...], part_of: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the superpixels of different parts that touch; `part_of` is a zeroed buffer."""
    members = np.concatenate(parts)
    part_of[members] = np.repeat(np.arange(1, len(parts) + 1), [len(part) for part in parts])
    out = np.zeros((64, 2), np.int64)
    while True:
        n = list_across(
            members, part_of, superpixels.start, superpixels.stop, superpixels.adjacent, out
        )
        if n <= len(out):
            break
        out = np.zeros((n, 2), np.int64)
    part_of[members] = 0
    return out[:n]


@kernel
def list_merges(roots: Any, rows: Any, nodes: Any, ends: Any, priorities: Any) -> Any:
    """Write the merges of regions, each after those that it is made of; return how many there are.

    `ends` are the smallest superpixels of both regions, the smaller first. An edit has no priority.
    `nodes` is a buffer. No bounds checking.
    """
    n = 0
    for k in range(roots.size):
        nodes[n] = roots[k]
        n += rows[roots[k]]["first"] >= 0
    at = 0
    while at < n:
        first = np.int64(rows[nodes[at]]["first"])
        second = np.int64(rows[nodes[at]]["second"])
        at += 1
        if rows[first]["first"] >= 0:
            nodes[n] = first
            n += 1
        if rows[second]["first"] >= 0:
            nodes[n] = second
            n += 1
    for k in range(n):
        node = nodes[n - 1 - k]
        a = np.int64(rows[rows[node]["first"]]["low"])
        b = np.int64(rows[rows[node]["second"]]["low"])
        ends[0, k] = min(a, b)
        ends[1, k] = max(a, b)
        priorities[k] = np.nan if rows[node]["edit"] >= 0 else rows[node]["priority"]
    return n


@kernel
def list_across(members: Any, part_of: Any, start: Any, stop: Any, adjacent: Any, out: Any) -> Any:
    """List neighbours of different parts, the smaller first, as far as `out` has room.

    Return the number of them. No bounds checking but of `out`.
    """
    n = 0
    for k in range(members.size):
        superpixel = members[k]
        for at in range(start[superpixel], stop[superpixel]):
            other = adjacent[at, 0]
            part = part_of[other]
            if other > superpixel and part != 0 and part != part_of[superpixel]:
                if n < out.shape[0]:
                    out[n, 0] = superpixel
                    out[n, 1] = other
                n += 1
    return n
