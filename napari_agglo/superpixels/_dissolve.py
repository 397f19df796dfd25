"""Dissolve superpixels that are too small: flood their voxels from the neighbours.

The rule. As long as there is a superpixel of fewer than `min_size` voxels that touches another,
one of the smallest is dissolved, and its voxels are flooded from the superpixels around by the rule
of `flood`. They are dissolved one at a time, because where a fine texture makes all of them small,
dissolving all at once would leave no label to flood from. "One of the smallest": sizes of the same
number of bits (1, 2-3, 4-7, 8-15, ...) count as equal, and of equal sizes the lowest label comes
first. In that order the work passes through the volume from end to end, a few times; the order of
exact sizes would access it at random and wait for memory.

Strategy. Sizes only grow, so each small superpixel has one entry in a heap, under its size at that
time; when it is popped and has grown, it is entered again under its true size. A superpixel is
connected, so that all its voxels are reached from any of them. The next voxel to flood from is the
least of three: the first of the wet voxels around, in an array sorted by insertion; the first of
the voxels flooded at the current level, in a plain queue; and the first of higher ones, in a heap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.heaps import heap_pop, heap_push
from napari_agglo.superpixels._watershed import Array, Grid, Tick, in_slices

_RANK_BITS = 44  # order within a level: a flat index, or this half plus the order of entry
_FOLLOWER = 1 << (_RANK_BITS - 1)
_NEVER = 1 << 62
_FEW = 128  # keys that are sorted faster by insertion than by a heap


def dissolve_small(
    state: Array, levels: Array, count: int, min_size: int, grid: Grid, tick: Tick
) -> None:
    """Dissolve superpixels of fewer than `min_size` voxels in `state`, in place.

    Parameters
    ----------
    state : ndarray of int, shape (grid.size,)
        Labels 1 to `count`, all voxels wet, each label connected; 0 for the wall.
    levels : ndarray of uint16, shape (grid.size,)
        The level of each voxel.
    """
    sizes = np.zeros(count + 1, np.int64)
    anchors = np.zeros(count + 1, np.int64)
    for start, stop in grid.scans():
        _measure(state, start, stop, sizes, anchors)
        tick("dissolving small superpixels", 0, count)
    small = np.flatnonzero((sizes > 0) & (sizes < min_size))
    if small.size == 0:
        return
    bits = np.frexp(sizes[small].astype(np.float64))[1].astype(np.int64)
    ladder = np.sort(bits * (count + 1) + small)  # sorted, hence a heap
    left = np.array([ladder.size], np.int64)
    room = min(min_size, int(sizes.sum()))
    members = np.empty(room, np.int64)
    leaders, queue, heap = (np.empty(n * room, np.int64) for n in (1, 1, 2))
    in_slices(
        lambda budget: int(
            _dissolve(
                state, levels, grid.offsets, sizes, anchors, min_size,
                ladder, left, members, leaders, queue, heap, budget // 16,  # heaps are slow
            )
        ),
        int(sizes[small].sum()),
        "dissolving small superpixels",
        tick,
    )  # fmt: skip


@kernel
def _measure(state: Any, start: int, stop: int, sizes: Any, anchors: Any) -> None:
    """Count the voxels of each label and keep one of them. Checks no bounds."""
    for voxel in range(start, stop):
        label = state[voxel]
        if label > 0:
            sizes[label] += 1
            anchors[label] = voxel


@inlined
def _bits(size: int) -> int:
    """Return the number of bits of `size`."""
    bits = 0
    while size > 0:
        size >>= 1
        bits += 1
    return bits


@kernel
def _dissolve(
    state: Any, levels: Any, offsets: Any, sizes: Any, anchors: Any, min_size: int,
    ladder: Any, left: Any, members: Any, leaders: Any, queue: Any, heap: Any, budget: int,
) -> int:  # fmt: skip
    """Dissolve until about `budget` voxels are visited; return the number of visits, 0 at the end.

    ``ladder[:left[0]]`` is the heap of small labels, ``bits * sizes.size + label``. No bounds
    checking is performed: `state` must be walled in as `Grid` does it, `members`, `leaders` and
    `queue` must have room for the voxels of a small label and `heap` for twice as many.
    """
    visits = 0
    while visits < budget and left[0] > 0:
        label = ladder[0] % sizes.size
        left[0] = heap_pop(ladder, None, left[0])
        visits += 1
        if sizes[label] >= min_size:
            continue
        rung = _bits(sizes[label]) * sizes.size + label
        if left[0] > 0 and rung > ladder[0]:
            left[0] = heap_push(ladder, None, left[0], rung, None)
            continue
        # Dry its voxels, from any one of them. Of the wet voxels around a voxel, only the one that
        # is popped first can flood it.
        members[0] = anchors[label]
        state[members[0]] = -1 - np.int64(levels[members[0]])
        dry = 1
        head = 0
        n_leaders = 0
        waiting = np.int64(0)
        while head < dry:
            voxel = members[head]
            head += 1
            first = np.int64(_NEVER)
            for k in range(offsets.size):
                neighbour = voxel + offsets[k]
                there = state[neighbour]
                if there == label:
                    state[neighbour] = -1 - np.int64(levels[neighbour])
                    members[dry] = neighbour
                    dry += 1
                elif there > 0:
                    first = min(first, (np.int64(levels[neighbour]) << _RANK_BITS) + neighbour)
            if n_leaders == _FEW and first != _NEVER:
                waiting = heap_push(heap, None, waiting, first, None)
            elif first != _NEVER:
                at = n_leaders
                while at > 0 and leaders[at - 1] > first:
                    leaders[at] = leaders[at - 1]
                    at -= 1
                leaders[at] = first
                n_leaders += 1
        visits += dry
        if n_leaders == 0:  # an island, without neighbours: it stays
            for i in range(dry):
                state[members[i]] = label
            continue
        sizes[label] = 0
        entered = 0
        # Invariant: the keys in `queue` are of the current level and ascend; it is empty before the
        # level rises. So the least key of all is the first of `leaders`, `queue` or `heap`.
        leader = 0
        head = 0
        tail = 0
        while entered < dry:
            key = leaders[leader] if leader < n_leaders else np.int64(_NEVER)
            least = queue[head] if head < tail else np.int64(_NEVER)
            if waiting > 0 and heap[0] < min(key, least):
                key = heap[0]
                waiting = heap_pop(heap, None, waiting)
            elif least < key:
                key = least
                head += 1
            else:
                leader += 1
            level: Any = key >> _RANK_BITS
            rank = key & ((1 << _RANK_BITS) - 1)
            voxel = rank if rank < _FOLLOWER else members[rank - _FOLLOWER]
            owner = state[voxel]
            for k in range(offsets.size):
                neighbour = voxel + offsets[k]
                there = state[neighbour]
                if there < 0:
                    state[neighbour] = owner
                    sizes[owner] += 1
                    members[entered] = neighbour
                    height = np.int64(-1 - there)
                    if height > level:
                        rank = (height << _RANK_BITS) + _FOLLOWER + entered
                        waiting = heap_push(heap, None, waiting, rank, None)
                    else:
                        queue[tail] = (level << _RANK_BITS) + _FOLLOWER + entered
                        tail += 1
                    entered += 1
    return visits
