"""A checkpoint is written when the person rests: not before, not for nothing, not too late."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest
from qtpy.QtTest import QTest
from widgets.proofread.conftest import occupy
from windows import draw

import napari_agglo as agglo
from napari_agglo.widgets import _session_worker

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


def rest(worker):
    """Let the time of the rest be over."""
    worker._rest.stop()
    worker._rest.timeout.emit()


@pytest.fixture
def rested(hands, monkeypatch):
    """Return hands whose rest is long, and three edits worth a checkpoint."""
    assert (_session_worker.CHECKPOINT_AFTER, _session_worker.CHECKPOINT_WORTH) == (30, 100)
    assert hands.project.worker._idle_after == 30_000
    monkeypatch.setattr(_session_worker, "CHECKPOINT_WORTH", 3)
    hands.project.worker._idle_after = LONG
    return hands


def edit(hands, n):
    for _ in range(n):
        name = hands.largest()[0]
        hands.click(hands.pixel_of(hands.superpixels_of(name)[0]))
        hands.press("U")


def test_checkpoint_is_written_after_a_rest_and_spares_the_replay(rested, tmp_path, notices):
    session, worker = rested.project.session, rested.project.worker
    worker._idle_after = 30
    edit(rested, 2)
    wait(200)
    assert session.history.to_replay == 2, "it is not worth while yet"
    rested.click(rested.pixel_of(rested.superpixels_of(rested.largest()[0])[0]))
    name = rested.project.active
    rested.proofreader.commands.merge([rested.neighbour(name)])
    until(lambda: session.history.to_replay == 0)
    until(lambda: not worker.busy)
    # As after a crash: the folder as it is, without the lock.
    shutil.copytree(
        session.path, tmp_path / "crashed.agglo", ignore=shutil.ignore_patterns("lock*")
    )
    with agglo.Session.open(tmp_path / "crashed.agglo") as again:
        assert again.history.to_replay == 0
        np.testing.assert_array_equal(again.labels(), session.labels())
        again.undo()
    # It goes on as before, and undoing is not the end of it.
    rested.press("undo")
    assert session.history.to_replay == 1
    assert not notices


@pytest.mark.slow
def test_whoever_does_something_does_not_rest(rested):
    session, worker = rested.project.session, rested.project.worker
    edit(rested, 4)
    assert worker._rest.remainingTime() > LONG / 2
    for stirs in (
        lambda: rested.project.select(rested.largest()[0]),
        lambda: setattr(rested.project, "threshold", 0.31),
        rested.proofreader.seeds.next_group,
        lambda: edit(rested, 1),
    ):
        worker._rest.start(LONG // 4)
        stirs()
        rested.settle()
        assert worker._rest.remainingTime() > LONG / 2
    gate = occupy(rested.project)
    rest(worker)
    draw()
    assert session.history.to_replay >= 3
    assert worker._rest.isActive(), "it asks again later"
    gate.set()
    rested.settle()
    rest(worker)
    until(lambda: session.history.to_replay == 0)


@pytest.mark.slow
def test_edits_wait_for_it_and_the_window_does_not(rested, monkeypatch):
    session, worker = rested.project.session, rested.project.worker
    edit(rested, 3)
    gate, snapshot = threading.Event(), session._store.snapshot

    def slow(*given):
        gate.wait(20)
        return snapshot(*given)

    monkeypatch.setattr(session._store, "snapshot", slow)
    rest(worker)
    assert worker.busy
    before = len(session.history)
    rested.press("U", wait=False)  # would stand still for 20 s if it asked the session
    assert "waits" in rested.step.message.text()
    gate.set()
    until(lambda: len(session.history) == before + 1)


@pytest.mark.slow
def test_no_room_is_no_matter(rested, monkeypatch, notices):
    session, worker = rested.project.session, rested.project.worker
    edit(rested, 3)
    asked = []
    monkeypatch.setattr(session._store, "snapshot", lambda *_: bool(asked.append(1)))
    rest(worker)
    until(lambda: asked and not worker.busy)
    assert session.history.to_replay == 3
    assert not notices
    assert not worker._rest.isActive(), "it is not tried again until there is something new"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["session", "viewer"])
def test_no_checkpoint_is_written_after_the_session_is_gone(rested, monkeypatch, notices, way):
    session, worker = rested.project.session, rested.project.worker
    edit(rested, 3)
    snapshot, ended, gate = session._store.snapshot, [], threading.Event()

    def slow(*given):
        gate.wait(20)
        try:
            return snapshot(*given)  # refused, if the session was closed before
        finally:
            ended.append(1)

    monkeypatch.setattr(session._store, "snapshot", slow)
    rest(worker)
    assert worker.busy
    threading.Timer(0.2, gate.set).start()
    if way == "session":
        rested.project.close_session()
    else:
        rested.project.close()
    assert ended, "it is waited for"
    assert not worker.busy
    assert not worker._rest.isActive()
    worker.stir()
    assert not worker._rest.isActive()
    draw()
    assert not notices


@pytest.mark.slow
def test_a_read_only_session_has_no_checkpoint(rested):
    session, worker = rested.project.session, rested.project.worker
    edit(rested, 3)
    session._store.close()
    assert session.read_only
    worker._rest.stop()
    worker.stir()
    assert not worker._rest.isActive()
    rest(worker)
    assert not worker.busy
