"""Pairs of regions at the ends of long-range affinities, against a loop over voxels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import napari_agglo as agglo
from napari_agglo.graph import far_pairs


@pytest.mark.filterwarnings("ignore::napari_agglo.errors.DataWarning")  # most may be low
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_pairs_are_those_of_a_loop_over_voxels(seed, ndim):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 6, ndim))
    labels = rng.integers(0, 5, shape)
    labels[(0,) * ndim] = 1
    nearest = (-np.eye(ndim, dtype=int)).tolist()
    longer = [o for o in rng.integers(-3, 4, (3, ndim)).tolist() if np.abs(o).sum() > 1]
    values = rng.integers(0, 256, (ndim + len(longer), *shape)).astype(np.uint8)
    evidence = agglo.affinities(values, nearest + longer, value_range=(0, 255))
    graph = agglo.region_graph(labels, {"affinity": evidence})
    counts, sums = Counter(), Counter()
    for k, offset in enumerate(longer, start=ndim):
        for at in np.ndindex(shape):
            other = tuple(np.add(at, offset))
            if not all(0 <= n < size for n, size in zip(other, shape, strict=True)):
                continue
            pair = tuple(sorted((int(labels[at]), int(labels[other]))))
            if pair[0] > 0 and pair[0] != pair[1]:
                counts[pair] += 1
                sums[pair] += int(values[k][at])
    far = far_pairs(graph)
    pairs = [tuple(pair) for pair in graph.ids[far.pairs].tolist()]
    assert pairs == sorted(counts)
    assert far.counts.tolist() == [counts[pair] for pair in pairs]
    assert far.sums.tolist() == [sums[pair] for pair in pairs]


def test_a_graph_that_did_not_keep_its_cues_has_none():
    evidence = agglo.affinities(np.ones((2, 4)), [[-1], [-2]])
    labels = np.array([1, 1, 2, 2])
    graph = agglo.region_graph(labels, {"affinity": evidence})
    assert len(far_pairs(graph).pairs) == 1, "test invalid"
    graph = agglo.region_graph(labels, {"affinity": evidence}, keep_cues=False)
    assert far_pairs(graph).pairs.shape == (0, 2)
