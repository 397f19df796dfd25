"""Convex hulls against scipy's, and merged hulls against those of the merged pixels."""

import dataclasses
import io
import json
import zipfile

import numba
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from oracles.edits import policy_score
from oracles.repairs import random_forest
from refusals import refuses
from scipy.spatial import ConvexHull

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.agglomeration import merge_greedily
from napari_agglo.features import FeatureMap, feature_map, feature_matrix, feature_table
from napari_agglo.graph import contracted, divide, graph_of_pairs, pair_width, with_hulls
from napari_agglo.graph._hulls import hulls_of
from napari_agglo.policy import LearnedPolicy
from napari_agglo.session._boundary_scores import BoundaryScores
from napari_agglo.session._pair_features import pair_row

_HULLS = [
    "shape/union/hull_share",
    "shape/node_min/hull_share",
    "shape/node_max/hull_share",
    "shape/difference/hull_share",
    "shape/node_min/above_union_hull",
    "shape/node_max/above_union_hull",
]


def corners(mask):
    """Return all corners of the pixels of a mask."""
    steps = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    return np.unique((np.argwhere(mask)[:, None] + steps).reshape(-1, 2), axis=0)


def vertices(mask):
    """Return the vertices of the hull of the pixels of a mask, by scipy, and its area."""
    points = corners(mask)
    hull = ConvexHull(points)
    on_hull = points[np.sort(hull.vertices)]
    return on_hull[np.lexsort((on_hull[:, 1], on_hull[:, 0]))], hull.volume


@st.composite
def planes(draw, least=1):
    """Draw labels of a plane: noise in blocks, in pieces and with holes, and pixels of none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.tuples(st.integers(1, 9), st.integers(2, 9)))
    n = draw(st.integers(least, 8))
    labels = rng.integers(0, n + 1, shape)
    if draw(st.booleans()):
        labels = labels.repeat(draw(st.integers(1, 4)), 0).repeat(draw(st.integers(1, 4)), 1)
    labels[0, :2] = 1, min(n, 2)
    return np.where(labels > 0, labels + 9, 0)  # a single 1 would be taken for a mask


@examples(120)
@given(planes())
def test_hulls_have_the_vertices_and_areas_that_scipy_finds(labels):
    graph = with_hulls(agglo.region_graph(labels, np.zeros(labels.shape)))
    areas = graph.hulls.areas()
    assert areas[0] == 0
    for dense in range(1, graph.n_regions + 1):
        expected, area = vertices(graph.superpixels.image == dense)
        start, stop = graph.hulls.starts[dense : dense + 2]
        assert np.array_equal(graph.hulls.points[start:stop], expected)
        assert areas[dense] == pytest.approx(area, rel=1e-12)


@examples(120)
@given(planes(least=2), st.integers(0, 2**32 - 1))
def test_merged_hulls_are_those_of_the_merged_pixels(labels, seed):
    graph = with_hulls(agglo.region_graph(labels, np.zeros(labels.shape)))
    rng = np.random.default_rng(seed)
    lut = np.arange(graph.n_regions + 1)
    for _ in range(rng.integers(1, graph.n_regions + 1)):  # in any order
        a, b = np.sort(rng.integers(1, graph.n_regions + 1, 2))
        lut[lut == lut[b]] = lut[a]
    for dense in np.unique(lut):
        lut[lut == dense] = np.flatnonzero(lut == dense)[0]
    coarse = contracted(graph, lut.astype(np.uint32))
    anew = hulls_of(coarse.superpixels.image, coarse.n_regions + 1)
    assert np.array_equal(coarse.hulls.starts, anew.starts)
    assert np.array_equal(coarse.hulls.points, anew.points)


def test_shares_of_the_hull_of_an_l_of_a_bar_and_of_their_union():
    labels = np.array([[1, 1, 1], [2, 2, 1], [0, 0, 1]])
    graph = agglo.region_graph(labels, np.zeros((3, 3)))
    row = feature_table(graph, "natural").iloc[0]
    bent, both = 5 / 7, 7 / 8  # hulls without half of what is missing
    assert row[_HULLS].tolist() == pytest.approx([both, 1, bent, 1 - bent, 1 - both, bent - both])


@examples(60)
@given(planes(least=3), st.integers(0, 2**32 - 1))
def test_features_of_hulls_by_scipy(labels, seed):
    graph = agglo.region_graph(labels, np.random.default_rng(seed).random(labels.shape))
    table = feature_table(graph, "natural")
    image = graph.superpixels.image
    for (u, v), row in zip(graph.edges, table[_HULLS].to_numpy(), strict=True):
        u, v = sorted((int(u), int(v)), key=lambda dense: (graph.sizes[dense], dense))
        masks = [np.isin(image, both) for both in ([u, v], [u], [v])]
        union, low, high = (mask.sum() / vertices(mask)[1] for mask in masks)
        expected = [union, low, high, abs(low - high), low - union, high - union]
        assert row == pytest.approx(expected, abs=1e-6)


def made_up(seed, shape=(12, 14), n=16):
    rng = np.random.default_rng(seed)
    labels = rng.integers(1, n, (shape[0] // 2, shape[1] // 2)).repeat(2, 0).repeat(2, 1)
    return agglo.region_graph(labels, rng.random(shape))


def a_policy(graph, seed=0, preset="natural"):
    features = feature_map(graph, preset)
    forest = random_forest(seed, features.width, trees=5)
    # Half of all nodes ask for hulls.
    rng = np.random.default_rng(seed)
    chosen = rng.random(len(forest.nodes)) < 0.5
    columns = [features.names.index(name) for name in _HULLS if name in features.names]
    if columns:
        forest.nodes[chosen, 0] = rng.choice(columns, chosen.sum())
        forest.nodes[chosen, 1] = rng.random(chosen.sum()).astype(np.float32).view(np.uint32)
    return LearnedPolicy(features, forest)


@pytest.mark.parametrize("seed", range(4))
def test_each_merge_has_the_priority_that_the_merged_pixels_give(seed):
    graph = made_up(seed)
    policy = a_policy(graph, seed)
    score = policy_score(graph, policy.score)
    merges = merge_greedily(graph, policy)
    again = merge_greedily(graph, policy, rescore=True)
    assert np.array_equal(merges.priorities, again.priorities)
    assert np.array_equal(merges.winners, again.winners)
    members = {dense: frozenset([dense]) for dense in range(1, graph.n_regions + 1)}
    rows = zip(merges.winners.tolist(), merges.losers.tolist(), merges.priorities, strict=True)
    for winner, loser, priority in rows:
        assert priority == score(members[winner], members[loser])
        members[winner] |= members.pop(loser)
    unlike = merge_greedily(graph, a_policy(graph, seed, "angles")).priorities
    assert not np.array_equal(unlike, merges.priorities), "test invalid: hulls do not matter"


def test_a_division_and_its_inverse_keep_hulls_as_those_of_the_pixels():
    graph = with_hulls(made_up(1))
    box = tuple(slice(*side) for side in graph.boxes[3].T)
    inside = graph.superpixels.image[box] == 3
    pieces = np.where(inside, 1 + np.arange(inside.shape[1]) % 2, 0)
    division = divide(graph, 3, pieces)
    after = division.apply(graph)
    for one in (after, division.revert(after)):
        anew = hulls_of(one.superpixels.image, one.n_regions + 1)
        assert np.array_equal(one.hulls.starts, anew.starts)
        assert np.array_equal(one.hulls.points, anew.points)


def test_two_regions_of_a_session_have_the_features_of_a_contracted_graph():
    graph = with_hulls(made_up(2))
    features = feature_map(graph, "natural")
    u, v = graph.edges[5].tolist()
    third = next(w for w in range(1, graph.n_regions + 1) if w not in (u, v))
    lut = np.arange(graph.n_regions + 1, dtype=np.uint32)
    lut[max(u, third)] = min(u, third)
    coarse = contracted(dataclasses.replace(graph, hulls=None), lut)
    number = np.searchsorted(np.unique(lut), lut)
    row = np.flatnonzero((coarse.edges == np.sort(number[[u, v]])).all(axis=1))[0]
    found = pair_row(graph, features, {u, third}, {v})
    assert np.array_equal(found, feature_matrix(coarse, features)[row])


def test_a_session_by_hulls_is_edited_learns_and_opens_again(tmp_path):
    labels = np.arange(1, 37).reshape(6, 6).repeat(4, 0).repeat(4, 1)
    gold = np.ones((24, 24), int)
    gold[:, 12:] = 2
    cue = np.random.default_rng(0).random((24, 24))
    graph = agglo.region_graph(labels, cue)
    plain = bool(numba.config.DISABLE_JIT)  # as plain Python, training takes too long
    policy = a_policy(graph) if plain else agglo.train(graph, gold, epochs=1, preset="natural")
    kept = BoundaryScores()

    def check(session):
        """Scores of segments that edits did not change are kept, and the others are as if anew."""
        for found, expected in zip(
            kept.now(session._view), BoundaryScores().now(session._view), strict=True
        ):
            assert np.array_equal(found, expected)

    with agglo.Session.create(tmp_path / "a.agglo", graph, policy) as session:
        session.threshold = 0.1
        check(session)
        line = session.labels()[9]
        at = int(np.flatnonzero(line[1:] != line[:-1])[0])
        session.merge(line[at], line[at + 1])
        check(session)
        session.cut(session.labels()[9, 8], points=[[(9, 8)], [(10, 11)]])
        assert session.graph.n_regions > graph.n_regions, "test invalid: nothing was divided"
        check(session)
        session.threshold = 0.5
        check(session)
        if plain:
            return
        session.relearn((graph, gold))
        check(session)
        assert session.policy.features.options.hulls
        changed = session.labels()
        session.undo()
        session.undo()
        check(session)
        session.redo()
        session.redo()
    with agglo.Session.open(tmp_path / "a.agglo") as session:
        session.threshold = 0.5
        assert np.array_equal(session.labels(), changed)


def test_a_policy_file_from_before_hulls_opens_and_says_the_same(tmp_path):
    graph = made_up(5)
    policy = a_policy(graph, 1, "angles")
    path = policy.save(tmp_path / "new.npz")
    old = tmp_path / "old.npz"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(old, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "header.npy":
                header = json.loads(np.load(io.BytesIO(data)).tobytes())
                header["preset"] = "natural"  # which had no hulls
                text = np.frombuffer(json.dumps(header).encode(), np.uint8)
                buffer = io.BytesIO()
                np.save(buffer, text)
                data = buffer.getvalue()
            copy.writestr(name, data)
    opened = agglo.load_policy(old)
    assert opened.features.preset == "angles"
    assert np.array_equal(opened.score(graph), policy.score(graph))
    volume = agglo.region_graph(np.arange(1, 9).reshape(2, 2, 2), np.zeros((2, 2, 2)))
    assert len(opened.score(volume)) == volume.n_boundaries


def test_refusals_with_the_reason(tmp_path):
    plain = agglo.errors.SetOption("preset", "angles")

    def says(error, words):
        assert words in error.value.problem
        assert plain in agglo.errors.alternatives(error.value.remedy)

    volume = agglo.region_graph(np.arange(1, 9).reshape(2, 2, 2), np.zeros((2, 2, 2)))
    with refuses("preset") as error:
        agglo.train(volume, np.ones((2, 2, 2), int), preset="natural")
    says(error, "3 axes")
    graph = made_up(0)
    policy = a_policy(graph)
    features = FeatureMap("natural", volume.cue_names, volume.layout.bins)
    with refuses("policy") as error:
        agglo.agglomerate(volume, dataclasses.replace(policy, features=features))
    says(error, "3 axes")
    pairs = graph_of_pairs(graph, np.zeros((1, pair_width(graph.layout)), np.int64))
    with refuses("policy") as error:
        policy.score(pairs)
    says(error, "only statistics")
    weights = agglo.RegionGraph.from_edges([(1, 2)], [0.5])
    with refuses("policy"):
        agglo.agglomerate(weights, policy)
    import zarr

    zarr.save(str(tmp_path / "boundary.zarr"), np.zeros((12, 14), np.float32))
    path = str(policy.save(tmp_path / "policy.npz"))
    with refuses("policy") as error:
        blocks.plan(None, str(tmp_path / "boundary.zarr"), policy=path)
    says(error, "block by block")
