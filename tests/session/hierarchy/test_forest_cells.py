"""Priorities of a forest that are taken from its cells equal those scored anew, to the last bit."""

import math
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from oracles.histories import check_against_oracle
from oracles.repairs import hub_graph

import napari_agglo as agglo
from napari_agglo.features import FeatureMap, feature_matrix
from napari_agglo.policy import Forest, LearnedPolicy
from napari_agglo.session._actions import Merge
from napari_agglo.session._hierarchy import forest_cells, superpixels
from napari_agglo.session._hierarchy.hierarchy import Hierarchy


def dense_forest(rows, seed, trees=30, depth=5):
    """Return a forest whose thresholds lie among the features of `rows`, many to each."""
    rng = np.random.default_rng(seed)
    inner, n = 2**depth - 1, 2 ** (depth + 1) - 1
    at = np.tile(np.arange(n), trees)
    first = np.repeat(np.arange(trees) * n, n)
    nodes = np.zeros((trees * n, 4), np.uint32)
    # The last columns, which compare two regions, are half of them.
    width = rows.shape[1]
    last = width - rng.integers(1, 11, len(at))
    nodes[:, 0] = np.where(rng.random(len(at)) < 0.5, rng.integers(0, width, len(at)), last)
    drawn = rows[rng.integers(0, len(rows), len(at)), nodes[:, 0]]
    nodes[:, 1] = (drawn * rng.uniform(0.9, 1.1, len(at))).astype(np.float32).view(np.uint32)
    nodes[:, 2] = first + np.where(at < inner, 2 * at + 1, at)
    nodes[:, 3] = first + np.where(at < inner, 2 * at + 2, at)
    roots = (np.arange(trees) * n).astype(np.uint32)
    return Forest(roots, nodes, rng.random(len(at)))


TABLES = [((1 << 15, 1 << 13), 0), ((40, 7), 0), ((40, 7), 90)]


@pytest.mark.parametrize(
    ("preset", "most", "few"),
    [
        # of each preset one size of the tables, of each size one preset or two
        pytest.param(preset, *sizes, marks=() if (i - j) % 3 == 0 else pytest.mark.slow)
        for i, preset in enumerate(["em", "natural", "shape", "stack"])
        for j, sizes in enumerate(TABLES)
    ],
)
def test_a_replay_by_cells_equals_one_that_scores_all(preset, most, few, monkeypatch):
    """Also if it goes over to cells after some boundaries, as a long one does."""
    plain = bool(numba.config.DISABLE_JIT)  # as plain Python a small one has to do
    monkeypatch.setattr(superpixels.Scorer, "few", few // 4 if plain else few)
    monkeypatch.setattr(forest_cells, "_EDGES", most[0])
    monkeypatch.setattr(forest_cells, "_SLOTS", most[1])
    leaves, seeds, trees = (40, 1, 5) if plain else (300, 4, 30)
    for seed in range(seeds):
        graph = hub_graph(leaves, seed)
        own = "angles" if preset == "natural" and graph.layout.ndim != 2 else preset
        features = FeatureMap(own, graph.cue_names, graph.layout.bins)
        forest = dense_forest(feature_matrix(graph, features), seed, trees)
        policy = LearnedPolicy(features, forest)
        by_cells, anew = (Hierarchy(graph, policy) for _ in range(2))
        assert by_cells.scorer._thresholds is not None
        anew.scorer._thresholds = None
        table = anew.table(0.3)
        others = np.flatnonzero(table != table[1])[1:]
        edit = Merge(0.3, ((1, int(others[seed])),))
        for tree in (by_cells, anew):
            tree.do(edit)
            tree.look(math.inf)
        assert anew.scorer._cells is None
        assert by_cells.scorer._cells is not None
        assert anew.n_scored == by_cells.n_scored
        least = 0 if plain else graph.n_boundaries
        assert anew.n_scored > least, "test invalid: hardly anything was scored"
        n = anew.log.count
        assert by_cells.log.rows[:n].tobytes() == anew.log.rows[:n].tobytes()


def test_regions_without_a_cell_are_told_apart_when_their_order_changes(monkeypatch):
    """A region outgrew its neighbour and stayed in its cell: the smaller one is another then."""
    monkeypatch.setattr(superpixels.Scorer, "few", 0)
    monkeypatch.setattr(forest_cells, "_EDGES", 5)
    monkeypatch.setattr(forest_cells, "_SLOTS", 3)
    labels = np.array([[9, 1, 5, 9], [10, 6, 2, 3], [11, 8, 1, 8], [8, 2, 5, 8]])
    cue = [128, 128, 64, 64, 64, 255, 191, 128, 64, 128, 128, 64, 0, 128, 64, 128]
    cues = np.array(cue, np.uint8).reshape(4, 4)
    graph = agglo.region_graph(labels, cues, ranges={"boundary": (0, 255)})
    # One step: cut through superpixel 8, the sixth, at scale 0; then compare all scales.
    drawn = iter([1, "divide", 0.0, frozenset({6}), [6], 2, 1, 1, []])
    course = SimpleNamespace(draw=lambda *_, **__: next(drawn))
    check_against_oracle(course, graph, "forest", 16, most=16)
