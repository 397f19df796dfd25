"""Seeds: the regional minima of the levels, plateaus included.

A plateau is a face-connected set of voxels of one level; it is a minimum if none of its voxels has
a lower neighbour. Each minimum is one seed, numbered in raster order of its first voxel.

Strategy: most voxels see a lower neighbour at once, and most minima are single voxels; only what
is neither is explored as a plateau, once. Seeds are written into the volume while it is scanned.
That hides the level of a seed, but what touches a finished seed is higher by definition, so that
"a label or a lower level" is one comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._jit import kernel
from napari_agglo.superpixels._grid import Array, Grid
from napari_agglo.superpixels._slices import Tick, in_slices

_SCANNING, _EXPLORING, _LABELLING = 0, 1, 2


def label_minima(state: Array, grid: Grid, tick: Tick) -> int:
    """Label the regional minima of `state` in place and return how many there are.

    Parameters
    ----------
    state : ndarray of int, shape (grid.size,)
        ``-1 - level`` for a voxel, 0 for the wall and what is masked. Minima become 1, 2, ...
    """
    seen = np.zeros(grid.size, np.uint8)
    pending = np.empty(grid.size, grid.index_dtype)
    cursor = np.array([grid.front, _SCANNING, 0, 0, 0, 0], np.int64)
    in_slices(
        lambda budget: int(_label_minima(state, grid.offsets, seen, pending, cursor, budget)),
        grid.size - grid.front,
        "finding seeds",
        tick,
    )
    return int(cursor[5])


@kernel
def _label_minima(
    state: Any, offsets: Any, seen: Any, pending: Any, cursor: Any, budget: int
) -> int:
    """Go on from `cursor` for about `budget` visits; return how many, 0 at the end.

    `cursor` is (scan position, phase, head and tail of `pending`, plateau is no minimum, number of
    seeds). No bounds checking is performed: `state` must be walled in as `Grid` does it.
    """
    position, phase, head, tail = cursor[0], cursor[1], cursor[2], cursor[3]
    drained, count = cursor[4], cursor[5]
    visits = 0
    while visits < budget:
        if phase == _SCANNING:
            if position == state.size:
                break
            visits += 1
            here = state[position]
            if here < 0 and seen[position] == 0:
                lower = False
                level = False
                for k in range(offsets.size):
                    there = state[position + offsets[k]]
                    if there > here and there != 0:
                        lower = True
                        break
                    if there == here:
                        level = True
                if level and not lower:
                    seen[position] = 1
                    pending[0] = position
                    head, tail, drained, phase = 0, 1, 0, _EXPLORING
                    continue
                if not lower:
                    count += 1
                    state[position] = count
            position += 1
        elif phase == _EXPLORING:
            if head == tail:
                head = 0
                phase = _LABELLING if drained == 0 else _SCANNING
                count += 1 - drained
                position += drained
                continue
            visits += 1
            voxel = np.int64(pending[head])
            head += 1
            here = state[voxel]
            for k in range(offsets.size):
                neighbour = voxel + offsets[k]
                there = state[neighbour]
                if there == here:
                    if seen[neighbour] == 0:
                        seen[neighbour] = 1
                        pending[tail] = neighbour
                        tail += 1
                elif there > here and there != 0:
                    drained = 1
        elif head < tail:
            visits += 1
            state[pending[head]] = count
            head += 1
        else:
            phase = _SCANNING
            position += 1
    cursor[0], cursor[1], cursor[2], cursor[3] = position, phase, head, tail
    cursor[4], cursor[5] = drained, count
    return visits
