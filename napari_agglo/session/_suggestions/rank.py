"""Ranking of decisions by the value of a review; each suggestion has a position to look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.errors import InvalidInput, check_choice, check_whole
from napari_agglo.graph import RegionGraph, boxes_overlap, contact_point, meeting_boxes
from napari_agglo.session._suggestions.decisions import (
    Decisions,
    boundary_sides,
    follow_merges,
    merge_sides,
)
from napari_agglo.session._suggestions.review_value import confusion, expected_gain

Kind = Literal["false_split", "false_merge"]


@dataclass(frozen=True)
class Suggestion:
    """A decision that may be wrong.

    Attributes
    ----------
    kind : {"false_split", "false_merge"}
        Two segments that may be one, or one that may be two.
    segments : tuple of int
        The two segments, or the one.
    superpixels : tuple of int
        Two superpixels that touch, one on each side, by which an answer identifies the decision.
    sizes : tuple of int
        Pixels of both sides.
    position : tuple of float
        Pixel index of a point between them.
    wrong : float
        Probability that merging the two sides is wrong, by the policy.
    gain : float
        Bits by which VI falls if the decision is wrong and is corrected.
    score : float
        Expected change in VI times doubt; suggestions are in descending order of it.
    """

    kind: Kind
    segments: tuple[int, ...]
    superpixels: tuple[int, int]
    sizes: tuple[int, int]
    position: tuple[float, ...]
    wrong: float
    gain: float
    score: float

    @property
    def question(self) -> str:
        """The question to the user."""
        return "Merge these two?" if self.kind == "false_split" else "Cut here?"

    @property
    def reason(self) -> str:
        """The reason for the question, in words."""
        a, b = self.sizes
        if self.kind == "false_split":
            decision, likely, number, edit = (
                "Two segments",
                1 - self.wrong,
                "one object",
                "the merge",
            )
        else:
            decision, likely, number, edit = "One segment", self.wrong, "two objects", "the cut"
        unit = ("pixel" if len(self.position) == 2 else "voxel") + ("" if b == 1 else "s")
        return (
            f"{decision} now ({a:,} and {b:,} {unit}), but it is {likely:.0%} likely that they are "
            f"{number}. If so, {edit} lowers the VI by {self.gain:.2g} bits."
        )


def suggest(
    graph: RegionGraph,
    lut: ArrayLike,
    boundaries: Decisions,
    merges: Decisions,
    n: int = 10,
    *,
    kind: Kind | None = None,
    min_size: int = 1,
    within: ArrayLike | None = None,
) -> list[Suggestion]:
    """Return the `n` decisions of the highest score, best first.

    `lut` is the segment of each superpixel, `boundaries` are those between segments and `merges`
    those within them; a merge whose sides are in two segments is skipped. A decision that was
    answered, or of which the policy is certain, is never suggested. The options are those of
    `Suggestions.next`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 1, 2, 2, 3, 3]]), np.zeros((1, 6)))
    >>> boundaries, merges = Decisions.of([1], [3], [0.6]), Decisions.of([1], [2], [0.1])
    >>> best, other = suggest(graph, [0, 1, 1, 3], boundaries, merges)
    >>> best.question, best.segments, best.superpixels, best.position
    ('Merge these two?', (1, 3), (2, 3), (0.0, 3.5))
    >>> best.reason
    'Two segments now (4 and 2 pixels), but it is 40% likely that they are one object. If so, the
    merge lowers the VI by 0.92 bits.'
    >>> other.question, other.segments
    ('Cut here?', (1,))
    """
    check_whole("n", n, 0)
    check_choice("kind", kind, (*get_args(Kind), None))
    check_whole("min_size", min_size, 0)
    table = np.asarray(lut, np.int64)
    box = None if within is None else _checked_box(within, graph.layout.ndim)
    total = int(graph.sizes.sum())
    one = boundary_sides(graph, table, boundaries, box is not None)
    two = merge_sides(graph, merges, box is not None)
    x, y = (np.concatenate(pair) for pair in zip(one.sizes, two.sizes, strict=True))
    error = np.concatenate([1 - boundaries.wrong, merges.wrong])
    usable = np.concatenate(
        [~boundaries.answered, ~merges.answered & (table[merges.first] == table[merges.second])]
    )
    usable &= np.minimum(x, y) >= max(min_size, 1)
    if kind is not None:
        usable &= np.repeat(
            [kind == "false_split", kind == "false_merge"], [len(boundaries), len(merges)]
        )
    if box is not None:
        near = [boxes_overlap(meeting_boxes(*side.boxes), box) for side in (one, two) if side.boxes]
        usable &= np.concatenate(near)
    rows = np.flatnonzero(usable)
    scores = np.zeros(len(x))
    scores[rows] = expected_gain(x[rows], y[rows], error[rows], total)[1]
    suggestions: list[Suggestion] = []
    for k in _best_first(scores, n):
        if len(suggestions) == n:
            break
        sides, ids = _sides(table, boundaries, merges, k)
        place = contact_point(graph, sides, box)
        if place is None:
            continue
        superpixels, position = place
        suggestions.append(
            Suggestion(
                kind="false_split" if k < len(boundaries) else "false_merge",
                segments=ids,
                superpixels=superpixels,
                sizes=(int(x[k]), int(y[k])),
                position=position,
                wrong=float(1 - error[k] if k < len(boundaries) else error[k]),
                gain=float(confusion(x[k], y[k]) / total),
                score=float(scores[k]),
            )
        )
    return suggestions


def _best_first(scores: NDArray[np.float64], n: int) -> Iterator[int]:
    """Yield rows of positive score in descending order, equal ones by row, sorting only a few."""
    left = np.flatnonzero(scores > 0)
    while len(left):
        some = left
        if len(left) > 4 * n + 64:
            least = np.partition(scores[left], len(left) - 2 * n - 1)[len(left) - 2 * n - 1]
            some = left[scores[left] >= least]
        yield from some[np.argsort(-scores[some], kind="stable")].tolist()
        left = np.setdiff1d(left, some, assume_unique=True)
        n *= 4


def _sides(
    table: NDArray[np.int64], boundaries: Decisions, merges: Decisions, k: int
) -> tuple[NDArray[np.int8], tuple[int, ...]]:
    """Return the side of decision `k` that each superpixel is on (0: none), and its segments."""
    if k < len(boundaries):
        ids = int(boundaries.first[k]), int(boundaries.second[k])
        where = table
    else:
        k -= len(boundaries)
        ids = int(merges.first[k]), int(merges.second[k])
        where = np.arange(len(table))
        follow_merges(merges.first, merges.second, k, where)
    sides = np.zeros(len(table), np.int8)
    sides[where == ids[0]] = 1
    sides[where == ids[1]] = 2
    return sides, ids if where is table else (int(table[ids[0]]),)


def _checked_box(within: ArrayLike, ndim: int) -> NDArray[np.int64]:
    try:
        box = np.asarray(within)
    except ValueError:  # of rows of several lengths
        box = np.zeros(0)
    if box.shape != (2, ndim) or box.dtype.kind not in "iu" or (box[0] >= box[1]).any():
        raise InvalidInput(
            f"`within` must be a box of whole numbers, first index and one past the last along "
            f"each of {ndim} axes, shape (2, {ndim}), got {within!r}",
            argument="within",
            remedy="leave it out to search the whole image",
        )
    return box.astype(np.int64)
