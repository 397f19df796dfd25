from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Cancelled
from napari_agglo.evaluate import best_agglomeration, best_lut, best_point, metrics, split_vi


def random_case(seed):
    rng = np.random.default_rng(seed)
    ids = np.array([0, 2, 3, 70, 2**40, 2**40 + 1])
    superpixels = ids[rng.integers(0, 6, (9, 10))]
    graph = agglo.region_graph(superpixels, rng.random((9, 10)))
    return superpixels, graph, rng.integers(0, 4, (9, 10))


@given(st.integers(0, 2**32))
def test_each_superpixel_goes_to_the_gold_that_it_overlaps_most(seed):
    superpixels, graph, gold = random_case(seed)
    labels = best_agglomeration(graph, gold)
    assert labels.dtype == superpixels.dtype
    assert ((labels == 0) == (superpixels == 0)).all()
    owner = {}
    for one in np.unique(superpixels[superpixels > 0]):
        inside = gold[(superpixels == one) & (gold > 0)]
        owner[one] = np.bincount(inside).argmax() if inside.size else -one
    for one, u in owner.items():
        expected = min(other for other, v in owner.items() if v == u)
        assert set(labels[superpixels == one].tolist()) == {expected}
    lut = best_lut(graph, gold)
    assert (graph.ids[lut][graph.superpixels.image] == labels).all()


@given(st.integers(0, 2**32), st.booleans())
def test_its_point_is_that_of_its_labels(seed, ignore_labels):
    _, graph, gold = random_case(seed)
    point = best_point(graph, gold, ignore_labels=ignore_labels)
    expected = split_vi(best_agglomeration(graph, gold), gold, ignore_labels=ignore_labels)
    assert (point["false_merge"], point["false_split"]) == pytest.approx(expected, abs=1e-12)
    assert point["vi"] == pytest.approx(sum(expected), abs=1e-12)


def test_superpixels_within_the_gold_reach_it():
    gold = np.array([[1, 1, 2, 2, 3, 3]])
    graph = agglo.region_graph(np.array([[1, 2, 3, 4, 5, 5]]), np.zeros((1, 6)))
    assert best_point(graph, gold) == {"false_merge": 0, "false_split": 0, "vi": 0}
    assert metrics(best_agglomeration(graph, gold), gold)["covering"] == 1


def test_cancel():
    def cancel(progress):
        raise Cancelled

    _, graph, gold = random_case(0)
    with pytest.raises(Cancelled):
        best_point(graph, gold, progress=cancel)


def test_a_gold_without_annotations_is_refused():
    graph = agglo.region_graph(np.array([[1, 2, 3]]), np.zeros((1, 3)))
    for best in (best_agglomeration, best_lut, best_point):
        with refuses("gold"):
            best(graph, np.zeros((1, 3), int))
