"""The decisions most worth a look, best first, each with the place where it was made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.graph import RegionGraph
from napari_agglo.session._segments import segments_of
from napari_agglo.session._suggest._decisions import (
    Apart,
    Made,
    follow_merges,
    meeting_boxes,
    sides_apart,
    sides_made,
)
from napari_agglo.session._suggest._doubt import confusion, expected_gain
from napari_agglo.session._suggest._suggestion import Kind, Suggestion
from napari_agglo.session._suggest._where import meeting, overlap


def suggest(
    graph: RegionGraph,
    lut: ArrayLike,
    apart: Apart,
    made: Made,
    n: int = 10,
    *,
    kind: Kind | None = None,
    min_size: int = 1,
    within: ArrayLike | None = None,
) -> list[Suggestion]:
    """Return the `n` decisions most worth a look, best first.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels.
    lut : array of int, shape (n + 1,)
        The segment of each superpixel.
    apart : Apart
        The boundaries between segments.
    made : Made
        The merges within segments. One whose sides are in two segments by `lut` is passed over.
    n : int
        How many at most. Decisions that were answered, or of which the policy is entirely sure, are
        never suggested.
    kind : {"false_split", "false_merge"}, optional
        Only one kind.
    min_size : int
        Only where both sides have so many pixels.
    within : array of int, shape (2, ndim), optional
        Only what lies in this box: first index, and one past the last, along each axis.

    Returns
    -------
    list of Suggestion

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 1, 2, 2, 3, 3]]), np.zeros((1, 6)))
    >>> apart, made = Apart.of([1], [3], [0.6]), Made.of([1], [2], [0.1])
    >>> best, other = suggest(graph, [0, 1, 1, 3], apart, made)
    >>> best.question, best.segments, best.superpixels, best.position
    ('Merge these two?', (1, 3), (2, 3), (0.0, 3.5))
    >>> best.reason
    'Left apart (4 and 2 pixels), though it is 40% likely that they are one; merging them would then
    lower VI by 0.92 bits.'
    >>> other.question, other.segments
    ('Cut here?', (1,))
    """
    _check(n, kind, min_size)
    table = np.asarray(lut, np.int64)
    box = None if within is None else _checked_box(within, graph.layout.ndim)
    segments = segments_of(graph, lut)
    total = int(graph.sizes.sum())
    one = sides_apart(segments, apart, box is not None)
    two = sides_made(graph, made, box is not None)
    x, y = (np.concatenate(pair) for pair in zip(one.sizes, two.sizes, strict=True))
    error = np.concatenate([1 - apart.wrong, made.wrong])
    usable = np.concatenate(
        [~apart.answered, ~made.answered & (table[made.first] == table[made.second])]
    )
    usable &= np.minimum(x, y) >= max(min_size, 1)
    if kind is not None:
        usable &= np.repeat([kind == "false_split", kind == "false_merge"], [len(apart), len(made)])
    if box is not None:
        near = [overlap(meeting_boxes(*side.boxes), box) for side in (one, two) if side.boxes]
        usable &= np.concatenate(near)
    rows = np.flatnonzero(usable)
    scores = np.zeros(len(x))
    scores[rows] = expected_gain(x[rows], y[rows], error[rows], total)[1]
    found: list[Suggestion] = []
    for k in _best_first(scores, n):
        if len(found) == n:
            break
        sides, ids = _sides(table, apart, made, k)
        place = meeting(graph, sides, box)
        if place is None:
            continue
        found.append(
            Suggestion(
                kind="false_split" if k < len(apart) else "false_merge",
                segments=ids,
                superpixels=place.superpixels,
                sizes=(int(x[k]), int(y[k])),
                position=place.position,
                wrong=float(1 - error[k] if k < len(apart) else error[k]),
                gain=float(confusion(x[k], y[k]) / total),
                score=float(scores[k]),
            )
        )
    return found


def _best_first(scores: NDArray[np.float64], n: int) -> Iterator[int]:
    """Give rows of positive score, the highest first and of equals the first, sorting few."""
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
    table: NDArray[np.int64], apart: Apart, made: Made, k: int
) -> tuple[NDArray[np.int8], tuple[int, ...]]:
    """Return on which side of decision `k` each superpixel is, and the segments it is about."""
    if k < len(apart):
        ids = int(apart.first[k]), int(apart.second[k])
        where = table
    else:
        k -= len(apart)
        ids = int(made.first[k]), int(made.second[k])
        where = np.arange(len(table))
        follow_merges(made.first, made.second, k, where)
    sides = np.zeros(len(table), np.int8)
    sides[where == ids[0]] = 1
    sides[where == ids[1]] = 2
    return sides, ids if where is table else (int(table[ids[0]]),)


def _check(n: int, kind: Any, min_size: int) -> None:
    if not (is_whole(n) and n >= 0):
        raise InvalidInput(f"`n` must be a whole number, 0 or more, got {n!r}.")
    if kind is not None and kind not in get_args(Kind):
        raise InvalidInput(
            f"`kind` must be 'false_split', 'false_merge' or None for both, got {kind!r}."
        )
    if not is_whole(min_size):
        raise InvalidInput(f"`min_size` must be a whole number of pixels, got {min_size!r}.")


def _checked_box(within: ArrayLike, ndim: int) -> NDArray[np.int64]:
    box = np.asarray(within)
    if box.shape != (2, ndim) or box.dtype.kind not in "iu" or (box[0] >= box[1]).any():
        raise InvalidInput(
            f"`within` must be a box of whole numbers, first index and one past the last along "
            f"each of {ndim} axes, shape (2, {ndim}), got {within!r}."
        )
    return box.astype(np.int64)
