"""The breakdown by merging that of superpixels, against the one from the images."""

from __future__ import annotations

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.evaluate import (
    best_point,
    breakdown,
    merged_breakdown,
    table_best,
    table_breakdown,
)

NUMBERS = ["voxels", "share", "entropy", "contribution", "pieces"]


@st.composite
def cases(draw):
    shape = draw(st.sampled_from([(7,), (5, 6), (3, 4, 5)]))
    size = int(np.prod(shape))
    given_ids = np.array([0, 3, 8, 2**40, 2**63 + 5], np.uint64)
    pick = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    gold = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
    superpixels = given_ids[pick].reshape(shape)
    lut = draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    return superpixels, np.array(gold).reshape(shape), lut


@given(cases())
def test_equal_to_that_of_the_images(case):
    superpixels, gold, raw = case
    ids = np.unique(np.append(superpixels.reshape(-1), np.uint64(0)))
    n = len(ids) - 1
    lut = np.array(
        [0] + [min(k, r + 1) if n else 0 for k, r in zip(range(1, n + 1), raw, strict=False)]
    )
    labels = ids[lut][np.searchsorted(ids, superpixels)]
    expected = breakdown(labels, gold)
    found = merged_breakdown(breakdown(superpixels, gold), lut, ids)
    for ours, theirs in ((found.gold, expected.gold), (found.segments, expected.segments)):
        assert ours.index.tolist() == theirs.index.tolist()
        places = [c for c in theirs.columns if c.startswith("centroid")]
        assert np.allclose(ours[NUMBERS + places], theirs[NUMBERS + places])
    keys = ["segment", "gold"]
    ours = found.overlaps.sort_values(keys, ignore_index=True)
    theirs = expected.overlaps.sort_values(keys, ignore_index=True)
    assert ours[[*keys, "voxels"]].equals(theirs[[*keys, "voxels"]])
    at = tuple(ours[f"voxel_{axis}"].to_numpy() for axis in range(gold.ndim))
    assert (labels[at] == ours["segment"]).all()
    assert (gold[at] == ours["gold"]).all()


def test_at_a_threshold_of_a_tree(small_sample):
    _, cues, gold = small_sample
    graph = agglo.region_graph(agglo.oversegment(cues["boundary"]), cues)
    tree = agglo.agglomerate(graph)
    base = breakdown(graph.superpixels, gold)
    for at in (0.0, 0.2, 0.5):
        found = merged_breakdown(base, tree.lut(at), graph.ids)
        expected = breakdown(tree.segment(at), gold)
        assert np.allclose(found.segments[NUMBERS], expected.segments[NUMBERS])
        assert found.worst(5)["id"].tolist() == expected.worst(5)["id"].tolist()


def test_refuses_tables_of_another_graph():
    found = breakdown(np.array([1, 2]), np.array([1, 1]))
    with refuses("lut", "take both from the same graph"):
        merged_breakdown(found, np.array([0, 1]), np.array([0, 1, 2]))
    with refuses("superpixels", "pass the breakdown of the superpixels of"):
        merged_breakdown(found, np.array([0, 1, 1]), np.array([0, 1, 7]))


@given(st.integers(0, 10**6))
@examples(40, deadline=None)
def test_a_table_gives_the_contributions_of_the_images(seed):
    """For volumes that stay on disk: numbers as from the images, places at centroids."""
    rng = np.random.default_rng(seed)
    labels, gold = rng.integers(0, 5, (6, 7)), rng.integers(0, 3, (6, 7))
    if not gold.any():
        return
    graph = agglo.region_graph(labels, np.zeros((6, 7)))
    table = agglo.evaluate.contingency(graph.superpixels, gold)
    known, found = breakdown(labels, gold), table_breakdown(graph, table)
    for side in ("gold", "segments"):
        one, other = getattr(known, side), getattr(found, side)
        for column in ("voxels", "share", "entropy", "contribution", "pieces"):
            assert np.allclose(one[column], other[column], atol=1e-12), column
        assert list(one.index) == list(other.index)
        assert list(one.columns) == list(other.columns)
    assert np.array_equal(known.overlaps["voxels"], found.overlaps["voxels"])
    places = found.overlaps[["voxel_0", "voxel_1"]].to_numpy()
    assert (places >= 0).all()
    assert (places < (6, 7)).all()
    best = table_best(table)
    for name, value in best_point(graph, gold).items():
        assert best[name] == pytest.approx(value, abs=1e-12)
