"""A checkpoint is written when the person rests: not before, not for nothing, not too late."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest
from qtpy.QtTest import QTest
from windows import draw

import napari_agglo as agglo

LONG = 10 * 60 * 1000


def until(what):
    for _ in range(2000):
        draw()
        if what():
            return
        QTest.qWait(2)
    raise AssertionError("it never happened")


def wait(milliseconds):
    QTest.qWait(milliseconds)
    draw()


def rest(resting):
    """Let the time of the rest be over."""
    resting._timer.stop()
    resting._timer.timeout.emit()


@pytest.fixture
def rested(hands):
    """Return hands whose rest is short, and three edits worth a checkpoint."""
    resting = hands.proofreader.resting
    assert (resting.rest, resting.worth) == (30_000, 100)
    resting.rest, resting.worth = LONG, 3
    return hands


def edit(hands, n):
    for _ in range(n):
        name = hands.largest()[0]
        hands.click(hands.pixel_of(hands.superpixels_of(name)[0]))
        hands.press("U")


def test_it_is_written_after_a_rest_and_spares_the_replay(rested, tmp_path, notices):
    session, resting = rested.project.session, rested.proofreader.resting
    resting.rest = 30
    edit(rested, 2)
    wait(200)
    assert session.to_replay == 2, "it is not worth while yet"
    rested.click(rested.pixel_of(rested.superpixels_of(rested.largest()[0])[0]))
    name = rested.project.active
    rested.proofreader.acts.merge([rested.neighbour(name)])
    until(lambda: session.to_replay == 0)
    until(lambda: not rested.project.held)
    # As after a crash: the folder as it is, without the lock.
    shutil.copytree(
        session.path, tmp_path / "crashed.agglo", ignore=shutil.ignore_patterns("lock*")
    )
    with agglo.Session.open(tmp_path / "crashed.agglo") as again:
        assert again.to_replay == 0
        np.testing.assert_array_equal(again.labels(), session.labels())
        again.undo()
    # It goes on as before, and undoing is not the end of it.
    rested.press("undo")
    assert session.to_replay == 1
    assert not notices


def test_whoever_does_something_does_not_rest(rested):
    session, resting = rested.project.session, rested.proofreader.resting
    edit(rested, 4)
    assert resting._timer.remainingTime() > LONG / 2
    for stirs in (
        lambda: rested.project.select(rested.largest()[0]),
        lambda: setattr(rested.project, "threshold", 0.31),
        rested.proofreader.seeds.next_group,
        lambda: edit(rested, 1),
    ):
        resting._timer.start(LONG // 4)
        stirs()
        rested.settle()
        assert resting._timer.remainingTime() > LONG / 2
    rested.project.hold()  # a worker has the session: an edit runs
    rest(resting)
    draw()
    assert not resting.busy
    assert resting._timer.isActive(), "it asks again later"
    rested.project.release()
    rest(resting)
    until(lambda: session.to_replay == 0)


def test_edits_wait_for_it_and_the_window_does_not(rested, monkeypatch):
    session, resting = rested.project.session, rested.proofreader.resting
    edit(rested, 3)
    gate, snapshot = threading.Event(), session._store.snapshot

    def slow(*given):
        gate.wait(20)
        return snapshot(*given)

    monkeypatch.setattr(session._store, "snapshot", slow)
    rest(resting)
    assert resting.busy
    before = len(session.history)
    rested.press("U", wait=False)  # would stand still for 20 s if it asked the session
    assert "waits" in rested.step.said.text()
    gate.set()
    until(lambda: len(session.history) == before + 1)


def test_no_room_is_no_matter(rested, monkeypatch, notices):
    session, resting = rested.project.session, rested.proofreader.resting
    edit(rested, 3)
    asked = []
    monkeypatch.setattr(session._store, "snapshot", lambda *_: bool(asked.append(1)))
    rest(resting)
    until(lambda: asked and not rested.project.held)
    assert session.to_replay == 3
    assert not notices
    assert not resting._timer.isActive(), "it is not tried again until there is something new"


@pytest.mark.parametrize("way", ["session", "viewer"])
def test_nobody_writes_when_the_session_is_gone(rested, monkeypatch, notices, way):
    session, resting = rested.project.session, rested.proofreader.resting
    edit(rested, 3)
    snapshot, ended, gate = session._store.snapshot, [], threading.Event()

    def slow(*given):
        gate.wait(20)
        try:
            return snapshot(*given)  # refused, if the session was closed before
        finally:
            ended.append(1)

    monkeypatch.setattr(session._store, "snapshot", slow)
    rest(resting)
    assert resting.busy
    threading.Timer(0.2, gate.set).start()
    if way == "session":
        rested.project.close_session()
    else:
        rested.project.close()
    assert ended, "it is waited for"
    assert not resting.busy
    assert not resting._timer.isActive()
    resting.stir()
    assert not resting._timer.isActive()
    draw()
    assert not notices


def test_what_is_read_only_is_left_alone(rested):
    session, resting = rested.project.session, rested.proofreader.resting
    edit(rested, 3)
    session._store.close()
    assert session.read_only
    resting._timer.stop()
    resting.stir()
    assert not resting._timer.isActive()
    rest(resting)
    assert not resting.busy
