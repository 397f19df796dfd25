"""What waits to happen, the first on top: boundaries that may merge and ends of recorded regions.

An indexed heap, as in the merge loop. An item waits for a moment: the peak (level, priority, tie),
which never falls from one to the next, and among those of one peak the key (priority, tie).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.heaps import heap_settle


def empty_queue(n_items: int) -> tuple[Any, ...]:
    """Return the arrays of an empty queue of items 0..`n_items` - 1."""
    return (
        np.zeros((n_items, 3)),  # level, priority of the peak, own priority
        np.zeros((n_items, 2), np.int64),  # tie of the peak, own tie
        np.zeros(n_items, np.int32),  # items, the first on top
        np.full(n_items, -1, np.int32),  # place of each item, -1 if it does not wait
        np.zeros(1, np.int64),  # how many wait
    )


@inlined
def _comes_before(item: Any, other: Any, numbers: Any, ties: Any) -> Any:
    """Tell whether `item` waits for an earlier moment than `other`; of equal ones the smaller."""
    if numbers[item, 0] != numbers[other, 0]:
        return numbers[item, 0] < numbers[other, 0]
    if numbers[item, 1] != numbers[other, 1]:
        return numbers[item, 1] < numbers[other, 1]
    if ties[item, 0] != ties[other, 0]:
        return ties[item, 0] < ties[other, 0]
    if numbers[item, 2] != numbers[other, 2]:
        return numbers[item, 2] < numbers[other, 2]
    if ties[item, 1] != ties[other, 1]:
        return ties[item, 1] < ties[other, 1]
    return item < other


@kernel
def put_item(
    item: Any, level: Any, peak: Any, peak_tie: Any, priority: Any, tie: Any, queue: Any
) -> None:
    """Let an item wait for its moment; if it waited for another, no more."""
    numbers, ties, heap, place, size = queue
    numbers[item, 0] = level
    numbers[item, 1] = peak
    numbers[item, 2] = priority
    ties[item, 0] = peak_tie
    ties[item, 1] = tie
    at = np.int64(place[item])
    if at < 0:
        at = size[0]
        size[0] += 1
    heap_settle(item, at, _comes_before, numbers, ties, heap, place, size[0])


@kernel
def remove_item(item: Any, queue: Any) -> None:
    """Let an item wait no more."""
    numbers, ties, heap, place, size = queue
    at = np.int64(place[item])
    if at < 0:
        return
    place[item] = -1
    size[0] -= 1
    if at < size[0]:
        heap_settle(heap[size[0]], at, _comes_before, numbers, ties, heap, place, size[0])
