"""What the kernel of the covering keeps: regions, lists of gold segments, heaps of overlaps.

A segment's list, doubly linked, holds the gold segments whose best overlap it is. The overlaps of a
gold segment are a heap, a part of one array, the greatest key first. Nothing is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import inlined


@inlined
def root(region: int, parent: NDArray[np.int64]) -> int:
    """Return the segment that a region is part of, and shorten the way to it."""
    while parent[region] != region:
        parent[region] = parent[parent[region]]
        region = parent[region]
    return region


@inlined
def link(gold: int, segment: int, head: Any, after: Any, before: Any, owner: Any) -> None:
    """Put a gold segment at the beginning of a segment's list."""
    owner[gold] = segment
    before[gold] = -1
    after[gold] = head[segment]
    if head[segment] >= 0:
        before[head[segment]] = gold
    head[segment] = gold


@inlined
def unlink(gold: int, head: Any, after: Any, before: Any, owner: Any) -> None:
    """Take a gold segment out of the list of its owner."""
    if before[gold] >= 0:
        after[before[gold]] = after[gold]
    else:
        head[owner[gold]] = after[gold]
    if after[gold] >= 0:
        before[after[gold]] = before[gold]


@inlined
def rise(at: int, low: int, keys: Any, heap: Any, place: Any) -> None:
    """Move the entry at place `at` up to where it belongs in the heap that begins at `low`."""
    entry = heap[at]
    while at > low:
        up = low + (at - low - 1) // 2
        if keys[heap[up]] >= keys[entry]:
            break
        heap[at] = heap[up]
        place[heap[at]] = at
        at = up
    heap[at] = entry
    place[entry] = at


@inlined
def sink(low: int, high: int, keys: Any, heap: Any, place: Any) -> None:
    """Move the first entry of the heap ``heap[low:high]`` down to where it belongs."""
    entry = heap[low]
    at = low
    while True:
        child = low + 2 * (at - low) + 1
        if child >= high:
            break
        if child + 1 < high and keys[heap[child + 1]] > keys[heap[child]]:
            child += 1
        if keys[heap[child]] <= keys[entry]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = entry
    place[entry] = at
