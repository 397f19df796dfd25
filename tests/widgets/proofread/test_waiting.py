"""While a worker has the session the window is free, and what is asked for waits its turn."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from qtpy.QtTest import QTest
from windows import draw

from napari_agglo.widgets._session_worker import Latest


def until(what):
    for _ in range(1000):
        draw()
        if what():
            return
        QTest.qWait(2)
    raise AssertionError("it never happened")


def test_only_the_newest_request_is_answered(qtbot):
    gate = threading.Event()
    ran, told, held = [], [], []
    latest = Latest(lambda: held.append(1), lambda: held.append(-1))

    def work(k):
        def run():
            ran.append(k)
            gate.wait(10)
            if k == 4:
                raise ValueError(k)
            return k

        return run

    for k in range(4):
        latest.ask(work(k), told.append, told.append)
    gate.set()
    until(lambda: told)
    assert (ran, told) == ([0, 3], [3])  # those between were never begun
    latest.ask(work(4), told.append, lambda error: told.append(str(error)))
    until(lambda: len(told) == 2)
    assert told == [3, "4"]
    gate.clear()
    latest.ask(work(5), told.append, told.append)
    until(lambda: 5 in ran)
    latest.close()
    gate.set()
    until(lambda: not latest.busy)
    latest.ask(work(6), told.append, told.append)
    assert told == [3, "4"]
    assert held == [1, -1] * 4


def test_keys_wait_while_the_session_is_held(hands):
    name = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(name)[0]))
    hands.proofreader.acts.merge([hands.neighbour(name)])
    hands.settle()
    merged = hands.project.table().copy()
    session = hands.project.session
    gate, inside = threading.Event(), threading.Event()

    def hold():
        with session._lock:
            inside.set()
            gate.wait(20)

    hands.project.hold()
    worker = threading.Thread(target=hold)
    worker.start()
    inside.wait(10)
    # None of these may block: a lock that is held would keep the window waiting for 20 s.
    hands.press("undo", wait=False)
    hands.press("U", wait=False)
    hands.project.threshold = 0.31
    draw()
    assert hands.proofreader.editor.waiting == 2
    assert "waits" in hands.step.said.text()
    np.testing.assert_array_equal(hands.project.table(), merged)
    assert not gate.is_set()
    gate.set()
    worker.join()
    hands.project.release()
    hands.settle()
    assert hands.proofreader.editor.waiting == 0
    assert session.threshold == 0.31
    assert [item.undone for item in session.history] == [True, False]


@pytest.mark.parametrize("steps", [1, 150])
def test_a_key_held_down_does_not_pile_up_for_ever(hands, steps):
    hands.project.hold()
    for _ in range(steps):
        hands.press("undo", wait=False)
    assert hands.proofreader.editor.waiting == min(steps, 100)
    hands.project.release()
    hands.settle()
    assert not hands.project.session.history


def test_an_unexpected_error_is_told_and_the_next_edit_works(hands, notices, monkeypatch):
    session = hands.project.session
    hands.click(hands.pixel_of(hands.superpixels_of(hands.largest()[0])[0]))

    def broken(*_, **__):
        raise KeyError("a fault of ours")

    monkeypatch.setattr(session, "lock", broken)
    hands.press("H")
    assert any("unexpected" in told for told in notices)
    monkeypatch.undo()
    hands.press("H")
    assert session.is_locked(hands.project.id_of(hands.project.active))
