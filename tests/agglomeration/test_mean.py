"""The sort of the mean loop, against numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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
