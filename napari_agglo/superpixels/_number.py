"""Canonical labels: dense, in raster order of the first voxel, whatever the queue did before."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._jit import kernel
from napari_agglo.superpixels._grid import Array, Grid
from napari_agglo.superpixels._slices import Tick


def number(state: Array, count: int, first: int, grid: Grid, tick: Tick) -> int:
    """Renumber the labels 1 to `count` of `state` to `first`, `first` + 1, ...; return how many."""
    table = np.zeros(count + 1, state.dtype)
    given = 0
    for start, stop in grid.scans():
        given = int(_number(state, start, stop, table, given, first))
        tick("numbering", stop - grid.front, grid.size - grid.front)
    return given


@kernel
def _number(state: Any, start: int, stop: int, table: Any, given: int, first: int) -> int:
    """Renumber ``state[start:stop]``; return the number of labels given so far. No bounds checks.

    No label may be negative.
    """
    for voxel in range(start, stop):
        label = state[voxel]
        if label > 0:
            if table[label] == 0:
                table[label] = first + given
                given += 1
            state[voxel] = table[label]
    return given
