"""Sessions of graphs of affinities: learned policies, and recovery of damaged statistics."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import napari_agglo as agglo

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def graph_and_gold():
    """Return the graph of noisy affinities of eight boxes, with a plain cue, and gold."""
    gold = np.repeat(np.repeat([[1, 2], [3, 4]], 10, axis=0), 12, axis=1)
    gold = np.stack([gold] * 4 + [gold + 4] * 4)
    random = np.random.default_rng(0)
    same = np.stack([np.roll(gold, 1, axis) == gold for axis in range(3)])
    array = np.clip(0.8 * same + random.normal(0.1, 0.1, same.shape), 0, 1)
    affinities = agglo.affinities(array)
    superpixels = agglo.oversegment(affinities, min_size=20)
    cues = {"affinity": affinities, "noise": random.random(gold.shape)}
    return agglo.region_graph(superpixels, cues, spacing=(2, 1, 1)), gold


def test_a_session_by_a_learned_policy_equals_an_agglomeration(graph_and_gold, tmp_path):
    graph, gold = graph_and_gold
    policy = agglo.train(graph, gold, strategy="flat", preset="minimal")
    tree = agglo.agglomerate(graph, policy)
    with agglo.Session.create(tmp_path / "a.agglo", graph, policy) as session:
        session.threshold = 0.5
        np.testing.assert_array_equal(session.labels(), tree.segment(0.5))
        ids = np.unique(session.labels())[:2].tolist()
        session.threshold = 0.1
        before = session.labels()
        first, second = np.unique(before)[:2].tolist()
        session.merge(first, second)
        assert len(np.unique(session.labels())) == len(np.unique(before)) - 1
        session.undo()
        session.threshold = 0.5
        np.testing.assert_array_equal(session.labels(), tree.segment(0.5))
        assert np.unique(session.labels())[:2].tolist() == ids


def test_lost_statistics_are_computed_again_from_the_kept_planes(graph_and_gold, tmp_path):
    graph, _ = graph_and_gold
    with agglo.Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.3
        known = session.labels()
    shutil.rmtree(tmp_path / "a.agglo" / "arrays.zarr" / "boundaries")
    agglo.Session.recover(tmp_path / "a.agglo")
    with agglo.Session.open(tmp_path / "a.agglo") as session:
        np.testing.assert_array_equal(session.labels(), known)
        np.testing.assert_array_equal(session.graph.boundaries, graph.boundaries)
