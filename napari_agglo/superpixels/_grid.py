"""Voxels in one flat array with a wall around them, so that kernels need no bounds checks.

Along each connected axis one layer of wall follows the last voxel; stepping back from the first
voxel of a row lands on the wall of the row before. A margin in front serves the very first ones.
An axis that is not connected (the planes of a stack that are segmented one by one) simply has no
offset, and n-D code does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SCAN = 1 << 21  # voxels in one call of a scanning kernel: at most some 20 ms


@dataclass(frozen=True)
class Grid:
    """The layout of a padded volume.

    Attributes
    ----------
    shape
        Number of voxels along each axis, without the wall.
    padded
        The same with the wall.
    front
        Flat index of the first voxel.
    size
        Length of the flat array.
    offsets
        Steps to the face neighbours, int64, ascending.
    """

    shape: tuple[int, ...]
    padded: tuple[int, ...]
    front: int
    size: int
    offsets: Array

    @property
    def index_dtype(self) -> type[np.signedinteger[Any]]:
        """The smallest type that holds a flat index; half the memory is half the cache misses."""
        return np.int32 if self.size < 2**31 else np.int64

    def view(self, flat: Array) -> Array:
        """Return the voxels of `flat` without the wall, as an n-D view."""
        inner = tuple(slice(0, length) for length in self.shape)
        return flat[self.front :].reshape(self.padded)[inner]

    def scans(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of flat indices that together hold every voxel, in order."""
        for start in range(self.front, self.size, SCAN):
            yield start, min(start + SCAN, self.size)


def make_grid(shape: Sequence[int], connected: Sequence[bool]) -> Grid:
    """Lay out a volume whose voxels touch along the `connected` axes only.

    Examples
    --------
    >>> from napari_agglo.superpixels._grid import make_grid
    >>> make_grid((2, 3), (True, True)).offsets.tolist()
    [-4, -1, 1, 4]
    """
    padded = tuple(n + 1 if touches else n for n, touches in zip(shape, connected, strict=True))
    strides = [math.prod(padded[axis + 1 :]) for axis in range(len(padded))]
    steps = [stride for stride, touches in zip(strides, connected, strict=True) if touches]
    front = max(steps, default=0)
    offsets = np.array(sorted([-step for step in steps] + steps), dtype=np.int64)
    return Grid(tuple(shape), padded, front, front + math.prod(padded), offsets)
