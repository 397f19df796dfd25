"""Final merges within groups of blocks: the tree is that of the whole graph, bit for bit."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zarr
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks


def tree_of_blocks(where, labels, boundary, block, **options):
    for name, array in (("labels", labels), ("boundary", boundary)):
        zarr.create_array(str(where / f"{name}.zarr"), data=array, chunks=block, overwrite=True)
    blocks.plan(
        where / "result", str(where / "boundary.zarr"), superpixels=str(where / "labels.zarr"),
        ranges=(0, 255), block=block, threshold=0.4, **options,
    )  # fmt: skip
    blocks.run(where / "result")
    return blocks.open(where / "result")


def assert_same(result, tree):
    for name in ("winners", "losers", "priorities"):
        assert np.array_equal(getattr(result.tree, name), getattr(tree, name)), name
    assert np.array_equal(result.labels[0][...], tree.segment(0.4))


def merges_before_the_end(where):
    notes = json.loads((where / "result" / "done" / "graph" / "000000.json").read_text())
    return blocks.open(where / "result").tree.n_superpixels - notes["regions"]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([2, 5, 256]),  # few levels make many ties
    st.booleans(),
    st.sampled_from([(17, 19), (9, 8, 10)]),
)
@examples(30, few=4, deadline=None)
def test_the_tree_is_that_of_the_whole(tmp_path_factory, seed, levels, dams, shape):
    rng = np.random.default_rng(seed)
    small = rng.permutation(np.arange(1, 1 + int(np.prod([-(-n // 2) for n in shape]))))
    labels = small.reshape([-(-n // 2) for n in shape])
    for axis in range(len(shape)):
        labels = labels.repeat(2, axis)
    labels = labels[tuple(slice(n) for n in shape)].astype(np.uint32)
    labels[rng.random(shape) < 0.1] = 0
    boundary = (rng.integers(0, levels, shape) * (255 // (levels - 1))).astype(np.uint8)
    tree = agglo.agglomerate(agglo.region_graph(labels, boundary, ranges=(0, 255), dams=dams))
    where = tmp_path_factory.mktemp("run")
    block = (2, 4) if len(shape) == 2 else (3, 2, 4)
    assert_same(tree_of_blocks(where, labels, boundary, block, dams=dams, hierarchical=True), tree)


def test_most_superpixels_merge_before_the_end(tmp_path):
    sample = agglo.sample("neuropil2d")
    boundary = np.rint(255 * sample.cues["boundary"]).astype(np.uint8)
    labels = agglo.oversegment(boundary, value_range=(0, 255))
    tree = agglo.agglomerate(agglo.region_graph(labels, boundary, ranges=(0, 255)))
    result = tree_of_blocks(tmp_path, labels, boundary, (48, 48), hierarchical=True)
    assert_same(result, tree)
    assert merges_before_the_end(tmp_path) > 0.4 * tree.n_superpixels
    with refuses("folder"):
        result.graph  # noqa: B018


def test_other_policies_are_refused(tmp_path):
    zarr.create_array(str(tmp_path / "b.zarr"), data=np.zeros((8, 8), np.float32), chunks=(8, 8))
    with refuses("hierarchical"):
        blocks.plan(None, str(tmp_path / "b.zarr"), policy="random", hierarchical=True)


@pytest.mark.parametrize("hierarchical", [False, True])
def test_a_graph_over_the_budget_is_refused_with_figures(tmp_path, hierarchical, monkeypatch):
    monkeypatch.setattr("napari_agglo.blocks._make_plan.BASE", 10_000)
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(1, 1601)).reshape(40, 40).repeat(4, 0).repeat(4, 1)
    boundary = rng.integers(0, 256, labels.shape).astype(np.uint8)
    words = {"memory": 400_000, "hierarchical": hierarchical, "workers": 1}
    if hierarchical:
        assert_same(
            tree_of_blocks(tmp_path, labels.astype(np.uint32), boundary, (20, 20), **words),
            agglo.agglomerate(agglo.region_graph(labels, boundary, ranges=(0, 255))),
        )
    else:
        with refuses("folder") as refused:
            tree_of_blocks(tmp_path, labels.astype(np.uint32), boundary, (20, 20), **words)
        assert "GB" in str(refused.value)
