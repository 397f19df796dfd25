"""The decisions of a policy at a scale: boundaries left apart, and merges made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba import kernel
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.session._segments import Segments


@dataclass(frozen=True, eq=False)
class _Decisions:
    """Two ids and a probability for each decision, and which a person has answered."""

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
        said = np.zeros(p.shape, np.bool_) if answered is None else np.asarray(answered, np.bool_)
        if a.ndim != 1 or not a.shape == b.shape == p.shape == said.shape:
            raise InvalidInput(
                "`first`, `second`, `wrong` and `answered` must be arrays of one length, got "
                f"shapes {a.shape}, {b.shape}, {p.shape} and {said.shape}."
            )
        beyond = (p < 0) | (p > 1)
        if beyond.any():
            raise InvalidInput(
                f"`wrong` must be probabilities, 0 to 1, got {p[beyond][0]}; pass priorities "
                "through as_probabilities first."
            )
        # What has no probability was not the policy's decision, but a person's.
        return cls(a, b, p, said | np.isnan(p))


class Apart(_Decisions):
    """Boundaries between segments of the frontier: merges that were not made.

    Attributes
    ----------
    first, second : ndarray of int64, shape (k,)
        The two segments of each boundary, ids as in the session's table of segments.
    wrong : ndarray of float64, shape (k,)
        Probability that merging them is wrong; NaN if the policy has none.
    answered : ndarray of bool, shape (k,)
        Which a person has decided: they are neither suggested nor counted.
    """


class Made(_Decisions):
    """Merges that were made up to the frontier, in their order.

    Attributes
    ----------
    first, second : ndarray of int64, shape (m,)
        The regions of each merge, by their smallest superpixels (dense ids), ``first < second``:
        the winner and the loser.
    wrong : ndarray of float64, shape (m,)
        Probability that the merge is wrong; NaN if the policy has none.
    answered : ndarray of bool, shape (m,)
        Which a person has made or confirmed.
    """


@dataclass(frozen=True, eq=False)
class Sides:
    """The two sides of each decision: their pixels, and their bounding boxes if asked for."""

    sizes: tuple[NDArray[np.int64], NDArray[np.int64]]
    boxes: tuple[NDArray[np.int32], NDArray[np.int32]] | None


def sides_apart(segments: Segments, apart: Apart, with_boxes: bool) -> Sides:
    """Look up the two segments of each boundary."""
    first, second = _numbers(segments.ids, apart.first), _numbers(segments.ids, apart.second)
    sizes = segments.sizes[first], segments.sizes[second]
    boxes = (segments.boxes[first], segments.boxes[second]) if with_boxes else None
    return Sides(sizes, boxes)


def _numbers(ids: NDArray[np.uint64], asked: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each id asked for is among `ids`, ascending; refuse one that is not there."""
    highest = int(ids[-1]) if len(ids) else 0
    if highest < 8 * len(ids) + 1024 and len(asked):  # a table is ten times faster than a search
        table = np.full(highest + 2, -1, np.int64)
        table[ids.astype(np.int64)] = np.arange(len(ids))
        number = table[np.where((asked < 0) | (asked > highest), highest + 1, asked)]
    else:
        number = np.minimum(np.searchsorted(ids, asked.astype(np.uint64)), len(ids) - 1)
        number[ids[number] != asked.astype(np.uint64)] = -1
    if (number < 0).any():
        raise InvalidInput(
            f"`apart` names segment {asked[number < 0][0]}, which is not in `lut`; ask for the "
            "boundaries of the same state."
        )
    return number


def sides_made(graph: RegionGraph, made: Made, with_boxes: bool) -> Sides:
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


def apart_answered(apart: Apart, lut: ArrayLike, pairs: Pairs) -> NDArray[np.bool_]:
    """Return which boundaries lie between the segments that hold the superpixels of a pair.

    Examples
    --------
    >>> apart_answered(Apart.of([1, 1], [3, 4], [0.6, 0.7]), [0, 1, 1, 3, 4], [(4, 2)])
    array([False,  True])
    """
    if not len(pairs):
        return np.zeros(len(apart), np.bool_)
    table = np.asarray(lut, np.int64)
    said = np.sort(table[np.asarray(pairs, np.int64)], axis=1)
    asked = np.sort(np.stack([apart.first, apart.second], axis=1), axis=1)
    ids, number = np.unique(np.concatenate([said, asked]), return_inverse=True)
    keys = number.reshape(-1, 2) @ np.array([len(ids), 1])
    found: NDArray[np.bool_] = np.isin(keys[len(said) :], keys[: len(said)])
    return found


def made_answered(made: Made, pairs: Pairs) -> NDArray[np.bool_]:
    """Return which merges are those in which the superpixels of a pair first meet.

    Examples
    --------
    >>> made_answered(Made.of([1, 3, 1], [2, 4, 3], [0.1, 0.2, 0.3]), [(2, 4)])
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
