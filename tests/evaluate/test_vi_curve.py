from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.evaluate import (
    best_covering,
    best_together,
    merge_curve,
    metrics,
    shortest_threshold,
    state_at,
    vi_curve,
)

COLUMNS = ["threshold", "segments", "false_merge", "false_split", "vi", "rand", "covering"]
MEASURES = COLUMNS[2:]


def random_tree(rng, ids):
    superpixels = ids[rng.integers(0, len(ids), (9, 10))]
    boundary = np.round(rng.random(superpixels.shape), 1)  # coarse, so that there are plateaus
    return agglo.agglomerate(agglo.region_graph(superpixels, boundary), "mean")


def line_tree():
    """Three superpixels in a row; 1 and 2 have a weak boundary, 2 and 3 a strong one."""
    superpixels = np.array([[1, 1, 2, 2, 3, 3]])
    boundary = np.array([[0, 0, 0, 0, 1, 1]], float)
    return agglo.agglomerate(agglo.region_graph(superpixels, boundary), "mean")


def test_by_hand():
    curve = vi_curve(line_tree(), np.array([[4, 4, 4, 4, 5, 5]]))
    assert list(curve.columns) == COLUMNS
    assert curve["threshold"].iloc[0] == -math.inf
    assert curve["segments"].tolist() == [3, 2, 1]
    assert curve["false_split"].tolist() == pytest.approx([2 / 3, 0, 0])
    third = math.log2(3) - 2 / 3  # entropy of (2/3, 1/3)
    assert curve["false_merge"].tolist() == pytest.approx([0, 0, third])


@given(st.integers(0, 2**32), st.booleans())
def test_equals_cutting_at_every_threshold(seed, ignore_labels):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, np.array([0, 2, 3, 70, 2**40, 2**40 + 1]))
    gold = rng.integers(0, 5, (9, 10))
    curve = vi_curve(tree, gold, ignore_labels=ignore_labels)
    assert (np.diff(curve["threshold"].iloc[1:]) > 0).all()
    for t, segments, *found in curve.itertuples(index=False):
        labels = tree.segment(t)
        expected = metrics(labels, gold, ignore_labels=ignore_labels)
        assert found == pytest.approx(expected[MEASURES].tolist(), abs=1e-9)
        assert segments == tree.n_segments(t) == np.unique(labels[labels > 0]).size


@given(st.integers(0, 2**32))
def test_merge_curve_equals_doing_so_many_merges(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, np.array([0, 2, 3, 70, 80, 81]))
    gold = rng.integers(0, 5, (9, 10))
    curve = merge_curve(tree, gold)
    assert list(curve.columns) == ["merges", *COLUMNS]
    assert curve["merges"].tolist() == list(range(tree.n_merges + 1))
    for row in curve.itertuples(index=False):
        labels = tree.segment(merges=row.merges)
        expected = metrics(labels, gold)
        assert [getattr(row, name) for name in MEASURES] == pytest.approx(
            expected[MEASURES].tolist(), abs=1e-9
        )
    at_thresholds = vi_curve(tree, gold)
    last = curve.groupby("threshold").tail(1).drop(columns="merges").reset_index(drop=True)
    pd.testing.assert_frame_equal(last, at_thresholds)


def test_several_golds_give_the_mean():
    rng = np.random.default_rng(0)
    tree = random_tree(rng, np.array([1, 2, 3, 4]))
    golds = [rng.integers(0, 4, (9, 10)) for _ in range(3)]
    mean = sum(vi_curve(tree, gold) for gold in golds) / 3
    pd.testing.assert_frame_equal(vi_curve(tree, golds), mean, check_dtype=False)
    best = [best_covering(tree, gold) for gold in golds]
    assert best_covering(tree, golds) == pytest.approx(np.mean(best))
    with refuses("gold[1]", "use the same crop of both"):
        vi_curve(tree, [golds[0], golds[1][:5]])
    with refuses("gold", "pass one label image or more"):
        vi_curve(tree, [])


def test_state_at_takes_the_last_row_not_above():
    curve = vi_curve(line_tree(), np.array([[4, 4, 4, 4, 5, 5]]))
    first, second = curve["threshold"].iloc[1:]
    assert state_at(curve, first - 1e-9)["segments"] == 3
    assert state_at(curve, first)["segments"] == 2
    assert state_at(curve, (first + second) / 2)["segments"] == 2
    assert state_at(curve, math.inf)["segments"] == 1


@pytest.mark.parametrize("measure", [vi_curve, merge_curve, best_covering])
def test_a_gold_without_annotations_is_refused(measure):
    empty, gold = np.zeros((1, 6), int), np.ones((1, 6), int)
    for one, name in ((empty, "gold"), ([gold, empty], "gold[1]")):
        with refuses(name, "pass a label image whose objects have ids above 0"):
            measure(line_tree(), one)


@pytest.mark.parametrize("measure", [vi_curve, merge_curve, best_covering])
def test_a_label_image_is_no_tree(measure):
    labels = np.ones((1, 6), int)
    with refuses("tree", "metrics"):
        measure(labels, labels)


@given(st.integers(0, 2**32))
def test_the_best_threshold_of_several_curves_is_that_of_their_sum(seed):
    rng = np.random.default_rng(seed)
    curves = {
        k: vi_curve(random_tree(rng, np.array([1, 2, 3, 4])), rng.integers(1, 4, (9, 10)))
        for k in range(3)
    }
    best = best_together(curves)

    def mean(threshold):
        return np.mean([state_at(curve, threshold)["vi"] for curve in curves.values()])

    everywhere = np.unique(np.concatenate([one["threshold"] for one in curves.values()]))
    assert best.mean == pytest.approx(min(map(mean, everywhere)))
    assert mean(best.threshold) == best.mean
    assert best.following == min(everywhere[everywhere > best.threshold], default=math.inf)


def test_another_shape_is_refused():
    with refuses("gold", "use the same crop of both"):
        vi_curve(line_tree(), np.ones((1, 5), int))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2, unique=True))
def test_the_shortest_threshold_lies_in_its_state(pair):
    low, high = sorted(pair)
    assert low <= shortest_threshold(low, high) < high
    assert low <= shortest_threshold(low, math.inf) <= 1
