"""Flooding from all minima without a queue: each voxel takes the label of its lowest neighbour.

Where the seeds are all regional minima, `flood` enters every voxel at its own level: a voxel that
is no seed has a lower neighbour, or lies on a plateau that has one, and is flooded from there
before the water rises to it. So its label is that of the neighbour that leaves the queue first, its
*parent*, and parents can be found in the order of memory, where `flood` waits for it.

The parent is the lowest neighbour. Of neighbours of one level, a seed leaves the queue before any
other voxel, and seeds leave it in raster order; of two other voxels, the one whose parent left the
queue first; and of two with the same parent, the first in raster order. A voxel of a plateau
without a lower neighbour has its parent in the plateau, among the neighbours that are nearest to
the rim.

Strategy. One pass over the levels finds the lowest neighbours, without branches. Voxels with
several of these, and voxels of plateaus, are then resolved by ascending level, since a comparison
follows the parents of lower voxels. The last pass follows parents to a label. Where there are
many equal levels, comparisons are long; then `flood` does the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._numba import inlined, kernel
from napari_agglo.superpixels._flood_queue import Array, Grid, Tick, flood, in_slices

WALL = 65535  # level outside the mask: no voxel is higher
_TIED = 0x80  # flag of a code: another neighbour is as low
_WAITING = 0x7F  # code of a voxel in the queue of its plateau; more than the number of neighbours
_BLOCK = 4096  # voxels whose lowest neighbours are found at a time
# What is left to `flood`, as a share of all voxels: more voxels to resolve, or more comparisons.
_RESOLVED = 1 / 8
_COMPARISONS = 1.0
_NEXT, _COLLECT, _CHOOSE, _SPREAD = 0, 1, 2, 3


def lowest_neighbours(levels: Array, grid: Grid, tick: Tick) -> Array:
    """Return a code of each voxel: the number of the offset to the first lowest neighbour.

    Offsets are numbered from 1; 0 if no neighbour is lower, which `is_drained` tells; `_TIED` is
    added if there are several neighbours of that level, or of the voxel's own.

    Parameters
    ----------
    levels : ndarray of uint16, shape (grid.size,)
        The levels; `WALL` for the wall and masked voxels.
    """
    codes = np.zeros(grid.size, np.uint8)
    lowest, steps = np.empty(_BLOCK, np.uint16), np.empty(_BLOCK, np.uint16)
    last = grid.size - grid.front  # voxels from here on are wall
    for start, stop in grid.scans():
        _find_lowest(levels, grid.offsets, start, min(stop, last), lowest, steps, codes)
        tick("finding seeds", 0, grid.size)
    return codes


def is_drained(codes: Array) -> Array:
    """Return whether each voxel has a lower neighbour."""
    drained: Array = (codes & _WAITING) != 0
    return drained


def flood_minima(state: Array, levels: Array, codes: Array, grid: Grid, tick: Tick) -> None:
    """Flood `state` in place, as `flood` does, from seeds that are all of the regional minima.

    Parameters
    ----------
    state : ndarray of int, shape (grid.size,)
        ``-1 - level`` where dry, a label where seeded, 0 for the wall and masked voxels.
    levels : ndarray of uint16, shape (grid.size,)
        The levels; `WALL` for the wall and masked voxels.
    codes : ndarray of uint8, shape (grid.size,)
        The `lowest_neighbours`; they are changed.
    """
    if not _find_parents(state, levels, codes, grid, tick):
        flood(state, levels, grid, tick)
        return
    for start, stop in grid.scans():
        _follow(state, codes, grid.offsets, start, stop)
        tick("flooding", stop, grid.size)


def _find_parents(state: Array, levels: Array, codes: Array, grid: Grid, tick: Tick) -> bool:
    """Write the number of the parent's offset, from 1, to `codes`; return False if it takes long.

    `state` is not changed.
    """
    most = int(grid.size * _RESOLVED)
    todo = np.empty(most + 1, grid.index_dtype)
    n = 0
    for start, stop in grid.scans():
        n = int(_find_ties(state, start, stop, codes, todo, n))
        if n > most:
            return False
        tick("flooding", 0, grid.size)
    todo = todo[:n]
    flat = (codes[todo] & _WAITING) == 0
    todo = todo[np.lexsort((flat, levels[todo]))]
    queue, chosen = np.empty(int(flat.sum()), grid.index_dtype), np.empty(flat.size, np.uint8)
    cursor = np.zeros(7, np.int64)
    in_slices(
        lambda budget: int(
            _resolve(state, levels, grid.offsets, codes, todo, queue, chosen, cursor, budget)
            if cursor[6] <= grid.size * _COMPARISONS
            else 0
        ),
        grid.size,
        "flooding",
        lambda stage, done, total: tick(stage, 0, total),
    )
    return bool(cursor[0] == n and cursor[1] == _NEXT)


@kernel
def _find_lowest(
    levels: Any, offsets: Any, start: int, stop: int, lowest: Any, steps: Any, codes: Any
) -> None:
    """Write the codes of ``start:stop``, a block at a time. `lowest` and `steps` are buffers.

    No bounds checking is performed: all voxels plus offsets are in `levels`.
    """
    for first in range(start, stop, lowest.size):
        size = min(lowest.size, stop - first)
        # Slices, whose indices cannot be negative, and 16 bits throughout: so LLVM makes vectors.
        here = levels[first : first + size]
        for i in range(size):
            lowest[i] = here[i]
            steps[i] = 0
        for k in range(offsets.size):
            there = levels[first + offsets[k] : first + offsets[k] + size]
            number = np.uint16(k + 1)
            for i in range(size):
                level = there[i]
                least = lowest[i]
                step = steps[i]
                step = np.uint16(step | np.uint16(_TIED)) if level == least else step
                steps[i] = number if level < least else step
                lowest[i] = min(level, least)
        out = codes[first : first + size]
        for i in range(size):
            out[i] = steps[i]


@kernel
def _find_ties(state: Any, start: int, stop: int, codes: Any, todo: Any, n: Any) -> Any:
    """Append the dry voxels of several lowest neighbours to `todo`; return the number in `todo`.

    The code of a voxel of a plateau becomes 0. The kernel ends when `todo` is full. No bounds
    checking is performed.
    """
    for voxel in range(start, stop):
        if codes[voxel] >= _TIED and state[voxel] < 0:
            todo[n] = voxel
            n += 1
            if codes[voxel] == _TIED:
                codes[voxel] = 0
            if n == todo.size:
                break
    return n


@inlined
def _leaves_first(
    one: Any, two: Any, state: Any, levels: Any, offsets: Any, codes: Any, cursor: Any
) -> Any:
    """Return whether voxel `one` leaves the queue before `two`. Both have parents, or are seeds."""
    while True:
        cursor[6] += 1
        if levels[one] != levels[two]:
            return levels[one] < levels[two]
        if state[one] > 0 or state[two] > 0:
            return state[one] > 0 and (state[two] <= 0 or one < two)
        over = one + offsets[codes[one] - 1]
        under = two + offsets[codes[two] - 1]
        if over == under:
            return one < two
        one, two = over, under


@kernel
def _resolve(
    state: Any, levels: Any, offsets: Any, codes: Any, todo: Any, queue: Any, chosen: Any,
    cursor: Any, budget: int,
) -> int:  # fmt: skip
    """Find the parents of `todo`, by ascending level, plateaus last; return visits, 0 at the end.

    `cursor` is (position in `todo`, phase, first, next, end of a generation and end of `queue`,
    comparisons). A generation of a plateau is as far from its rim in steps; it chooses its parents
    among the generation before. No bounds checking is performed.
    """
    visits = 0
    while visits < budget:
        at, phase = cursor[0], cursor[1]
        if phase <= _COLLECT:
            # Invariant: the voxels of `todo` before `at`, and all lower ones, have parents.
            voxel = np.int64(todo[at]) if at < todo.size else np.int64(-1)
            tied = voxel >= 0 and codes[voxel] > _TIED
            if phase == _COLLECT and (
                voxel < 0 or tied or levels[voxel] != levels[np.int64(todo[cursor[2]])]
            ):
                cursor[1], cursor[2], cursor[3], cursor[4] = _CHOOSE, 0, 0, cursor[5]
                continue
            if voxel < 0:
                break
            visits += 1
            if tied:
                codes[voxel] = _first_neighbour(
                    voxel, _lowest_level(voxel, levels, offsets, codes), state, levels, offsets,
                    codes, cursor,
                )  # fmt: skip
            elif phase == _NEXT:
                cursor[1], cursor[2], cursor[5] = _COLLECT, at, 0
                continue
            elif _first_neighbour(voxel, levels[voxel], state, levels, offsets, codes, cursor):
                codes[voxel] = _WAITING
                queue[cursor[5]] = voxel
                cursor[5] += 1
            cursor[0] += 1
        elif phase == _CHOOSE:
            if cursor[3] == cursor[4]:
                cursor[1], cursor[3] = _SPREAD, cursor[2]
                continue
            visits += 1
            voxel = np.int64(queue[cursor[3]])
            chosen[cursor[3]] = _first_neighbour(
                voxel, levels[voxel], state, levels, offsets, codes, cursor
            )
            cursor[3] += 1
        elif cursor[3] < cursor[4]:
            visits += 1
            voxel = np.int64(queue[cursor[3]])
            codes[voxel] = chosen[cursor[3]]
            cursor[3] += 1
            for k in range(offsets.size):
                neighbour = voxel + offsets[k]
                if (
                    codes[neighbour] == 0
                    and state[neighbour] < 0
                    and levels[neighbour] == levels[voxel]
                ):
                    codes[neighbour] = _WAITING
                    queue[cursor[5]] = neighbour
                    cursor[5] += 1
        else:
            cursor[2], cursor[3], cursor[4] = cursor[4], cursor[4], cursor[5]
            cursor[1] = _NEXT if cursor[2] == cursor[5] else _CHOOSE
    return visits


@inlined
def _lowest_level(voxel: Any, levels: Any, offsets: Any, codes: Any) -> Any:
    """Return the level of the lowest neighbours of a voxel that has several of them."""
    return levels[voxel + offsets[(codes[voxel] & _WAITING) - 1]]


@inlined
def _first_neighbour(
    voxel: Any, level: Any, state: Any, levels: Any, offsets: Any, codes: Any, cursor: Any
) -> Any:
    """Return the code of the neighbour at `level` that leaves the queue first; 0 if none does.

    Neighbours without a parent, in a plateau, are left out.
    """
    best = 0
    for k in range(offsets.size):
        neighbour = voxel + offsets[k]
        known = state[neighbour] > 0 or (state[neighbour] < 0 and 0 < codes[neighbour] < _WAITING)
        if (
            levels[neighbour] == level
            and known
            and (
                best == 0
                or _leaves_first(
                    neighbour, voxel + offsets[best - 1], state, levels, offsets, codes, cursor
                )
            )
        ):
            best = k + 1
    return best


@kernel
def _follow(state: Any, codes: Any, offsets: Any, start: int, stop: int) -> None:
    """Label the voxels of ``start:stop`` by that of their parent's parent's ... No bounds checks.

    The voxels on the way are labelled too.
    """
    for first in range(start, stop):
        if state[first] < 0:
            voxel = first
            while state[voxel] < 0:
                voxel += offsets[codes[voxel] - 1]
            label = state[voxel]
            voxel = first
            while state[voxel] < 0:
                state[voxel] = label
                voxel += offsets[codes[voxel] - 1]
