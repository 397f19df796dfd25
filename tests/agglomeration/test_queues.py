"""The sort and the heap of the mean loop, against numpy and heapq."""

from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo._numba import kernel
from napari_agglo._numba.heaps import heap_arrays, heap_order, heap_pop, heap_push
from napari_agglo.agglomeration._mean import sort_edges

numbers = st.floats(0, 1e300, allow_subnormal=True) | st.sampled_from([0.0, -0.0, 0.5, np.inf])


@given(st.lists(numbers, max_size=200))
def test_edges_are_sorted_as_by_a_stable_argsort(priorities):
    priority = np.array(priorities, float)
    edges, keys = sort_edges(priority)
    finite = np.flatnonzero(priority < np.inf)
    expected = finite[np.argsort(priority[finite], kind="stable")]
    assert edges.tolist() == expected.tolist()
    assert keys.tolist() == priority[expected].tolist()


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


@given(st.lists(st.integers(0, 20), max_size=30), st.lists(st.integers(-1, 20), max_size=120))
def test_the_heap_pops_what_heapq_pops(first, pushes):
    keys, values = heap_arrays(len(first) + len(pushes) + 1, np.int64)
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
