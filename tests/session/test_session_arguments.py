"""Arguments and signals of a session."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from oracles.repairs import random_forest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import InvalidInput, Session
from napari_agglo.features import feature_map
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import LearnedPolicy
from napari_agglo.session import Refused


@pytest.fixture
def graph():
    return agglo.region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.1, 0.1, 0.8, 0.9]]))


def test_a_session_is_opened_and_not_called(tmp_path):
    with refuses("path", "use Session.open(path), or"):
        Session(tmp_path / "a.agglo")


@pytest.mark.parametrize("threshold", [5, -1, np.float64(1.5), -0.01])
@pytest.mark.parametrize("kind", ["learned", "mean", "random"])
def test_a_threshold_that_no_priority_can_reach_is_refused(graph, tmp_path, kind, threshold):
    features = feature_map(graph)
    learned = LearnedPolicy(features, random_forest(0, features.width))
    policy = learned if kind == "learned" else kind
    with Session.create(tmp_path / "a.agglo", graph, policy) as session:
        before = session.threshold
        with refuses("threshold", kind=Refused):
            session.threshold = threshold
        with refuses("threshold", kind=Refused):
            session.look(threshold=threshold)
        assert session.threshold == before
        session.threshold = np.nextafter(0.0, -1.0)  # where superpixels are seen
        session.threshold = 1.0
        session.look(threshold=np.inf)


def test_a_threshold_of_other_priorities_may_be_any_number(graph, tmp_path):
    def high(graph):
        return 9 * graph.boundary_mean("boundary")

    weighted = RegionGraph.from_edges([(1, 2), (2, 3)], [3.0, 40.0])
    for name, own, policy in (("a", graph, high), ("b", weighted, "mean")):
        with (
            warnings.catch_warnings(action="ignore"),  # of a function that no file names
            Session.create(tmp_path / f"{name}.agglo", own, policy) as session,
        ):
            session.threshold = 5
            session.look(threshold=30)
            assert session.threshold == 5


def test_a_gold_without_annotations_is_refused(graph, tmp_path):
    with pytest.raises(InvalidInput) as raised:
        Session.create(tmp_path / "a.agglo", graph, gold=np.zeros((1, 4), int))
    assert raised.value.argument == "gold"
    assert not (tmp_path / "a.agglo").exists()


def test_signals_tell_of_every_change_once(graph, tmp_path):
    with Session.create(tmp_path / "a.agglo", graph) as session:
        changes, thresholds = [], []
        session.changed.connect(changes.append)
        session.threshold_changed.connect(thresholds.append)
        session.threshold = 0.3
        session.threshold = 0.3
        assert thresholds == [0.3]
        done = [session.merge(1, 3), session.marks.rename(1, "axon")]
        done += [session.undo(), session.redo(), session.cut_children(1)]
        with pytest.raises(Refused):
            session.merge(1, 1)
        assert changes == done


def test_parts_and_verbs_are_thirty(graph, tmp_path):
    with Session.create(tmp_path / "a.agglo", graph) as session:
        parts = {"marks", "queue", "errors", "history", "changed", "threshold_changed"}
        names = {name for name in dir(session) if not name.startswith("_")} - parts
        assert len(names) <= 30, sorted(names)
