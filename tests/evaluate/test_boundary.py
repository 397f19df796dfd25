from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.errors import Cancelled, SetOption
from napari_agglo.evaluate import average_precision, boundary_curve, boundary_scores

seeds = st.integers(0, 2**32)


def bars(*borders, width=12, height=4):
    """Vertical bars that end after the given columns."""
    row = np.ones(width, int)
    for border in borders:
        row[border:] += 1
    return np.repeat(row[None], height, axis=0)


def drawn_pixels(labels, gold):
    """Pixels with another label next to them on the far side; both must be annotated."""
    found = set()
    for index in np.ndindex(labels.shape):
        for axis in range(labels.ndim):
            after = tuple(i + (a == axis) for a, i in enumerate(index))
            if after[axis] == labels.shape[axis] or not (gold[index] and gold[after]):
                continue
            if labels[index] != labels[after]:
                found.add(index)
    return sorted(found)


def matched(drawn, true, tolerance, spacing):
    graph = nx.Graph()
    for p in drawn:
        for q in true:
            if np.linalg.norm((np.array(p) - q) * spacing) <= tolerance + 1e-9:
                graph.add_edge(("drawn", p), ("true", q))
    top = {node for node in graph if node[0] == "drawn"}
    return len(nx.bipartite.maximum_matching(graph, top_nodes=top)) // 2


def test_by_hand():
    found = boundary_scores(bars(3, 6), bars(3), tolerance=0)
    assert found == {
        "precision": 0.5, "recall": 1.0, "f": 2 / 3, "drawn": 8, "right": 4, "true": 4,
        "recalled": 4,
    }  # fmt: skip
    assert boundary_scores(bars(3), bars(3, 6), tolerance=0)["recall"] == 0.5
    assert boundary_scores(bars(5), bars(3), tolerance=1.9)["f"] == 0
    assert boundary_scores(bars(5), bars(3), tolerance=2)["f"] == 1


def test_two_lines_cannot_share_a_partner():
    """Without one-to-one matching both lines would be right."""
    found = boundary_scores(bars(3, 5), bars(4), tolerance=1)
    assert found["precision"] == 0.5
    assert found["recall"] == 1


@given(seeds, st.integers(1, 3), st.sampled_from([0, 1, 1.5, 3]), st.booleans())
def test_as_many_partners_as_there_can_be(seed, ndim, tolerance, anisotropic):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 6, ndim))
    labels, gold = rng.integers(0, 3, shape), rng.integers(0, 3, shape)
    spacing = rng.integers(1, 4, ndim).astype(float) if anisotropic else np.ones(ndim)
    found = boundary_scores(
        labels, gold, tolerance=tolerance, fill=0, spacing=spacing if anisotropic else None
    )
    drawn, true = drawn_pixels(labels, gold), drawn_pixels(gold, gold)
    assert (found["drawn"], found["true"]) == (len(drawn), len(true))
    assert found["right"] == found["recalled"] == matched(drawn, true, tolerance, spacing)


def test_several_golds():
    """Each line is in one gold: all that is drawn is right; each gold's lines are to be found."""
    found = boundary_scores(bars(3, 9), [bars(3), bars(9), bars(6)], tolerance=0)
    assert found["precision"] == 1
    assert found["recall"] == pytest.approx(2 / 3)
    assert boundary_scores(bars(3), [bars(3), bars(3)]) == boundary_scores(bars(3), bars(3)) | {
        "true": 8,
        "recalled": 8,
    }


def test_no_boundary_where_nothing_is_annotated():
    gold = bars(3)
    gold[:, 6:] = 0
    found = boundary_scores(bars(3, 6, 9), gold, tolerance=0, fill=0)
    assert found["drawn"] == found["right"] == found["true"] == 4


def test_a_membrane_left_at_0_is_a_boundary_along_its_middle():
    gold = bars(6)
    gold[:, 4:8] = 0
    found = boundary_scores(bars(6), gold, tolerance=0, fill=2)
    assert found["drawn"] == found["right"] == found["true"] == 4
    assert boundary_scores(bars(6), gold, tolerance=0, fill=1)["true"] == 0


@pytest.mark.parametrize(
    ("labels", "gold", "expected"),
    [
        (bars(), bars(), (1, 1, 1)),
        (bars(), bars(3), (1, 0, 0)),
        (bars(3), bars(), (0, 1, 0)),
    ],
)
def test_without_boundaries(labels, gold, expected):
    found = boundary_scores(labels, gold)
    assert (found["precision"], found["recall"], found["f"]) == expected


def test_a_gold_without_annotations_is_refused():
    with refuses("gold", "pass a label image whose objects have ids"):
        boundary_scores(bars(3), 0 * bars())


def random_tree(seed):
    rng = np.random.default_rng(seed)
    superpixels = rng.integers(0, 12, (8, 9))
    tree = agglo.agglomerate(agglo.region_graph(superpixels, rng.random((8, 9))))
    return tree, [rng.integers(0, 3, (8, 9)) for _ in range(2)]


@given(seeds)
def test_a_curve_is_the_scores_at_each_threshold(seed):
    tree, golds = random_tree(seed)
    curve = boundary_curve(tree, golds, tolerance=1)
    assert curve["threshold"].iloc[0] == -math.inf
    assert curve["threshold"].iloc[-1] == tree.heights[-1]
    assert curve["threshold"].is_monotonic_increasing
    images = {}
    for row in curve.to_dict("records"):
        threshold = row.pop("threshold")
        images[threshold] = tree.segment(threshold)
        assert row == boundary_scores(images[threshold], golds, tolerance=1)
    pd.testing.assert_frame_equal(boundary_curve(images, golds, tolerance=1), curve)


def test_thresholds_may_be_chosen():
    tree, golds = random_tree(0)
    assert boundary_curve(tree, golds[0], thresholds=[0.7, 0.2, 0.7])["threshold"].tolist() == [
        0.2,
        0.7,
    ]
    for wrong in ([], [math.nan]):
        with refuses("thresholds", SetOption("thresholds", [0.5])):
            boundary_curve(tree, golds[0], thresholds=wrong)
    with refuses("tree", "for one label image, call"):
        boundary_curve([golds[0]], golds[0])
    alone = agglo.agglomerate(agglo.region_graph(np.ones((3, 3), int), np.zeros((3, 3))))
    assert boundary_curve(alone, np.ones((3, 3), int))["f"].tolist() == [1]


def test_average_precision():
    curve = pd.DataFrame({"precision": [0.4, 0.8, 0.9, 1.0], "recall": [1.0, 0.5, 0.5, 0.0]})
    assert average_precision(curve) == pytest.approx(0.5 * (0.4 + 0.9) / 2 + 0.5 * (0.9 + 1) / 2)
    assert average_precision(curve.iloc[:1]) == 0  # a point has no area


def test_refusals_and_cancel():
    for wrong in (-1, math.inf, math.nan, "2"):
        with refuses("tolerance", "pass a distance in pixels, or in the unit"):
            boundary_scores(bars(3), bars(3), tolerance=wrong)
        with refuses("fill", "pass 0 to leave the gold standard as it is"):
            boundary_scores(bars(3), bars(3), fill=wrong)
    with refuses("gold", "use the same crop of both"):
        boundary_scores(bars(3), bars(3, height=5))

    def cancel(progress):
        if progress.done == 2:
            raise Cancelled

    tree, golds = random_tree(0)
    with pytest.raises(Cancelled):
        boundary_curve(tree, golds, progress=cancel)


@pytest.mark.parametrize("stage", ["pairing", "matching"])
def test_a_large_image_can_be_cancelled(stage):
    def cancel(progress):
        assert 0 <= progress.fraction <= 1
        if progress.stage == stage:
            raise Cancelled

    with pytest.raises(Cancelled):
        boundary_scores(bars(3), bars(4), progress=cancel)
    seen = []
    boundary_curve({0.5: bars(3)}, bars(4), progress=seen.append)
    assert {one.stage for one in seen} == {"boundaries"}
