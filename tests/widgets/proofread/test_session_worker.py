"""While a worker has the session the window is free, and what is asked for waits its turn."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from qtpy.QtTest import QTest
from widgets.proofread.conftest import occupy
from windows import draw

from napari_agglo.widgets._session_worker import Edit


def until(what):
    for _ in range(1000):
        draw()
        if what():
            return
        QTest.qWait(2)
    raise AssertionError("it never happened")


@pytest.mark.slow
def test_keys_wait_while_the_session_is_held(hands):
    name = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(name)[0]))
    hands.proofreader.commands.merge([hands.neighbour(name)])
    hands.settle()
    merged = hands.project.table().copy()
    session = hands.project.session
    gate = occupy(hands.project)
    # None of these may block: a lock that is held would keep the window waiting for 20 s.
    hands.press("undo", wait=False)
    hands.press("U", wait=False)
    hands.project.threshold = 0.31
    draw()
    assert hands.project.worker.waiting == 2
    assert "waits" in hands.step.message.text()
    np.testing.assert_array_equal(hands.project.table(), merged)
    assert not gate.is_set()
    gate.set()
    hands.settle()
    assert hands.project.worker.waiting == 0
    assert session.threshold == 0.31
    assert [item.undone for item in session.history] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 150])
def test_a_key_held_down_does_not_pile_up_for_ever(hands, steps):
    gate = occupy(hands.project)
    for _ in range(steps):
        hands.press("undo", wait=False)
    assert hands.project.worker.waiting == min(steps, 100)
    gate.set()
    hands.settle()
    assert not hands.project.session.history


def test_errors_and_newer_requests_of_a_worker(hands, notices, monkeypatch):
    """An error, then requests of several topics, in one window."""
    # An unexpected error is told and the next edit works.
    session = hands.project.session
    hands.click(hands.pixel_of(hands.superpixels_of(hands.largest()[0])[0]))

    def broken(*_, **__):
        raise KeyError("a fault of ours")

    monkeypatch.setattr(session, "lock", broken)
    hands.press("H")
    assert any("Unexpected" in told for told in notices)
    monkeypatch.undo()
    hands.press("H")
    assert session.segments.is_locked(hands.project.id_of(hands.project.active))

    # Only the newest request of a topic is answered and edits go first.
    worker, gate = hands.project.worker, threading.Event()
    ran, told = [], []

    def work(k):
        def run():
            ran.append(k)
            gate.wait(10)
            if k == 4:
                raise ValueError(k)
            return k

        return run

    def edit(session, _):
        ran.append("edit")
        return session.marks.review(int(session.segments.ids()[0]), True)

    worker.latest("a", work(0), told.append)
    until(lambda: ran)
    for k in (1, 2, 3):
        worker.latest("a", work(k), told.append)
    worker.latest("b", work(7), told.append)
    worker.edit(Edit("Reviewing", edit))
    gate.set()
    hands.settle()
    # Those between were never begun, and the answer to the first is not wanted any more.
    assert ran == [0, "edit", 3, 7]
    assert told == [3, 7]
    worker.latest("a", work(4), told.append, lambda error: told.append(str(error)))
    hands.settle()
    assert told == [3, 7, "4"]
    gate.clear()
    worker.latest("a", work(5), told.append)
    until(lambda: 5 in ran)
    worker.forget("a")
    gate.set()
    hands.settle()
    assert told == [3, 7, "4"]
    worker.latest("a", work(6), told.append)
    hands.project.close_session()
    draw()
    assert 6 not in ran


@pytest.mark.slow
def test_the_active_segment_is_described_though_a_thread_had_the_session(hands):
    first, second = hands.largest(2)
    worker, panel, gate = hands.project.worker, hands.step.details, threading.Event()
    hands.project.select(first)
    hands.settle()
    worker.latest("slow", lambda: gate.wait(10), lambda _: None)
    until(lambda: worker.busy)
    hands.project.select(second)
    assert f"Segment {hands.project.id_of(first)}" in panel.title.text(), "test invalid"
    gate.set()
    hands.settle()
    assert f"Segment {hands.project.id_of(second)}" in panel.title.text()
