"""Label the face-connected pieces of equal value: seeds that the user brings, islands left over."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._jit import kernel
from napari_agglo.superpixels._grid import Array, Grid
from napari_agglo.superpixels._slices import Tick, in_slices


def label_pieces(source: Array, state: Array, count: int, grid: Grid, tick: Tick) -> int:
    """Label each piece of equal non-zero `source` among the unlabelled voxels of `state`.

    Labels go on from `count`, in raster order of the first voxel; the new count is returned.
    """
    pending = np.empty(grid.size, grid.index_dtype)
    cursor = np.array([grid.front, 0, 0, count], np.int64)
    in_slices(
        lambda budget: int(_label_pieces(source, state, grid.offsets, pending, cursor, budget)),
        grid.size - grid.front,
        "finding seeds",
        tick,
    )
    return int(cursor[3])


@kernel
def _label_pieces(
    source: Any, state: Any, offsets: Any, pending: Any, cursor: Any, budget: int
) -> int:
    """Go on from `cursor` for about `budget` visits; return how many, 0 at the end.

    `cursor` is (scan position, head and tail of `pending`, number of labels). No bounds checking is
    performed: `source` and `state` must be walled in as `Grid` does it.
    """
    position, head, tail, count = cursor[0], cursor[1], cursor[2], cursor[3]
    visits = 0
    while visits < budget:
        if head < tail:
            voxel = np.int64(pending[head])
            head += 1
            for k in range(offsets.size):
                neighbour = voxel + offsets[k]
                if state[neighbour] < 0 and source[neighbour] == source[voxel]:
                    state[neighbour] = count
                    pending[tail] = neighbour
                    tail += 1
        elif position < state.size:
            if state[position] < 0 and source[position] != 0:
                count += 1
                state[position] = count
                pending[0] = position
                head, tail = 0, 1
            position += 1
        else:
            break
        visits += 1
    cursor[0], cursor[1], cursor[2], cursor[3] = position, head, tail, count
    return visits
