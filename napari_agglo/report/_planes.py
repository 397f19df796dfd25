"""Which plane of a volume to show: the one that has most of an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Plane:
    """Two axes that are shown, and the index along the others (None for the shown ones)."""

    rows: int
    columns: int
    index: tuple[int | None, ...]

    def cut(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the plane of an array; an axis after those of the labels stays."""
        return np.asarray(array[tuple(slice(None) if i is None else i for i in self.index)])

    def moved(self, box: Sequence[slice]) -> Plane:
        """Return the plane of the whole, if this is one of the part that `box` cuts out of it."""
        index = tuple(
            None if i is None else s.start + i for i, s in zip(self.index, box, strict=True)
        )
        return Plane(self.rows, self.columns, index)

    def __str__(self) -> str:
        """Say where it is: nothing for an image that is a plane."""
        fixed = [f"axis {axis} = {i}" for axis, i in enumerate(self.index) if i is not None]
        return ", ".join(fixed)


def best_plane(
    found: NDArray[np.bool_],
    minor: NDArray[np.bool_],
    spacing: Sequence[float] | None = None,
) -> Plane:
    """Return the plane with most of an error: of what is amiss, and of what it is amiss in.

    Parameters
    ----------
    found : ndarray of bool
        The voxels of a segment.
    minor : ndarray of bool
        Those of them that are not of its largest part.
    spacing : sequence of float, optional
        Axes that are more than twice as coarse as the finest are not shown.

    Examples
    --------
    >>> labels = np.ones((3, 4, 5), int)
    >>> labels[1, :2] = 2
    >>> best_plane(labels > 0, labels == 2)
    Plane(rows=1, columns=2, index=(1, None, None))
    """
    best: tuple[int, Plane] | None = None
    for shown in _pairs(found.ndim, spacing):
        amiss = np.count_nonzero(minor, axis=shown, keepdims=True)
        both = np.minimum(amiss, np.count_nonzero(found, axis=shown, keepdims=True) - amiss)
        at = int(np.lexsort([amiss.ravel(), both.ravel()])[-1])
        most = int(both.ravel()[at])
        if best is None or most > best[0]:
            places = np.unravel_index(at, both.shape)
            index = (None if axis in shown else int(k) for axis, k in enumerate(places))
            best = most, Plane(*shown, tuple(index))
    assert best is not None
    return best[1]


def _pairs(ndim: int, spacing: Sequence[float] | None) -> list[tuple[int, int]]:
    """Return the pairs of axes that may be shown, the last two first, of the last three axes."""
    axes = range(max(0, ndim - 3), ndim)
    fine = [a for a in axes if spacing is None or spacing[a] <= 2 * min(spacing[b] for b in axes)]
    chosen = fine if len(fine) >= 2 else list(axes)
    return list(combinations(chosen, 2))[::-1]
