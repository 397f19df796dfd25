"""Final merges within groups of blocks: the tree is that of the whole graph, bit for bit."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import zarr
from block_runs import check_exact, volumes
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.blocks import _budget
from napari_agglo.blocks._final_merges import FinalMerges, in_order_of_heights, merge_final
from napari_agglo.errors import DataWarning, SetOption
from napari_agglo.policy import policies


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


@given(volumes(), st.booleans(), st.sampled_from(["all", "mean"]), st.integers(1, 3))
@examples(60, few=5, deadline=None)
def test_the_tree_is_that_of_the_whole_in_blocks_of_any_side(volume, dams, statistics, workers):
    """Of two to four axes, uneven and one voxel thick; the graph that a session needs, too."""
    check_exact(volume, dams, statistics, hierarchical=True, workers=workers)


def test_most_superpixels_merge_before_the_end(tmp_path):
    sample = agglo.sample("neuropil2d")
    boundary = np.rint(255 * sample.cues["boundary"]).astype(np.uint8)
    labels = agglo.oversegment(boundary, value_range=(0, 255))
    tree = agglo.agglomerate(agglo.region_graph(labels, boundary, ranges=(0, 255)))
    result = tree_of_blocks(tmp_path, labels, boundary, (48, 48), hierarchical=True)
    assert_same(result, tree)
    assert merges_before_the_end(tmp_path) > 0.5 * tree.n_superpixels


def merges_in_a_group(boundary, last):
    """Return the merges, by ids, of a row of superpixels whose faces have given values.

    Up to the superpixel `last` they are wholly inside.
    """
    n = len(boundary) + 1
    labels = np.arange(1, n + 1, dtype=np.uint32).repeat(2)
    values = np.zeros(2 * n, np.uint8)
    values[1:-1] = np.repeat(boundary, 2)
    graph = agglo.region_graph(labels, values, ranges=(0, 255), statistics="mean")
    low, high = graph.boxes[1:].transpose(1, 0, 2).astype(np.int32)
    table = {"ids": graph.ids[1:], "edges": graph.edges - 1, "regions": graph.regions[1:],
             "boundaries": graph.boundaries, "low": low, "high": high}  # fmt: skip
    rest, made = merge_final(table, graph.ids[1:] <= last, graph.layout, 0)
    tree = agglo.agglomerate(graph)
    pairs = list(zip(made.winners.tolist(), made.losers.tolist(), strict=True))
    whole = list(
        zip(graph.ids[tree.winners].tolist(), graph.ids[tree.losers].tolist(), strict=True)
    )
    return pairs, whole, rest["ids"].tolist()


def test_equal_boundaries_of_regions_that_lie_inside_are_decided_in_the_group():
    pairs, whole, rest = merges_in_a_group([5, 5, 9, 5, 5, 7], last=7)
    assert whole == [(1, 2), (1, 3), (4, 5), (4, 6), (4, 7), (1, 4)]
    assert (pairs, rest) == (whole, [1])
    # The second tie has a region that does not lie inside: it waits, and all that is above it.
    pairs, _, rest = merges_in_a_group([5, 5, 9, 5, 5, 7], last=5)
    assert (pairs, rest) == ([(1, 2), (1, 3)], [1, 4, 5, 6, 7])
    # One boundary is lower than the tie, and leads to such a region.
    pairs, _, rest = merges_in_a_group([5, 5, 4], last=3)
    assert (pairs, rest) == ([], [1, 2, 3, 4])


def test_a_session_of_a_hierarchical_run_is_that_of_the_whole(tmp_path, monkeypatch):
    sample = agglo.sample("neuropil2d")
    boundary = np.rint(255 * sample.cues["boundary"][:120, :150]).astype(np.uint8)
    labels = agglo.oversegment(boundary, value_range=(0, 255))
    graph = agglo.region_graph(labels, boundary, ranges=(0, 255), statistics="mean")
    options = {"block": (48, 48), "hierarchical": True, "memory": "2GB"}
    result = tree_of_blocks(tmp_path, labels, boundary, **options)
    with monkeypatch.context() as patched, refuses("memory", SetOption):
        patched.setattr(_budget, "BASE", 2 * 10**9)
        result.graph  # noqa: B018
    for name in ("edges", "regions", "boundaries", "boxes"):
        assert np.array_equal(getattr(result.graph, name), getattr(graph, name)), name
    with result.create_session(tmp_path / "a.agglo") as session:
        segment = session.segments.at((40, 50))
        session.merge(segment, int(session.segments.neighbours(segment)[0]))
        merged = session.labels()
    with agglo.Session.create(tmp_path / "b.agglo", graph) as session:
        session.threshold = 0.4
        segment = session.segments.at((40, 50))
        session.merge(segment, int(session.segments.neighbours(segment)[0]))
        assert np.array_equal(merged, session.labels())
    # It is made once, and again where the tables have changed.
    files = [tmp_path / "result" / "graph" / f"{name}.npy" for name in ("edges", "boundaries")]
    made = [path.stat().st_mtime_ns for path in files]
    assert blocks.open(tmp_path / "result").graph.n_boundaries == graph.n_boundaries
    assert made == [path.stat().st_mtime_ns for path in files]
    with pytest.warns(DataWarning, match="lower where regions touch"):
        result = tree_of_blocks(tmp_path, labels, 255 - boundary, **options)
    assert not np.array_equal(result.graph.boundaries, graph.boundaries)
    shutil.rmtree(tmp_path / "result" / "tables")
    (tmp_path / "result" / "done" / "whole" / "000000.json").unlink()
    with refuses("folder"):
        blocks.open(tmp_path / "result").graph  # noqa: B018


def test_other_policies_are_refused(tmp_path, monkeypatch):
    zarr.create_array(str(tmp_path / "b.zarr"), data=np.zeros((8, 8), np.float32), chunks=(8, 8))
    with refuses("hierarchical"):
        blocks.plan(None, str(tmp_path / "b.zarr"), policy="random", hierarchical=True)
    monkeypatch.setitem(policies._values, "outer", object)
    with refuses("policy", SetOption("policy", "mean")) as refused:
        blocks.plan(None, str(tmp_path / "b.zarr"), policy="outer")
    assert "of another package" in str(refused.value)


def test_a_learned_policy_in_groups_is_near_that_of_the_whole(tmp_path):
    sample = agglo.sample("neuropil2d")
    boundary = np.rint(255 * sample.cues["boundary"]).astype(np.uint8)
    labels = agglo.oversegment(boundary, value_range=(0, 255))
    half = np.s_[:, : boundary.shape[1] // 2]
    graph = agglo.region_graph(labels[half], boundary[half], ranges=(0, 255))
    policy = agglo.train(graph, sample.gold[half], epochs=1)
    policy.save(tmp_path / "policy.npz")
    words = {"policy": str(tmp_path / "policy.npz"), "hierarchical": True}
    graph = agglo.region_graph(labels, boundary, ranges=(0, 255), bins=policy.features.bins)
    exact = agglo.agglomerate(graph, policy)
    with refuses("hierarchical", SetOption):
        tree_of_blocks(tmp_path, labels, boundary, (48, 48), **words)
    with refuses("approximate", SetOption):
        tree_of_blocks(tmp_path, labels, boundary, (48, 48), approximate=2, **words)
    result = tree_of_blocks(tmp_path, labels, boundary, (48, 48), approximate=0.2, **words)
    assert merges_before_the_end(tmp_path) > 0.2 * exact.n_superpixels
    tree = result.tree
    assert len(tree.winners) == len(exact.winners)
    gone = set()
    for winner, loser in zip(tree.winners.tolist(), tree.losers.tolist(), strict=True):
        assert winner < loser
        assert not gone & {winner, loser}, "a merge comes before all that follow from it"
        gone.add(loser)
    assert np.array_equal(result.labels[0][...], tree.segment(0.4))
    assert sum(agglo.split_vi(tree.segment(0.5), exact.segment(0.5))) < 0.1
    with refuses("folder"):  # a session would go on with other merges
        result.graph  # noqa: B018


def test_without_likely_merges_the_order_is_that_of_the_rest():
    ids = np.arange(6, dtype=np.uint64)
    rest = FinalMerges(
        np.array([1, 3, 1], np.uint64), np.array([2, 4, 3], np.uint64), np.array([0.5, 0.1, 0.3])
    )
    none = FinalMerges(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0))
    winners, losers, priorities = in_order_of_heights(ids, [none], rest)
    assert (winners.tolist(), losers.tolist()) == ([1, 3, 1], [2, 4, 3])
    assert priorities.tolist() == [0.5, 0.1, 0.3]
    # A group made 1 and 2 one at 0.2: the merge of both with 3, at 0.1, depends on it.
    group = FinalMerges(np.array([1], np.uint64), np.array([2], np.uint64), np.array([0.2]))
    rest = FinalMerges(
        np.array([4, 1], np.uint64), np.array([5, 3], np.uint64), np.array([0.05, 0.1])
    )
    winners, losers, priorities = in_order_of_heights(ids, [group], rest)
    assert (winners.tolist(), losers.tolist()) == ([4, 1, 1], [5, 2, 3])
    assert priorities.tolist() == [0.05, 0.2, 0.1]


@pytest.mark.parametrize("hierarchical", [False, True])
def test_a_graph_over_the_budget_is_refused_with_figures(tmp_path, hierarchical, monkeypatch):
    monkeypatch.setattr("napari_agglo.blocks._budget.BASE", 10_000)
    monkeypatch.setattr("napari_agglo.blocks._budget.TASK", 0)
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(1, 1601)).reshape(40, 40).repeat(4, 0).repeat(4, 1)
    boundary = rng.integers(0, 256, labels.shape).astype(np.uint8)
    words = {"memory": 600_000, "hierarchical": hierarchical, "workers": 1}
    if hierarchical:
        assert_same(
            tree_of_blocks(tmp_path, labels.astype(np.uint32), boundary, (20, 20), **words),
            agglo.agglomerate(agglo.region_graph(labels, boundary, ranges=(0, 255))),
        )
    else:
        with refuses("memory", SetOption("hierarchical", True)):
            tree_of_blocks(tmp_path, labels.astype(np.uint32), boundary, (20, 20), **words)
        with refuses("folder") as refused:
            tree_of_blocks(
                tmp_path, labels.astype(np.uint32), boundary, (20, 20), force=True, **words
            )
        assert "GB" in str(refused.value)
