"""One block, from boundary values to labels: smooth, seed, flood, dissolve, number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from napari_agglo.superpixels._boundary import slabs, write_levels
from napari_agglo.superpixels._dissolve import dissolve_small
from napari_agglo.superpixels._flood import flood
from napari_agglo.superpixels._grid import Array, make_grid
from napari_agglo.superpixels._minima import label_minima
from napari_agglo.superpixels._number import number
from napari_agglo.superpixels._pieces import label_pieces
from napari_agglo.superpixels._slices import Tick


@dataclass(frozen=True)
class Recipe:
    """What is done to each block: checked numbers, one an axis where they are sequences."""

    limits: tuple[float, float]
    finite: bool
    sigmas: Sequence[float]
    connected: Sequence[bool]
    min_size: int


def segment_block(
    values: Array,
    mask: Array | None,
    seeds: Array | None,
    recipe: Recipe,
    first: int,
    out: Array,
    tick: Tick,
) -> int:
    """Write labels `first`, `first` + 1, ... to `out` and return how many there are.

    All arrays have the same shape; `out` is uint32 and holds zeros.
    """
    grid = make_grid(values.shape, recipe.connected)
    levels = np.zeros(grid.size, np.uint16)
    write_levels(values, recipe.limits, recipe.finite, recipe.sigmas, grid.view(levels), tick)
    state = np.zeros(grid.size, grid.index_dtype)
    heights, inner = grid.view(levels), grid.view(state)
    for start, stop in slabs(values.shape):
        np.subtract(-1, heights[start:stop], out=inner[start:stop], dtype=state.dtype)
        if mask is not None:
            inner[start:stop][~mask[start:stop]] = 0
        tick("finding seeds", 0, grid.size)
    if seeds is None:
        count = label_minima(state, grid, tick)
    else:
        source = np.zeros(grid.size, np.uint64)
        grid.view(source)[...] = seeds
        count = label_pieces(source, state, 0, grid, tick)
    flood(state, levels, grid, tick)
    if seeds is not None and state.min() < 0:  # islands without a seed
        count = label_pieces((state < 0).astype(np.uint64), state, count, grid, tick)
    if recipe.min_size > 1:
        dissolve_small(state, levels, count, recipe.min_size, grid, tick)
    given = number(state, count, first, grid, tick)
    for start, stop in slabs(values.shape):
        out[start:stop] = inner[start:stop]
        tick("numbering", stop, values.shape[0])
    return given
