"""Union-find of kernels, against sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo._numba import kernel
from napari_agglo._numba.union_find import find_root, join_sets


@kernel
def _join_all(pairs, parents, were_two, roots):
    for k in range(pairs.shape[0]):
        were_two[k] = join_sets(pairs[k, 0], pairs[k, 1], parents)
    for item in range(parents.size):
        roots[item] = find_root(item, parents)


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=40))
def test_a_root_is_the_smallest_of_its_set(pairs):
    were_two, roots = np.zeros(len(pairs), bool), np.zeros(20, np.int64)
    _join_all(np.array(pairs, np.int64).reshape(-1, 2), np.arange(20), were_two, roots)
    set_of = {item: {item} for item in range(20)}
    expected = []
    for one, two in pairs:
        expected.append(set_of[one] is not set_of[two])
        both = set_of[one] | set_of[two]
        set_of.update(dict.fromkeys(both, both))
    assert were_two.tolist() == expected
    assert roots.tolist() == [min(set_of[item]) for item in range(20)]
