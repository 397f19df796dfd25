from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo.evaluate import breakdown, metrics, split_vi, weighted_vi


@pytest.mark.parametrize(
    ("labels", "gold", "expected"),
    [
        ([3, 3, 9, 9], [1, 1, 1, 1], (0.0, 1.0)),  # one object in two halves
        ([1, 1, 1, 1], [3, 3, 9, 9], (1.0, 0.0)),  # two objects in one segment
        ([1, 1, 2, 2], [8, 8, 5, 5], (0.0, 0.0)),  # only the names differ
        ([1, 2, 3, 4], [1, 1, 1, 1], (0.0, 2.0)),
        ([1, 2, 1, 2], [1, 1, 2, 2], (1.0, 1.0)),  # nothing in common
        ([1, 1, 2, 2], [1, 1, 0, 0], (0.0, 0.0)),  # the second segment is not annotated
    ],
)
def test_computed_by_hand(labels, gold, expected):
    assert split_vi(np.array(labels), np.array(gold)) == expected


def test_label_zero_is_a_segment_unless_ignored():
    labels, gold = np.array([0, 0, 1, 1]), np.array([5, 5, 5, 5])
    assert split_vi(labels, gold) == (0.0, 1.0)
    assert split_vi(labels, gold, ignore_labels=True) == (0.0, 0.0)


@pytest.mark.parametrize("gold", [np.zeros((3, 3), int), np.zeros((0, 3), np.uint64)])
@pytest.mark.parametrize("measure", [split_vi, weighted_vi, metrics, breakdown])
def test_a_gold_without_annotations_is_refused(measure, gold):
    with refuses("gold", "pass a label image whose objects have ids"):
        measure(np.ones(gold.shape, int), gold)


def test_nothing_left_to_compare_is_no_error():
    labels, gold = np.array([0, 5]), np.array([7, 0])
    assert split_vi(labels, gold, ignore_labels=True) == (0.0, 0.0)


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 9))
def test_equals_scikit_image(seed, n_labels, n_gold):
    from skimage.metrics import variation_of_information

    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels + 1, (6, 7))
    gold = rng.integers(1, n_gold + 1, (6, 7))  # no 0: scikit-image ignores another thing
    over, under = variation_of_information(gold, labels)
    assert split_vi(labels, gold) == pytest.approx((under, over), abs=1e-12)


@given(st.integers(0, 2**32))
def test_swapping_the_images_swaps_the_errors_and_names_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(1, 6, 50), rng.integers(1, 6, 50)
    merge, split = split_vi(a, b)
    assert split_vi(b, a) == pytest.approx((split, merge), abs=1e-12)
    names = rng.permutation(np.uint64(2) ** np.arange(1, 7, dtype=np.uint64))
    assert split_vi(names[a], b) == pytest.approx((merge, split), abs=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_vi_is_a_metric(seed, n):
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(1, n + 1, 12) for _ in range(3))
    assert vi(a, b) == pytest.approx(vi(b, a), abs=1e-12)
    assert vi(a, c) <= vi(a, b) + vi(b, c) + 1e-12
    renamed = rng.permutation(n)[a - 1] + 10
    assert vi(a, renamed) == 0
    same = len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))
    assert (vi(a, b) < 1e-12) == same


def vi(one, other):
    return sum(split_vi(one, other))


@given(st.integers(0, 2**32))
def test_merging_two_segments_trades_splits_for_merges(seed):
    rng = np.random.default_rng(seed)
    labels, gold = rng.integers(1, 6, 40), rng.integers(0, 4, 40)
    merge, split = split_vi(labels, gold)
    joined_merge, joined_split = split_vi(np.where(labels == 2, 1, labels), gold)
    assert joined_split <= split + 1e-12
    assert joined_merge >= merge - 1e-12


def test_shapes_must_match():
    with refuses("labels", "use the same crop of both"):
        split_vi(np.ones(4, int), np.ones((2, 2), int))
