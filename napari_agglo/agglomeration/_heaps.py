"""A binary heap of (key, value) pairs for kernels: two arrays, and a size passed and returned."""

from __future__ import annotations

from typing import Any

from napari_agglo._jit import inlined


@inlined
def heap_push(keys: Any, values: Any, size: Any, key: Any, value: Any) -> Any:
    """Add `value` under `key`; return the new size."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        values[at] = values[above]
        at = above
    keys[at] = key
    values[at] = value
    return size + 1


@inlined
def heap_pop(keys: Any, values: Any, size: Any) -> Any:
    """Drop the entry of the smallest key, which is the first; return the new size."""
    size -= 1
    if size > 0:
        _sift(keys, values, size, 0, keys[size], values[size])
    return size


@inlined
def heap_order(keys: Any, values: Any, size: Any) -> None:
    """Make a heap of `size` entries that are in any order."""
    for at in range(size // 2 - 1, -1, -1):
        _sift(keys, values, size, at, keys[at], values[at])


@inlined
def _sift(keys: Any, values: Any, size: Any, at: Any, key: Any, value: Any) -> None:
    """Let (`key`, `value`) sink from place `at` to where it belongs."""
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at] = keys[below]
        values[at] = values[below]
        at = below
    keys[at] = key
    values[at] = value
