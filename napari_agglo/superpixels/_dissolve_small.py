"""Dissolve superpixels that are too small: flood their voxels from the neighbours.

The rule. As long as there is a superpixel of fewer than `min_size` voxels that touches another,
one of the smallest is dissolved, and its voxels are flooded from the superpixels around by the rule
of `flood`. They are dissolved one at a time, because where a fine texture makes all of them small,
dissolving all at once would leave no label to flood from. "One of the smallest": sizes of the same
number of bits (1, 2-3, 4-7, 8-15, ...) count as equal, and of equal sizes the lowest label comes
first. In that order the work passes through the volume from end to end, a few times; the order of
exact sizes would access it at random and wait for memory.

Strategy. Sizes only grow, so the labels are scanned once for each number of bits, in order, and
those of that size are dissolved; no label of fewer bits can be left but islands. A superpixel is
connected, so that all its voxels are reached from any of them. Of the wet voxels around a voxel,
only the one that is flooded from first can flood it, so a voxel keeps one of them, its *leader*.
The next voxel to flood from is the least of three: the first of the leaders, which are sorted; the
first of the voxels flooded at the current level, in a plain queue; and the lowest of higher ones.
Leaders are sorted by counting the lesser ones of each, and the lowest voxel is found by a scan: for
some dozens of keys this is faster than a heap, as it has no branches. Larger superpixels have
heaps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.heaps import heap_order, heap_pop, heap_push
from napari_agglo.superpixels._flood_queue import Array, Grid, Tick, in_slices

_STEP_BITS = 5  # number of an offset: up to 16 axes
_VOXEL_BITS = 40  # a flat index, or the order of entry
_NEVER = 1 << 62  # above all keys
_FEW = 128  # voxels up to which a scan is faster than a heap
_at = np.uint64  # unsigned indices spare a test for negative ones
_SCANNED = 16  # labels that take as long to scan as a voxel to flood, or less


class _Room(NamedTuple):
    """Arrays for the voxels of one superpixel, all but `heights` of int64.

    Attributes
    ----------
    members, heights
        Voxels to flood and their levels, in the order in which they were found.
    unsorted, leaders
        Keys ``(level, voxel, number of the offset to the member)`` of the leaders; `unsorted` is a
        heap if there are many, otherwise `leaders` has the keys in order, and `_NEVER` after them.
    entered
        Flooded voxels, in the order of entry.
    queue
        Numbers of those in `entered` that were flooded at the current level.
    waiting
        Keys ``(level, number in entered)`` of higher ones: a heap if there are many, otherwise the
        key of each that entered, `_NEVER` for those that wait no longer.
    """

    members: Any
    heights: Any
    unsorted: Any
    leaders: Any
    entered: Any
    queue: Any
    waiting: Any


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
    n = min(min_size, int(sizes.sum()))
    keys = (np.empty(n + 1, np.int64) for _ in range(5))
    room = _Room(np.empty(n, np.int64), np.empty(n, np.int32), *keys)
    cursor = np.array([1, 1], np.int64)
    in_slices(
        lambda budget: int(
            _dissolve(
                state, levels, grid.offsets, sizes, anchors, min_size, room, cursor,
                budget // 8,  # a voxel takes longer than in other kernels
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


@kernel
def _dissolve(
    state: Any, levels: Any, offsets: Any, sizes: Any, anchors: Any, min_size: int, room: Any,
    cursor: Any, budget: int,
) -> int:  # fmt: skip
    """Dissolve until about `budget` voxels are visited; return the number of visits, 0 at the end.

    `cursor` is (bits of the size to dissolve, next label). No bounds checking is performed: `state`
    must be walled in as `Grid` does it, and `room` have room for the voxels of a small label.
    """
    visits = 0
    while visits < budget and (1 << (cursor[0] - 1)) < min_size:
        low = 1 << (cursor[0] - 1)
        high = min(2 * low, min_size)
        start = cursor[1]
        label = start
        while label < sizes.size and visits < budget:
            if low <= sizes[label] < high:
                n_dry, n_leaders = _dry(label, state, levels, offsets, anchors[label], room)
                visits += n_dry
                if n_leaders == 0:  # an island, without neighbours: it stays
                    for i in range(n_dry):
                        state[room.members[i]] = label
                else:
                    sizes[label] = 0
                    _flood_dry(n_dry, n_leaders, state, offsets, sizes, room)
            label += 1
        visits += 1 + (label - start) // _SCANNED
        cursor[1] = label
        if label == sizes.size:
            cursor[0] += 1
            cursor[1] = 1
    return visits


@inlined
def _dry(label: Any, state: Any, levels: Any, offsets: Any, anchor: Any, room: Any) -> Any:
    """Dry the voxels of a label, from one of them; return their number and that of the leaders.

    The state of a dry voxel is -1 minus its number in `members`.
    """
    room.members[0] = anchor
    room.heights[0] = levels[anchor]
    state[anchor] = -1
    n_dry = 1
    head = 0
    n_leaders = 0
    while head < n_dry:
        voxel = room.members[_at(head)]
        head += 1
        first = np.int64(_NEVER)
        for k in range(offsets.size):
            neighbour = voxel + offsets[k]
            there = state[_at(neighbour)]
            if there == label:
                state[_at(neighbour)] = -1 - n_dry
                room.heights[_at(n_dry)] = levels[_at(neighbour)]
                room.members[_at(n_dry)] = neighbour
                n_dry += 1
            elif there > 0:
                # offsets are symmetric: the last but k leads back
                key = (np.int64(levels[_at(neighbour)]) << _VOXEL_BITS) + neighbour
                first = min(first, (key << _STEP_BITS) + offsets.size - 1 - k)
        room.unsorted[_at(n_leaders)] = first
        n_leaders += first != _NEVER
    return n_dry, n_leaders


@inlined
def _flood_dry(n_dry: Any, n_leaders: Any, state: Any, offsets: Any, sizes: Any, room: Any) -> None:
    """Flood the voxels that `_dry` has dried from their leaders."""
    few = n_dry <= _FEW
    if few:
        _sort_leaders(n_leaders, room)
    else:
        heap_order(room.unsorted, None, n_leaders)
    first = room.leaders[0] if few else room.unsorted[0]  # key of the next leader
    n_used = 0
    lowest = np.int64(_NEVER)  # least key of `waiting`
    n_waiting = np.int64(0)
    n_entered = 0
    head = 0
    tail: Any = 0
    level = np.int64(-1)
    # Invariant: voxels in `queue` are of the current level, and it is empty before the level rises.
    # Of one level the leaders come first, then the waiting, who entered before the level was
    # reached, then the queue.
    while n_entered < n_dry:
        height = first >> (_VOXEL_BITS + _STEP_BITS)
        rising = lowest >> _VOXEL_BITS
        start = 0
        stop = offsets.size
        if head < tail and level < min(height, rising):
            voxel = room.entered[_at(room.queue[_at(head)])]
            head += 1
        elif rising < height:
            level = rising
            number = lowest & ((1 << _VOXEL_BITS) - 1)
            voxel = room.entered[_at(number)]
            lowest = np.int64(_NEVER)
            if few:
                room.waiting[_at(number)] = _NEVER
                for i in range(n_entered):
                    lowest = min(lowest, room.waiting[i])
            else:
                n_waiting = heap_pop(room.waiting, None, n_waiting)
                if n_waiting > 0:
                    lowest = room.waiting[0]
        else:
            # All other dry neighbours of a leader have earlier leaders, or follow as the next.
            level = height
            voxel = (first >> _STEP_BITS) & ((1 << _VOXEL_BITS) - 1)
            start = first & ((1 << _STEP_BITS) - 1)
            stop = start + 1
            n_used += 1
            if few:
                first = room.leaders[_at(n_used)]
            else:
                n_leaders = heap_pop(room.unsorted, None, n_leaders)
                first = room.unsorted[0] if n_leaders > 0 else np.int64(_NEVER)
        owner = state[_at(voxel)]
        for k in range(start, stop):
            neighbour = voxel + offsets[_at(k)]
            there = state[_at(neighbour)]
            if there < 0:
                state[_at(neighbour)] = owner
                sizes[_at(owner)] += 1
                room.entered[_at(n_entered)] = neighbour
                own = np.int64(room.heights[_at(-1 - there)])
                key = (own << _VOXEL_BITS) + n_entered if own > level else np.int64(_NEVER)
                lowest = min(lowest, key)
                if few:
                    room.waiting[_at(n_entered)] = key
                elif own > level:
                    n_waiting = heap_push(room.waiting, None, n_waiting, key, None)
                room.queue[_at(tail)] = n_entered
                tail += own <= level
                n_entered += 1


@inlined
def _sort_leaders(n: Any, room: Any) -> None:
    """Write the keys of `n` leaders to `leaders` in order. No two are equal."""
    for i in range(n):
        key = room.unsorted[i]
        place: Any = np.int64(0)
        for j in range(n):
            place += np.int64(room.unsorted[j] < key)
        room.leaders[_at(place)] = key
    room.leaders[n] = _NEVER
