"""Which state of each merge tree a frame shows, all of them in step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_number, is_whole
from napari_agglo.tree import MergeTree

By = Literal["merges", "threshold"]


@dataclass(frozen=True, eq=False)
class Steps:
    """The states of a movie.

    Attributes
    ----------
    merges : ndarray of int64, shape (frames, trees)
        Merges done in each frame of each tree.
    thresholds : ndarray of float64, shape (frames, trees)
        The threshold of each: that of the frame, or the least at which these merges are done.
    """

    merges: NDArray[np.int64]
    thresholds: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.merges)


def steps(
    trees: Sequence[MergeTree],
    by: By = "merges",
    frames: int = 120,
    *,
    start: float | None = None,
    stop: float | None = None,
) -> Steps:
    """Choose the states of so many frames.

    Parameters
    ----------
    trees : sequence of MergeTree
        One or more.
    by : {"merges", "threshold"}
        The same number of merges in all trees, or the same threshold.
    frames : int
        How many, 2 or more.
    start, stop : float, optional
        First and last number of merges, or threshold. By default from the superpixels to the end.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[1, 2, 3]]), np.array([[0.0, 0.2, 0.6]]))
    >>> found = steps([agglo.agglomerate(graph)], frames=3)
    >>> found.merges.tolist(), found.thresholds.round(3).tolist()
    ([[0], [1], [2]], [[-inf], [0.1], [0.4]])
    """
    _check(by, frames, start, stop)
    if by == "merges":
        most = max(tree.n_merges for tree in trees)
        done = np.rint(_even(start, stop, 0, most, frames)).astype(np.int64)
        merges = np.stack([np.clip(done, 0, tree.n_merges) for tree in trees], axis=1)
        heights = [np.concatenate([[-np.inf], tree.heights]) for tree in trees]
        thresholds = np.stack([h[m] for h, m in zip(heights, merges.T, strict=True)], axis=1)
        return Steps(merges, thresholds)
    ends = [end for tree in trees for end in tree.heights[[0, -1]].tolist() if tree.n_merges]
    at = _even(start, stop, min([0.0, *ends]), max(ends, default=1.0), frames)
    merges = np.array([[tree.n_merges_at(float(t)) for tree in trees] for t in at], np.int64)
    return Steps(merges, np.repeat(at[:, None], len(trees), axis=1))


def _even(
    start: float | None, stop: float | None, first: float, last: float, frames: int
) -> NDArray[np.float64]:
    begin = first if start is None else float(start)
    end = max(last, begin) if stop is None else float(stop)
    return np.linspace(begin, end, frames)


def _check(by: Any, frames: Any, start: Any, stop: Any) -> None:
    if by not in get_args(By):
        raise InvalidInput(f"`by` must be 'merges' or 'threshold', got {by!r}.")
    if not (is_whole(frames) and frames >= 2):
        raise InvalidInput(f"`frames` must be a whole number, 2 or more, got {frames!r}.")
    for name, value in (("start", start), ("stop", stop)):
        if value is not None and not (is_number(value) and np.isfinite(value)):
            raise InvalidInput(f"`{name}` must be a number of {by}, got {value!r}.")
        if value is not None and by == "merges" and value < 0:
            raise InvalidInput(f"`{name}` must be 0 merges or more, got {value!r}.")
    if start is not None and stop is not None and start > stop:
        raise InvalidInput(f"`start` must not exceed `stop`, got {start!r} and {stop!r}.")
