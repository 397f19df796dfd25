"""One slider for several trees, in four ways."""

from __future__ import annotations

import numpy as np
import pytest

import napari_agglo as agglo
from napari_agglo.widgets.compare._choices import Cut, Mode, thresholds


@pytest.fixture(scope="module")
def cuts():
    rng = np.random.default_rng(0)
    superpixels = np.arange(1, 65).reshape(8, 8)
    gold = np.repeat([[1, 1, 1, 1, 2, 2, 2, 2]], 8, axis=0)
    made = []
    for power in (1, 3):
        graph = agglo.region_graph(superpixels, rng.random((8, 8)) ** power)
        tree = agglo.agglomerate(graph)
        made.append(Cut(tree, agglo.vi_curve(tree, gold)))
    return made


@pytest.mark.parametrize("position", [0.0, 0.2, 0.5, 0.99])
def test_the_same_number_of_segments(cuts, position):
    where = thresholds(cuts, Mode.SEGMENTS, position)
    assert where[0] == position
    counts = [cut.tree.n_segments(t) for cut, t in zip(cuts, where, strict=True)]
    # Where several merges have one priority the number asked for may not exist.
    plateau = np.bincount(np.searchsorted(cuts[1].tree.heights, cuts[1].tree.heights)).max()
    assert abs(counts[0] - counts[1]) < plateau + 1


def test_the_same_threshold_and_one_half(cuts):
    assert thresholds(cuts, Mode.THRESHOLD, 0.3) == [0.3, 0.3]
    assert thresholds(cuts, Mode.HALF, 0.3) == [0.5, 0.5]


def test_each_at_its_least_error(cuts):
    for cut, t in zip(cuts, thresholds(cuts, Mode.BEST, 0.3), strict=True):
        at = cut.curve[cut.curve["threshold"] <= t].iloc[-1]
        assert at["vi"] == pytest.approx(cut.curve["vi"].min())


def test_without_gold_the_best_is_one_half(cuts):
    assert thresholds([Cut(cuts[0].tree)], Mode.BEST, 0.2) == [0.5]


def test_all_superpixels_apart(cuts):
    n = cuts[0].tree.n_superpixels
    assert cuts[0].tree.n_segments(cuts[0].at_segments(n)) == n
    assert thresholds([], Mode.SEGMENTS, 0.5) == []
