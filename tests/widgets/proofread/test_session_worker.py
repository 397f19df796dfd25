"""Repairs of the hierarchy above edits: shown on the way, and stopped on the way."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from windows import draw

from napari_agglo.widgets import _session_worker


@pytest.fixture
def edited(hands, monkeypatch):
    """Return hands on a session with a cut far below the threshold that is asked for next."""
    monkeypatch.setattr(_session_worker, "PATIENCE", 0.0)
    low, high = np.quantile(hands.project.tree.heights, [0.3, 0.9])
    hands.project.threshold = float(low)
    hands.settle()
    name = hands.largest()[0]
    hands.project.session.cut_children(hands.project.id_of(name))
    hands.project.has_edited(None)
    hands.settle()
    hands.high = float(high)
    return hands


def test_a_long_repair_shows_the_segments_on_the_way(edited):
    project, counts = edited.project, []
    project.threshold_changed.connect(lambda _: counts.append(len(np.unique(project.table()))))
    project.threshold = edited.high
    edited.settle()
    session = project.session
    assert (session.threshold, session.ready) == (edited.high, True)
    assert len(counts) > 2
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) > 2, "test invalid: nothing changes on the way"
    np.testing.assert_array_equal(project.table(), session.lut(dense=True))


@pytest.mark.slow
def test_a_repair_that_is_stopped_stays_where_it_is(edited):
    project, low = edited.project, edited.project.threshold
    stages = []

    def stop(_):
        stages.append(project.session.threshold)
        if len(stages) == 3:
            project.jobs.cancel(_session_worker.LOOK)

    project.threshold_changed.connect(stop)
    project.threshold = edited.high
    edited.settle()
    assert low <= project.threshold <= edited.high
    assert project.session.threshold == project.threshold
    np.testing.assert_array_equal(project.table(), project.session.lut(dense=True))


def test_a_session_is_closed_while_something_is_computed_for_the_screen(hands, notices):
    """What a thread computes for a panel is dropped; an edit that runs or waits is not."""
    project, bar = hands.project, hands.step.bar
    worker, gate, answers = project.worker, threading.Event(), []
    worker.latest("a panel", lambda: gate.wait(20), answers.append)
    while not worker.busy:
        draw()
    assert not worker.occupied
    bar.close_.click()
    assert project.session is None
    gate.set()
    hands.settle()
    assert answers == notices == []
    assert not worker.pending
