"""What waits to happen, the first on top: boundaries that may merge and ends of recorded regions.

An indexed heap, as in the merge loop, of items with keys (level, priority, tie).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._jit import inlined, kernel


def empty_queue(n_items: int) -> tuple[Any, ...]:
    """Return the arrays of an empty queue of items 0..`n_items` - 1."""
    return (
        np.zeros(n_items),  # level
        np.zeros(n_items),  # priority
        np.zeros(n_items, np.int64),  # tie
        np.zeros(n_items, np.int32),  # items, the first on top
        np.full(n_items, -1, np.int32),  # place of each item, -1 if it does not wait
        np.zeros(1, np.int64),  # how many wait
    )


@inlined
def _comes_before(item: Any, other: Any, levels: Any, priorities: Any, ties: Any) -> Any:
    if levels[item] != levels[other]:
        return levels[item] < levels[other]
    if priorities[item] != priorities[other]:
        return priorities[item] < priorities[other]
    if ties[item] != ties[other]:
        return ties[item] < ties[other]
    return item < other


@inlined
def _settle(item: Any, at: Any, queue: Any) -> None:
    """Put `item`, whose place `at` is free, where it belongs."""
    levels, priorities, ties, heap, place, size = queue
    while at > 0:
        above = (at - 1) >> 1
        if not _comes_before(item, heap[above], levels, priorities, ties):
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    while True:
        below = 2 * at + 1
        if below >= size[0]:
            break
        if below + 1 < size[0] and _comes_before(
            heap[below + 1], heap[below], levels, priorities, ties
        ):
            below += 1
        if not _comes_before(heap[below], item, levels, priorities, ties):
            break
        heap[at] = heap[below]
        place[heap[at]] = at
        at = below
    heap[at] = item
    place[item] = at


@kernel
def put_item(item: Any, level: Any, priority: Any, tie: Any, queue: Any) -> None:
    """Let an item wait for its moment; if it waited for another, no more."""
    levels, priorities, ties, _, place, size = queue
    levels[item] = level
    priorities[item] = priority
    ties[item] = tie
    at = np.int64(place[item])
    if at < 0:
        at = size[0]
        size[0] += 1
    _settle(item, at, queue)


@kernel
def remove_item(item: Any, queue: Any) -> None:
    """Let an item wait no more."""
    _, _, _, heap, place, size = queue
    at = np.int64(place[item])
    if at < 0:
        return
    place[item] = -1
    size[0] -= 1
    if at < size[0]:
        _settle(np.int64(heap[size[0]]), at, queue)
