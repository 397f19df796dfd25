"""Superpixels with other labels in a few boxes, put together where one looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Patch = tuple[tuple[slice, ...], NDArray[Any]]  # where, and the labels there; 0 leaves what is


class Patched:
    """An array that is another one but for a few boxes; neither is copied.

    Parameters
    ----------
    source : array-like of int
        What is sliced.
    patches : sequence of (box, labels)
        Where other labels are, and which; where they are 0 the source is seen.
    step : int
        The source has every so manieth pixel along the last three axes of what the boxes are of.

    Examples
    --------
    >>> source = np.array([[1, 1, 2], [1, 1, 2]])
    >>> patched = Patched(source, [((slice(0, 2), slice(0, 1)), np.array([[0], [9]]))])
    >>> patched[:, 0]
    array([1, 9])
    >>> patched[1, ::2]
    array([9, 2])
    """

    def __init__(self, source: Any, patches: Sequence[Patch], step: int = 1) -> None:
        self.source = source
        self.patches = tuple(patches)
        self.shape = tuple(int(n) for n in source.shape)
        self.dtype = source.dtype
        coarse = max(0, len(self.shape) - 3)
        self._steps = [1 if axis < coarse else step for axis in range(len(self.shape))]

    def __getitem__(self, index: tuple[slice | int, ...]) -> NDArray[Any]:
        out = np.array(self.source[index], order="C")
        whole = out.reshape([len(self._places(axis, one)) for axis, one in enumerate(index)])
        for box, labels in self.patches:
            here, there = [], []
            for axis, (one, within) in enumerate(zip(index, box, strict=True)):
                places = self._places(axis, one) - within.start
                inside = np.flatnonzero((places >= 0) & (places < labels.shape[axis]))
                here.append(inside)
                there.append(places[inside])
            if all(map(len, here)):
                drawn = labels[np.ix_(*there)]
                at = np.ix_(*here)
                whole[at] = np.where(drawn > 0, drawn, whole[at])
        return out

    def _places(self, axis: int, one: slice | int) -> NDArray[np.int64]:
        """Return which pixels of the finest level an index takes along an axis."""
        every = np.arange(self.shape[axis], dtype=np.int64) * self._steps[axis]
        return np.atleast_1d(every[one])
