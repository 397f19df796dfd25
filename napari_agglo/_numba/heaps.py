"""Heaps for kernels: a plain heap, and an indexed heap with the place of each item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined

# The plain heap of (key, value) pairs: two arrays, and a size that is passed and returned. Each
# entry has four children, which lie in one cache line when key and value are interleaved. Without
# values (None), the code that moves them is not compiled. A sorted array is a heap.


def heap_arrays(
    room: int, key: type[np.generic]
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Return arrays of keys and of values (int64) for `room` entries, interleaved in memory."""
    # One entry before the first line of four children, so that these begin a cache line.
    entries = np.empty(room + 8, [("key", key), ("value", np.int64)])
    skip = (-16 - entries.ctypes.data) % 64 // 16
    return entries["key"][skip:], entries["value"][skip:]


@inlined
def heap_push(keys: Any, values: Any, size: Any, key: Any, value: Any) -> Any:
    """Add `value` under `key`; return the new size."""
    at = size
    while at > 0:
        above = (at - 1) >> 2
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        if values is not None:
            values[at] = values[above]
        at = above
    keys[at] = key
    if values is not None:
        values[at] = value
    return size + 1


@inlined
def heap_pop(keys: Any, values: Any, size: Any) -> Any:
    """Drop the entry of the smallest key, which is the first; return the new size."""
    size -= 1
    if size > 0:
        value = None if values is None else values[size]
        _sift(keys, values, size, np.int64(0), keys[size], value)
    return size


@inlined
def heap_order(keys: Any, values: Any, size: Any) -> None:
    """Order `size` arbitrary entries as a heap."""
    for at in range((size - 2) >> 2, -1, -1):
        _sift(keys, values, size, at, keys[at], None if values is None else values[at])


@inlined
def _sift(keys: Any, values: Any, size: Any, at: Any, key: Any, value: Any) -> None:
    """Move (`key`, `value`) down from the free place `at` until no child has a smaller key."""
    while True:
        first = 4 * at + 1
        if first >= size:
            break
        below = first
        for child in range(first + 1, min(first + 4, size)):
            if keys[child] < keys[below]:
                below = child
        if keys[below] >= key:
            break
        keys[at] = keys[below]
        if values is not None:
            values[at] = values[below]
        at = below
    keys[at] = key
    if values is not None:
        values[at] = value


# The indexed heap: items are numbers, `heap` has them, the first on top, and `place` has the place
# of each item in `heap`, -1 if it is not in the heap. Invariant: ``heap[place[item]] == item``. An
# item whose keys have changed is moved, and a dead item is removed: the heap never has a stale
# entry. It is binary, and equal items are never exchanged. The caller that enters or removes an
# item updates `size` and ``place[item]``: a helper for that would pass all arrays on once more,
# which costs reference counts in hot loops.


@inlined
def heap_settle(
    item: Any,
    at: Any,
    comes_before: Any,
    first: Any,
    second: Any,
    heap: Any,
    place: Any,
    size: Any,
) -> None:
    """Put `item` into a heap of `size` items, of which the place `at` is free.

    ``comes_before(item, other, first, second)`` is an inlined function, which is compiled into the
    loop; `first` and `second` are the arrays of keys that it reads.
    """
    while at > 0:
        above = (at - 1) >> 1
        other = np.int64(heap[above])
        if not comes_before(item, other, first, second):
            break
        heap[at] = other
        place[other] = at
        at = above
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        other = np.int64(heap[below])
        if below + 1 < size and comes_before(np.int64(heap[below + 1]), other, first, second):
            below += 1
            other = np.int64(heap[below])
        if not comes_before(other, item, first, second):
            break
        heap[at] = other
        place[other] = at
        at = below
    heap[at] = item
    place[item] = at
