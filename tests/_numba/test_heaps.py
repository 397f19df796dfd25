"""Heaps of kernels, against heapq and a sorted list."""

from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.heaps import (
    heap_arrays,
    heap_order,
    heap_pop,
    heap_push,
    heap_settle,
)


@kernel
def _replay(keys, values, start, pushes, out):
    """Order the first `start` entries, then push (a key) or pop (-1); return how many popped."""
    size = start
    heap_order(keys, values, size)
    popped = 0
    for k in range(pushes.size):
        if pushes[k] >= 0:
            size = heap_push(keys, values, size, pushes[k], k)
        elif size > 0:
            out[popped] = keys[0]
            popped += 1
            size = heap_pop(keys, values, size)
    return popped


@kernel
def _replay_keys(keys, start, pushes, out):
    """Do the same with a heap of keys alone, of which the first `start` are sorted."""
    size = start
    popped = 0
    for k in range(pushes.size):
        if pushes[k] >= 0:
            size = heap_push(keys, None, size, pushes[k], None)
        elif size > 0:
            out[popped] = keys[0]
            popped += 1
            size = heap_pop(keys, None, size)
    return popped


@given(st.lists(st.integers(0, 20), max_size=30), st.lists(st.integers(-1, 20), max_size=120))
def test_the_heap_pops_what_heapq_pops(first, pushes):
    room = len(first) + len(pushes) + 1
    keys, values = heap_arrays(room, np.int64)
    keys[: len(first)] = first
    values[: len(first)] = 0
    out = np.zeros(len(pushes) + 1, np.int64)
    n = _replay(keys, values, len(first), np.array(pushes, np.int64), out)
    heap = list(first)
    heapq.heapify(heap)
    expected = []
    for key in pushes:
        if key >= 0:
            heapq.heappush(heap, key)
        elif heap:
            expected.append(heapq.heappop(heap))
    assert out[:n].tolist() == expected
    alone = np.zeros(room, np.int64)
    alone[: len(first)] = sorted(first)
    n = _replay_keys(alone, len(first), np.array(pushes, np.int64), out)
    assert out[:n].tolist() == expected


@inlined
def _comes_before(item, other, keys, _):
    if keys[item] != keys[other]:
        return keys[item] < keys[other]
    return item < other


@kernel
def _replay_indexed(steps, keys, heap, place, size, tops):
    """Enter an item under a key, or remove it (key -1), and write the top after each step."""
    for k in range(steps.shape[0]):
        item = steps[k, 0]
        at = np.int64(place[item])
        if steps[k, 1] >= 0:
            keys[item] = steps[k, 1]
            if at < 0:
                at = size[0]
                size[0] += 1
            heap_settle(item, at, _comes_before, keys, keys, heap, place, size[0])
        elif at >= 0:
            place[item] = -1
            size[0] -= 1
            if at < size[0]:
                last = np.int64(heap[size[0]])
                heap_settle(last, at, _comes_before, keys, keys, heap, place, size[0])
        tops[k] = heap[0] if size[0] > 0 else -1


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(-1, 6)), max_size=100))
def test_the_indexed_heap_has_the_first_item_on_top_and_knows_all_places(steps):
    keys = np.zeros(12, np.int64)
    heap, place = np.zeros(12, np.int32), np.full(12, -1, np.int32)
    size, tops = np.zeros(1, np.int64), np.zeros(len(steps), np.int64)
    _replay_indexed(np.array(steps, np.int64).reshape(-1, 2), keys, heap, place, size, tops)
    waiting = {}
    expected = []
    for item, key in steps:
        if key < 0:
            waiting.pop(item, None)
        else:
            waiting[item] = key
        expected.append(min(((key, item) for item, key in waiting.items()), default=(0, -1))[1])
    assert tops.tolist() == expected
    assert sorted(heap[: size[0]].tolist()) == sorted(waiting)
    assert {item: at for item, at in enumerate(place.tolist()) if at >= 0} == {
        item: at for at, item in enumerate(heap[: size[0]].tolist())
    }
