"""Gold that is painted in place makes what was learned from it, and compared with it, stale."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from widgets.proofread.conftest import Hands
from windows import add_sample, draw, selection_of, settle, status

from napari_agglo.evaluate import vi_curve
from napari_agglo.widgets import EvaluateWidget, HierarchyWidget, TrainWidget

LEFT = Qt.MouseButton.LeftButton


def press(button, project):
    assert button.isVisible()
    assert button.isEnabled()
    QTest.mouseClick(button, LEFT)
    for _ in range(5):
        settle(project, 240)
        QTest.qWait(40)


@pytest.fixture
def worked(viewer, project, crop):
    """Return a window in which a policy was trained, a hierarchy built and compared with gold."""
    selection = selection_of(viewer)
    add_sample(viewer, crop)
    gold = selection.gold
    gold.data = gold.data.copy()  # the sample is shared
    train, build, evaluate = TrainWidget(viewer), HierarchyWidget(viewer), EvaluateWidget(viewer)
    train.options["preset"].value = "minimal"
    train.options["classifier"].value = "logistic"
    train.options["epochs"].value = 1
    docks = [viewer.window.add_dock_widget(one, area="right", tabify=True)
             for one in (train, build, evaluate)]  # fmt: skip
    for dock, widget in zip(docks, (train, build), strict=False):
        dock.raise_()
        draw()
        press(widget.run.button, project)
    docks[2].raise_()
    QTest.qWait(200)
    settle(project, 240)
    QTest.qWait(200)
    settle(project, 240)
    assert project.curve is not None
    return gold, dict(zip(("train", "evaluate"), ((docks[0], train), (docks[2], evaluate)),
                          strict=True))  # fmt: skip


def statuses(project):
    return [status(step, project) for step in (TrainWidget, EvaluateWidget)]


def stroke(viewer, layer, index):
    """Paint in a layer with the mouse."""
    viewer.layers.selection.active = layer
    layer.visible = True
    layer.mode, layer.brush_size = "paint", 8
    layer.selected_label = int(layer.data.max()) + 1
    before = layer.data.copy()
    hands = Hands(viewer)
    QTest.mouseMove(hands.canvas, hands.spot(index))
    QTest.mousePress(hands.canvas, LEFT, pos=hands.spot(index))
    QTest.mouseRelease(hands.canvas, LEFT, pos=hands.spot(index))
    QTest.mouseRelease(hands.canvas, Qt.MouseButton.NoButton)
    draw()
    layer.mode = "pan_zoom"
    assert (layer.data != before).any(), "test invalid"


@pytest.mark.slow
def test_a_stroke_in_gold_makes_train_and_evaluate_stale(viewer, project, worked):
    gold, widgets = worked
    assert statuses(project) == ["done", "done"]
    dock, evaluate = widgets["evaluate"]
    assert not evaluate.run.isVisible()
    told = []
    project.status_changed.connect(lambda: told.append(1))
    array, first = gold.data, project.curve
    stroke(viewer, gold, (60, 70))
    assert gold.data is array, "test invalid"
    assert statuses(project) == ["stale", "stale"]
    n = len(told)
    stroke(viewer, gold, (30, 30))
    assert len(told) == n, "the second stroke says nothing new"
    assert all(words in evaluate.hint.text() for words in ("gold", "changed"))
    assert project.curve is first, "what was there stays until it is asked for"
    # Comparing again is with what is painted.
    press(evaluate.run.button, project)
    assert statuses(project) == ["stale", "done"]
    np.testing.assert_allclose(project.curve["vi"], vi_curve(project.tree, gold.data)["vi"])
    assert not np.allclose(project.curve["vi"], first["vi"])
    assert evaluate.comparison.numbers["vi"] == pytest.approx(sum(evaluate.curves.errors()))
    # And so is training.
    dock, train = widgets["train"]
    dock.raise_()
    draw()
    assert all(words in train.hint.text() for words in ("gold", "changed"))
    press(train.run.button, project)
    assert status(TrainWidget, project) == "done"


@pytest.mark.slow
def test_other_labels_may_be_painted(viewer, project, worked):
    other = viewer.add_labels(np.zeros(worked[0].data.shape, np.int32), scale=worked[0].scale)
    stroke(viewer, other, (60, 70))
    assert statuses(project) == ["done", "done"]


@pytest.mark.slow
def test_gold_painted_during_a_count_is_not_counted(viewer, project, worked):
    gold, widgets = worked
    stroke(viewer, gold, (60, 70))
    _, evaluate = widgets["evaluate"]
    QTest.mouseClick(evaluate.run.button, LEFT)
    assert project.jobs["evaluate"] is not None
    gold.data_setitem((np.array([5]), np.array([5])), int(gold.data.max()) + 1)
    settle(project, 240)
    assert status(EvaluateWidget, project) == "stale"
