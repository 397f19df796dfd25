"""Decisions at a scale: boundaries left apart, merges made, and the answers of a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba import kernel
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.session._actions import Cut, Ids
from napari_agglo.session._hierarchy.superpixels import Superpixels
from napari_agglo.session._segment_statistics import SegmentStatistics
from napari_agglo.session._suggestions.value import as_probabilities
from napari_agglo.session._threshold_view import View


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions of the policy: boundaries left between segments, or merges made within them.

    Attributes
    ----------
    first, second : ndarray of int64, shape (k,)
        Of a boundary, its two segments, by the ids of the session's table of segments. Of a merge,
        its two regions by their smallest superpixels (dense ids), ``first < second``; merges are in
        their order.
    wrong : ndarray of float64, shape (k,)
        Probability that merging the two is wrong; NaN if the policy has none.
    answered : ndarray of bool, shape (k,)
        Whether a person has decided: such a decision is neither suggested nor counted.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    wrong: NDArray[np.float64]
    answered: NDArray[np.bool_]

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
        """Check arrays, or lists, and make them decisions; the parameters are the attributes."""
        a, b = np.asarray(first, np.int64), np.asarray(second, np.int64)
        p = np.asarray(wrong, np.float64)
        known = np.zeros(p.shape, np.bool_) if answered is None else np.asarray(answered, np.bool_)
        if a.ndim != 1 or not a.shape == b.shape == p.shape == known.shape:
            raise InvalidInput(
                "`first`, `second`, `wrong` and `answered` must be arrays of one length, got "
                f"shapes {a.shape}, {b.shape}, {p.shape} and {known.shape}."
            )
        beyond = (p < 0) | (p > 1)
        if beyond.any():
            raise InvalidInput(
                f"`wrong` must be probabilities, 0 to 1, got {p[beyond][0]}; pass priorities "
                "through as_probabilities first."
            )
        # What has no probability was not the policy's decision, but a person's.
        return cls(a, b, p, known | np.isnan(p))


@dataclass(frozen=True, eq=False)
class Sides:
    """The two sides of each decision: their pixels, and their bounding boxes if needed."""

    sizes: tuple[NDArray[np.int64], NDArray[np.int64]]
    boxes: tuple[NDArray[np.int32], NDArray[np.int32]] | None


def sides_apart(segments: SegmentStatistics, apart: Decisions, with_boxes: bool) -> Sides:
    """Look up the two segments of each boundary."""
    first, second = _numbers(segments.ids, apart.first), _numbers(segments.ids, apart.second)
    sizes = segments.sizes[first], segments.sizes[second]
    boxes = (segments.boxes[first], segments.boxes[second]) if with_boxes else None
    return Sides(sizes, boxes)


def _numbers(ids: NDArray[np.uint64], names: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of `names` among `ids`, which ascend; refuse a name that is absent."""
    highest = int(ids[-1]) if len(ids) else 0
    if highest < 8 * len(ids) + 1024 and len(names):  # a table is ten times faster than a search
        table = np.full(highest + 2, -1, np.int64)
        table[ids.astype(np.int64)] = np.arange(len(ids))
        number = table[np.where((names < 0) | (names > highest), highest + 1, names)]
    else:
        number = np.minimum(np.searchsorted(ids, names.astype(np.uint64)), len(ids) - 1)
        number[ids[number] != names.astype(np.uint64)] = -1
    if (number < 0).any():
        raise InvalidInput(
            f"`apart` names segment {names[number < 0][0]}, which is not in `lut`; ask for the "
            "boundaries of the same state."
        )
    return number


def sides_made(graph: RegionGraph, made: Decisions, with_boxes: bool) -> Sides:
    """Go through the merges and note what each of them joined."""
    out_of_range = (made.first < 1) | (made.first >= made.second)
    out_of_range |= made.second > graph.n_regions
    if out_of_range.any():
        k = int(np.argmax(out_of_range))
        raise InvalidInput(
            f"`made` must name superpixels 1 to {graph.n_regions}, the smaller first; merge {k} is "
            f"of {made.first[k]} and {made.second[k]}."
        )
    m = len(made)
    sizes = np.zeros((2, m), np.int64)
    # Without axes, the kernel goes through no box.
    ndim = graph.layout.ndim if with_boxes else 0
    boxes = np.zeros((2, m, 2, ndim), np.int32)
    growing = graph.boxes[:, :, :ndim].copy()
    _note_sides(made.first, made.second, graph.sizes.copy(), growing, sizes, boxes)
    return Sides((sizes[0], sizes[1]), (boxes[0], boxes[1]) if with_boxes else None)


def meeting_boxes(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return what two bounding boxes, a pixel larger on each side, have in common.

    Where they have nothing in common, it is the gap between them.
    """
    start = np.maximum(a[..., 0, :], b[..., 0, :]) - 1
    stop = np.minimum(a[..., 1, :], b[..., 1, :]) + 1
    return np.stack([np.minimum(start, stop - 1), np.maximum(start + 1, stop)], axis=-2)


@kernel
def _note_sides(
    winners: NDArray[np.int64],
    losers: NDArray[np.int64],
    sizes: NDArray[np.int64],
    boxes: NDArray[np.int32],
    noted_sizes: NDArray[np.int64],
    noted_boxes: NDArray[np.int32],
) -> None:
    """Note pixels and boxes of both regions of each merge, then join them. Checks nothing."""
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
    """Set ``where[id]`` to the region of `id` after so many merges. Checks nothing.

    `where` comes in as 0, 1, 2, ... Read backwards, a merge finds its winner's fate known.
    """
    for k in range(n_merges - 1, -1, -1):
        where[losers[k]] = where[winners[k]]


# Which decisions a person has answered, from the pairs of superpixels of the answers.
#
# A suggestion goes by two superpixels, one on each side, because segments come and go. "Leave them
# apart", "this is one" and "not now" are such pairs too, and hold as long as the two superpixels
# face each other across the same boundary, or first meet in the same merge.


Pairs = Sequence[tuple[int, int]] | NDArray[np.int64]


def apart_answered(apart: Decisions, lut: ArrayLike, pairs: Pairs) -> NDArray[np.bool_]:
    """Return which boundaries lie between the segments that hold the superpixels of a pair.

    Examples
    --------
    >>> apart_answered(Decisions.of([1, 1], [3, 4], [0.6, 0.7]), [0, 1, 1, 3, 4], [(4, 2)])
    array([False,  True])
    """
    if not len(pairs):
        return np.zeros(len(apart), np.bool_)
    table = np.asarray(lut, np.int64)
    answers = np.sort(table[np.asarray(pairs, np.int64)], axis=1)
    boundaries = np.sort(np.stack([apart.first, apart.second], axis=1), axis=1)
    ids, number = np.unique(np.concatenate([answers, boundaries]), return_inverse=True)
    keys = number.reshape(-1, 2) @ np.array([len(ids), 1])
    answered: NDArray[np.bool_] = np.isin(keys[len(answers) :], keys[: len(answers)])
    return answered


def made_answered(made: Decisions, pairs: Pairs) -> NDArray[np.bool_]:
    """Return which merges are those in which the superpixels of a pair first meet.

    Examples
    --------
    >>> made_answered(Decisions.of([1, 3, 1], [2, 4, 3], [0.1, 0.2, 0.3]), [(2, 4)])
    array([False, False,  True])
    """
    out = np.zeros(len(made), np.bool_)
    if not len(pairs):
        return out
    lost = {loser: k for k, loser in enumerate(made.second.tolist())}
    into = made.first.tolist()
    never = len(made)
    for u, v in pairs:
        k = -1
        while u != v:
            if lost.get(u, never) > lost.get(v, never):
                u, v = v, u
            k = lost.get(u, never)  # whoever is merged away first is followed
            if k == never:
                break
            u = into[k]
        if 0 <= k < never:
            out[k] = True
    return out


# The decisions at the threshold of a view: boundaries left, merges done, answers given.


def decisions(view: View) -> tuple[Decisions, Decisions]:
    """Return the boundaries between segments, and the merges within them, with answers.

    A person has decided where there is an edit, an answer, or a lock.
    """
    state, names = view.state, view.names()
    pairs, priorities = view.boundary_scores.now(view)
    first, second, merged = _merges(view)
    p_apart, p_made = as_probabilities(state.policy, view.threshold, priorities, merged)
    apart = Decisions.of(pairs[:, 0], pairs[:, 1], p_apart)
    made = Decisions.of(first, second, p_made)
    two = [a.superpixels for a in state.answers if a.same is not True]
    one = [a.superpixels for a in state.answers if a.same is not False]
    locks = state.tree.constraints.lock_of
    locked = np.unique(names[np.flatnonzero(locks)])
    kept_apart = np.concatenate([np.array(two, np.int64).reshape(-1, 2), _cut_pairs(view)])
    answered = apart_answered(apart, names, kept_apart)
    answered |= np.isin(pairs, locked).any(axis=1)
    confirmed = made_answered(made, one) | (locks[first] > 0)
    return (
        replace(apart, answered=apart.answered | answered),
        replace(made, answered=made.answered | confirmed),
    )


def _merges(view: View) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return both regions of each merge by their smallest superpixel, and its priority.

    A merge comes after those that its regions were made by.
    """
    log = view.state.tree.log
    inner = view.inner_nodes()[::-1]
    ends = log.rows["low"][log.children(inner)].astype(np.int64)
    ends.sort(axis=1)
    rows = log.rows[inner]
    priorities = np.where(rows["edit"] >= 0, np.nan, rows["priority"])
    return ends[:, 0], ends[:, 1], priorities


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
def list_across(members: Any, part_of: Any, start: Any, stop: Any, adjacent: Any, out: Any) -> Any:
    """List neighbours of different parts, the smaller first; return how many there are.

    No bounds checking, but if there is no room for all, those that there is room for are listed.
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
