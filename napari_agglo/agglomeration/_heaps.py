"""A binary heap of (key, value) pairs for kernels: two arrays, and a size that is passed and returned."""

from __future__ import annotations

from napari_agglo._jit import inlined


@inlined
def heap_push(keys, values, size, key, value):  # type: ignore[no-untyped-def]
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
def heap_pop(keys, values, size):  # type: ignore[no-untyped-def]
    """Drop the entry of the smallest key, which is the first; return the new size."""
    size -= 1
    if size > 0:
        _sift(keys, values, size, 0, keys[size], values[size])
    return size


@inlined
def heap_order(keys, values, size):  # type: ignore[no-untyped-def]
    """Make a heap of `size` entries that are in any order."""
    for at in range(size // 2 - 1, -1, -1):
        _sift(keys, values, size, at, keys[at], values[at])


@inlined
def _sift(keys, values, size, at, key, value):  # type: ignore[no-untyped-def]
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
