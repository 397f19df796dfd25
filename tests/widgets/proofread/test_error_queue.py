"""The next probable error: asked, answered by keys, undone, and there after a restart."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from windows import camera

import napari_agglo as agglo


@pytest.fixture
def dock(hands):
    """Return the step, with the tab of the queue open."""
    hands.step.tabs.setCurrentIndex(1)
    return hands.step


@pytest.fixture
def asked(hands, dock):
    """Return the queue, with its first question on the screen."""
    dock.queue.go.click()
    rest(hands)
    return hands.proofreader.queue


def rest(hands):
    QTest.qWait(60)  # the queue looks a moment after an edit
    hands.settle()


def press(hands, letter):
    QTest.keyClick(hands.canvas, getattr(Qt.Key, f"Key_{letter}"))
    rest(hands)


def test_questions_are_asked_and_answered(hands, dock, asked):
    """The first questions of a queue, in one window."""
    # The first question is the first suggestion and the view flies there.
    session = hands.project.session
    first = session.queue.next(1)[0]
    assert asked.current.superpixels == first.superpixels
    assert dock.queue.question.text() == first.question
    world = hands.project.placement.to_world(first.position)
    assert camera(hands.viewer).center[-2:] == pytest.approx(world[-2:])
    assert hands.project.id_of(hands.project.active) == first.segments[0]
    assert "edits left" in dock.queue.line.text()

    # The word beside the least size follows what one types.
    least = dock.queue.filters["min_size"].native
    assert least.text() == "1 pixel"
    for typed, shown in (("21", "21 pixels"), ("1", "1 pixel")):
        least.selectAll()
        QTest.keyClicks(least, typed)
        QTest.keyClick(least, Qt.Key.Key_Return)
        rest(hands)
        assert (least.value(), least.text()) == (int(typed), shown)

    # Yes mends and moves on.
    session, one = hands.project.session, asked.current
    before = len(session.history)
    press(hands, "Y")
    assert len(session.history) == before + 1
    a, b = one.superpixels
    table = session.lut()
    ids = session.graph.ids.tolist()
    together = table[ids.index(a)] == table[ids.index(b)]
    assert together == (one.kind == "false_split")
    assert asked.current.superpixels != one.superpixels
    assert asked.answered == 1

    # No and skip change nothing and are not asked again.
    session = hands.project.session
    before, seen = session.labels(), []
    for letter in "NSN":
        seen.append(asked.current.superpixels)
        press(hands, letter)
    np.testing.assert_array_equal(session.labels(), before)
    assert asked.current.superpixels not in seen
    assert len(set(seen)) == 3


@pytest.mark.slow
def test_an_answer_undone_is_asked_again(hands, asked):
    one = asked.current
    press(hands, "N")
    assert asked.current.superpixels != one.superpixels
    hands.press("undo")
    rest(hands)
    assert asked.current.superpixels == one.superpixels


def test_a_question_removes_the_message_before_it_from_the_status_bar(hands, asked):
    hands.project.select(hands.project.active)
    hands.project.worker.message.emit("Cut 12 into 2 parts.")
    press(hands, "S")
    assert asked.current is not None, "test invalid"
    assert "Cut 12" not in str(hands.viewer.status)


@pytest.mark.slow
def test_answers_survive_a_restart(hands, asked):
    first = asked.current.superpixels
    press(hands, "N")
    path = hands.project.session.path
    hands.project.close_session()
    assert not asked.on
    with agglo.Session.open(path) as again:
        assert first not in [one.superpixels for one in again.queue.next(20)]


@pytest.mark.slow
def test_filters(hands, dock, asked):
    dock.queue.filters["kind"].value = "false_merge"
    rest(hands)
    assert asked.current is None or asked.current.kind == "false_merge"
    dock.queue.filters["kind"].value = "false_split"
    rest(hands)
    assert asked.current.kind == "false_split"
    dock.queue.filters["min_size"].value = 10_000_000
    rest(hands)
    assert asked.current is None
    assert dock.queue.question.text().startswith("No more ")
    assert not dock.queue.yes.isEnabled()


@pytest.mark.slow
def test_stopping_gives_the_keys_back(hands, dock, asked):
    dock.queue.go.click()
    before = len(hands.project.session.history)
    press(hands, "Y")
    assert len(hands.project.session.history) == before


@pytest.mark.slow
def test_learning_from_edits_can_be_kept_or_undone(hands, dock, project):
    session = project.session
    first = int(session.segments.ids()[0])
    project.has_edited(session.merge(first, int(session.segments.neighbours(first)[0])))
    before, done = session.labels(), len(session.history)
    dock.relearn.run.button.click()
    hands.settle()
    assert len(session.history) == done + 1
    assert "VI" in dock.relearn.result.text()
    assert dock.relearn.keep.isVisibleTo(dock)
    dock.relearn.back.click()
    hands.settle()
    np.testing.assert_array_equal(session.labels(), before)
    assert not dock.relearn.keep.isVisibleTo(dock)
