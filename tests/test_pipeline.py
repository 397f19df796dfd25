"""Properties of the whole pipeline: what must not depend on how the image lies in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles.agglomerate import merge_naively

from napari_agglo import agglomerate, region_graph


@st.composite
def labelled(draw):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    labels = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 7)))
    assume(np.unique(labels[labels > 0]).size > 1)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return labels, rng.random(shape)


def partitions(tree):
    """Yield each state as the set of its segments, each a set of pixels."""
    flat = np.arange(tree.superpixels.image.size)
    for merges in range(tree.n_merges + 1):
        labels = tree.segment(merges=merges).reshape(-1)
        yield frozenset(
            frozenset(flat[labels == k].tolist()) for k in np.unique(labels[labels > 0])
        )


@given(labelled(), st.data())
def test_flips_and_transposes_give_the_same_tree(volume, data):
    labels, cue = volume
    axes = data.draw(st.permutations(range(labels.ndim)))
    flips = data.draw(st.lists(st.booleans(), min_size=labels.ndim, max_size=labels.ndim))
    turn = tuple(slice(None, None, -1 if flip else 1) for flip in flips)
    plain = agglomerate(region_graph(labels, cue))
    turned = agglomerate(region_graph(labels[turn].transpose(axes), cue[turn].transpose(axes)))
    assert np.array_equal(plain.winners, turned.winners)
    assert np.array_equal(plain.losers, turned.losers)
    assert np.array_equal(plain.priorities, turned.priorities)


@given(labelled(), st.integers(0, 2**62))
def test_an_offset_of_all_ids_changes_only_the_ids(volume, offset):
    labels, cue = volume
    moved = np.where(labels > 0, labels + offset, 0).astype(np.uint64)
    plain = agglomerate(region_graph(labels, cue))
    other = agglomerate(region_graph(moved, cue))
    assert np.array_equal(plain.winners, other.winners)
    assert np.array_equal(plain.priorities, other.priorities)
    assert np.array_equal(plain.segment(0.4) > 0, other.segment(0.4) > 0)
    shifted = other.segment(0.4)[labels > 0] - np.uint64(offset)
    assert np.array_equal(plain.segment(0.4)[labels > 0], shifted)


@given(labelled(), st.randoms(use_true_random=False))
def test_permuted_ids_give_the_same_partitions_where_no_tie_is_broken(volume, random):
    labels, cue = volume
    graph = region_graph(labels, cue)
    assume(not merge_naively(graph)[1])
    new = np.array([0, *random.sample(range(1, 1000), 7)])
    plain = agglomerate(graph)
    other = agglomerate(region_graph(new[labels], cue))
    assert np.array_equal(plain.priorities, other.priorities)
    assert list(partitions(plain)) == list(partitions(other))


@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_from_a_boundary_map_to_labels_in_any_dimension(ndim):
    from napari_agglo import oversegment

    rng = np.random.default_rng(ndim)
    boundary = rng.random((9, 8, 7, 6)[:ndim])
    superpixels = oversegment(boundary, sigma=0, min_size=1)
    tree = agglomerate(region_graph(superpixels, boundary))
    assert tree.n_superpixels == superpixels.max() > 1
    assert tree.n_segments(1.0) == 1
    assert tree.segment(0.4).shape == boundary.shape
