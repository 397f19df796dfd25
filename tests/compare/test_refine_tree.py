"""A tree on finer superpixels has the partitions that it had."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.compare import refined
from napari_agglo.volumes import dense_labels


@given(st.integers(0, 10_000))
def test_the_same_partitions(seed):
    rng = np.random.default_rng(seed)
    coarse = rng.integers(1, 6, (4, 5))
    numbers = rng.permutation(1000)[: coarse.size]
    finer = np.where(rng.random(coarse.shape) < 0.3, numbers.reshape(coarse.shape) + 10, coarse)
    tree = agglo.agglomerate(agglo.region_graph(coarse, rng.random(coarse.shape)))
    made = refined(tree, dense_labels(finer, "superpixels"))
    assert made.n_superpixels == len(np.unique(finer))
    for t in [0.0, *tree.heights.tolist()]:
        pairs = np.unique(np.stack([tree.segment(t).ravel(), made.segment(t).ravel()]), axis=1)
        assert pairs.shape[1] == tree.n_segments(t) == made.n_segments(t)


def test_undivided_it_is_the_same_tree_and_others_are_refused():
    tree = agglo.agglomerate(agglo.region_graph(np.array([[1, 1, 2, 2]]), np.zeros((1, 4))))
    assert refined(tree, tree.superpixels) is tree
    with refuses("superpixels", "agglomerate a graph of these superpixels"):
        refined(tree, dense_labels(np.array([[1, 3, 3, 2]]), "superpixels"))
    with refuses("superpixels", "use the same crop of both"):
        refined(tree, dense_labels(np.array([[1, 3, 3]]), "superpixels"))
