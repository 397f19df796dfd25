"""Arguments and signals of a session."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.repairs import random_forest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import InvalidInput, Session
from napari_agglo.features import feature_map
from napari_agglo.policy import LearnedPolicy
from napari_agglo.session import Refused


@pytest.fixture
def graph():
    return agglo.region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.1, 0.1, 0.8, 0.9]]))


def test_a_session_is_opened_and_not_called(tmp_path):
    with refuses("path", "use Session.open(path), or"):
        Session(tmp_path / "a.agglo")


@pytest.mark.parametrize("threshold", [5, -1, np.float64(1.5)])
def test_a_threshold_that_is_no_probability_is_refused(graph, tmp_path, threshold):
    features = feature_map(graph)
    policy = LearnedPolicy(features, random_forest(0, features.width))
    with Session.create(tmp_path / "a.agglo", graph, policy) as session:
        before = session.threshold
        with pytest.raises(Refused) as raised:
            session.threshold = threshold
        assert raised.value.argument == "threshold"
        assert session.threshold == before
        session.threshold = np.nextafter(0.0, -1.0)  # where superpixels are seen
        session.threshold = 1.0
    with Session.create(tmp_path / "b.agglo", graph) as session:
        session.threshold = threshold  # a mean may be any number


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
