"""Messages that come and go move no button: one aims at them meanwhile."""

from __future__ import annotations

from qtpy.QtCore import QPoint
from qtpy.QtWidgets import QPushButton
from windows import draw

LONG = "A sentence that is too long for the dock, of a refusal with its reason and its remedy. " * 4


def places(step):
    draw()
    shown = [one for one in step.findChildren(QPushButton) if one.isVisibleTo(step)]
    return {one.objectName(): one.mapTo(step, QPoint(0, 0)).y() for one in shown}


def test_no_message_moves_a_button(hands):
    step = hands.step
    before = places(step)
    assert {"Close", "cut", "clear seeds", "export"} <= before.keys(), "test invalid"
    for text in ("Merged 2 into 1 at 0.5.", LONG, ""):
        hands.project.worker.message.emit(text)
        assert places(step) == before
        assert step.message.text() == text
        assert text.strip() in step.message.toolTip()
    cut = hands.proofreader.cut
    for text in ("Enter cuts.", LONG):
        cut._tell(False, text)
        assert places(step) == before
    step.tabs.setCurrentIndex(1)
    before = places(step)
    assert {"yes", "no", "skip"} <= before.keys(), "test invalid"
    for text in ("Same object?", LONG):
        step.queue.question.setText(text)
        step.queue.reason.setText(text)
        assert places(step) == before
