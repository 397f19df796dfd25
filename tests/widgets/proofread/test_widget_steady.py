"""Messages that come and go move no button: one aims at them meanwhile."""

from __future__ import annotations

import pytest
from qtpy.QtCore import QPoint
from qtpy.QtWidgets import QPushButton
from windows import draw, settle

from napari_agglo.widgets import Dock
from napari_agglo.widgets._napari import canvas_widget
from napari_agglo.widgets._session_worker import Edit
from napari_agglo.widgets.proofread import create_session
from napari_agglo.widgets.proofread._open_session import free_path

LONG = "A sentence that is too long for the dock, of a refusal with its reason and its remedy. " * 4


def places(step):
    draw()
    shown = [one for one in step.findChildren(QPushButton) if one.isVisibleTo(step)]
    return {one.objectName(): one.mapTo(step, QPoint(0, 0)).y() for one in shown}


def test_no_message_moves_a_button(hands, tmp_path):
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
    path = tmp_path / "labels.tif"
    step.export.write_labels(str(path))
    settle(hands.project)
    before, saved = places(step), step.export.saved.text()
    assert path.name in saved
    assert str(tmp_path) in step.export.saved.toolTip()
    session = hands.project.session
    ids = session.segments.ids()[:3].tolist()
    for k, newer in ((1, "1 edit since"), (2, "2 edits since")):
        hands.project.worker.edit(Edit("", lambda one, _, k=k: one.lock(ids[k])))
        settle(hands.project)  # an edit waits while a thread uses the session
        assert newer in step.export.saved.text()
        assert places(step) == before
    for _ in range(2):
        hands.project.worker.edit(Edit("", lambda one, _: one.undo()))
    settle(hands.project)
    assert step.export.saved.text() == saved
    step.tabs.setCurrentIndex(1)
    before = places(step)
    assert {"yes", "no", "skip"} <= before.keys(), "test invalid"
    for text in ("Same object?", LONG):
        step.queue.question.setText(text)
        step.queue.reason.setText(text)
        assert places(step) == before


@pytest.mark.parametrize("size", [(1280, 800), (1024, 700)])
def test_labels_and_exports_are_saved_without_scrolling(viewer, shown, size):
    viewer.window.resize(*size)
    dock = Dock(viewer)
    viewer.window.add_dock_widget(dock, name="Agglo", area="right")
    guide = dock.guide
    create_session(viewer, free_path("given"))
    settle(shown)
    for _ in range(20):
        draw()
    port, step = guide.area.viewport(), guide.steps["proofread"]
    assert step.isVisible()
    for one in (step.export.labels, step.export.more, step.bar.open, step.bar.close_):
        top = one.mapTo(port, QPoint(0, 0)).y()
        assert top >= 0, one.text()
        assert top + one.height() <= port.height(), one.text()
    for key, step in guide.steps.items():
        guide.open(key)
        draw()
        assert canvas_widget(viewer).width() >= dock.width(), f"the dock is wide in {key}"
        assert step.width() <= port.width(), f"{key} is cut off at the right"
