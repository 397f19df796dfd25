"""Interruptions of a window at work: it is never left in a half state."""

from __future__ import annotations

import time

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication
from vispy.gloo.context import GLContext, get_current_canvas
from widgets.proofread.conftest import Hands
from windows import add_sample, draw, make_current, scene_of, selection_of, settle, show, status

from napari_agglo.policy import LearnedPolicy, MeanPolicy
from napari_agglo.widgets import DataWidget, Dock, HierarchyWidget

LEFT = Qt.MouseButton.LeftButton
LONG = 240  # seconds: kernels may have to be compiled


def put(viewer):
    dock = Dock(viewer)
    viewer.window.add_dock_widget(dock, name="Agglo", area="right")
    settle(dock.guide.project, LONG)  # warm
    quick = dock.guide.steps["train"].options
    quick["preset"].value = "minimal"
    quick["classifier"].value = "logistic"
    quick["epochs"].value = 1
    draw()
    return dock


@pytest.fixture
def dock(viewer, project, crop):
    """Return the dock of a window with a small sample."""
    add_sample(viewer, crop)
    return put(viewer)


def button(dock, step):
    """Return what runs a step, as it is seen."""
    widget = dock.guide.steps[step]
    found = (widget.bar.run if step == "proofread" else widget.run).button
    if not dock.guide.headers[step].button.isChecked():
        QTest.mouseClick(dock.guide.headers[step].button, LEFT)
    assert found.isVisible()
    return found


def start(dock, step):
    QTest.mouseClick(button(dock, step), LEFT)
    assert status(dock.guide.steps[step], dock.guide.project) == "running"


def wait_for(condition, seconds=LONG):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come"
        QApplication.processEvents()
        time.sleep(0.002)


def state(dock):
    """Return all that a cancelled job must leave alone."""
    project = dock.guide.project
    return (
        project.dataset, project.regions, project.policy, project.tree, project.curve,
        project.session, project.threshold, project.table().tolist(),
        [status(step, project) for step in dock.guide.steps.values()],
    )  # fmt: skip


def layers(viewer):
    return [(layer.name, layer.visible) for layer in viewer.layers]


# Layers, during a run.


def meddle(viewer):
    """Rename, hide or show, and reorder all layers."""
    for layer in viewer.layers:
        layer.name = f"my {layer.name[::-1]}"
        layer.visible = not layer.visible
    viewer.layers.reverse()


@pytest.mark.slow
def test_layers_are_renamed_hidden_and_reordered_during_a_run(viewer, dock, project):
    start(dock, "train")
    meddle(viewer)
    settle(project, LONG)
    assert isinstance(project.policy, LearnedPolicy)
    start(dock, "hierarchy")
    meddle(viewer)
    settle(project, LONG)
    assert status(HierarchyWidget, project) == "done"
    segmentation = scene_of(viewer).segmentation
    assert segmentation in viewer.layers
    meddle(viewer)
    project.threshold = 0.1
    draw()
    shown = project.table()[project.graph.superpixels.image]
    np.testing.assert_array_equal(np.asarray(segmentation.data), shown)


@pytest.mark.slow
def test_layers_are_deleted_during_a_run(viewer, dock, project, notices):
    start(dock, "hierarchy")
    viewer.layers.clear()
    settle(project, LONG)
    assert project.tree is not None, "a worker holds arrays, not layers"
    assert [layer.name for layer in viewer.layers] == ["Segmentation"]
    assert not dock.guide.steps["data"].run.button.isEnabled()
    viewer.layers.clear()  # that of ours too
    project.threshold = 0.2
    QTest.keyClick(dock.guide.steps["hierarchy"].scale.slider.slider, Qt.Key.Key_Right)
    draw()
    assert [layer.name for layer in viewer.layers] == ["Segmentation"], "the slider brings it back"
    assert notices == []


# Docks and viewers.


@pytest.mark.slow
def test_the_dock_is_closed_during_a_run_and_opened_again(viewer, dock, project):
    start(dock, "train")
    viewer.window.remove_dock_widget(dock)
    dock.deleteLater()
    draw()
    settle(project, LONG)
    assert isinstance(project.policy, LearnedPolicy)
    again = put(viewer)
    assert again.guide.headers["train"].badge.text() == "done"
    assert button(again, "train").text() == "Train again"
    start(again, "hierarchy")
    settle(project, LONG)
    assert status(HierarchyWidget, project) == "done"


def test_a_layer_is_removed_in_the_gl_context_of_its_own_window(make_napari_viewer, monkeypatch):
    first, second = make_napari_viewer(show=True), make_napari_viewer(show=True)
    current = []
    finish = GLContext.finish

    def note(self):
        current.append(get_current_canvas().context is self)
        return finish(self)

    monkeypatch.setattr(GLContext, "finish", note)
    for viewer in (first, second):
        viewer.add_image(np.zeros((8, 8)))
        draw()
    assert get_current_canvas() is not None, "test invalid"
    scene_of(first)
    make_current(second)
    first.layers.pop(0)
    assert current == [True]
    make_current(first)
    second.layers.pop(0)  # a window without the plugin, as napari leaves it
    assert current == [True, False], "napari does it by itself: leave draw_in_own_window out"


@pytest.mark.slow
def test_two_viewers_work_side_by_side(viewer, dock, project, make_napari_viewer, crop, painted):
    other = make_napari_viewer(show=True)
    add_sample(other, crop)
    beside = put(other).guide
    start(dock, "hierarchy")
    beside.steps["hierarchy"].run.button.click()
    settle(project, LONG)
    settle(beside.project, LONG)
    beside.project.threshold = 0.05
    assert project.threshold != 0.05
    assert project.n_segments < beside.project.n_segments
    assert scene_of(viewer).segmentation in viewer.layers
    assert scene_of(viewer).segmentation not in other.layers
    other.close()
    draw()
    project.threshold = 0.2  # the first goes on when the second has gone
    draw()
    assert status(HierarchyWidget, project) == "done"
    settle(beside.project)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["train", "hierarchy"])
def test_the_viewer_is_closed_while_a_worker_runs(make_napari_viewer, crop, step):
    viewer = make_napari_viewer(show=True)
    add_sample(viewer, crop)
    dock = put(viewer)
    project = dock.guide.project
    start(dock, step)
    viewer.close()
    project.close()  # as when the window is destroyed, which a test only sees later
    wait_for(lambda: not project.jobs.running())
    assert project.tree is None
    assert isinstance(project.policy, MeanPolicy)


# Clicks.


@pytest.mark.slow
def test_a_second_click_on_train_stops_it_and_a_third_trains(dock, project):
    before = state(dock)
    dock.guide.steps["train"].options["epochs"].value = 40
    run = button(dock, "train")
    QTest.mouseClick(run, LEFT)
    assert run.text() == "Cancel"
    QTest.mouseClick(run, LEFT)
    assert run.text() == "Cancelling…"
    QTest.mouseClick(run, LEFT)  # to no effect
    settle(project, LONG)
    assert state(dock) == before
    dock.guide.steps["train"].options["epochs"].value = 1
    QTest.mouseClick(run, LEFT)
    settle(project, LONG)
    assert isinstance(project.policy, LearnedPolicy)


@pytest.mark.slow
def test_a_cancelled_job_leaves_everything_as_it_was(viewer, dock, project, home, notices):
    for step in dock.guide.steps:
        if step == "evaluate":
            start(dock, "hierarchy")
            settle(project, LONG)
            project.set_curve(None)
        before, seen = state(dock), layers(viewer)
        run = button(dock, step)
        if (
            status(dock.guide.steps[step], project) != "running"
        ):  # Evaluate begins by itself when looked at
            QTest.mouseClick(run, LEFT)
        QTest.mouseClick(run, LEFT)
        settle(project, LONG)
        assert state(dock) == before, step
        assert status(dock.guide.steps[step], project) == "ready"
        assert layers(viewer) == seen
    assert not list(home.glob("napari-agglo/*.agglo"))
    assert notices == []


@pytest.mark.slow
def test_undo_pressed_fast_twenty_times_in_the_dock(viewer, dock, project, dataset, notices):
    show(project, dataset)
    start(dock, "proofread")
    settle(project, LONG)
    hands = Hands(viewer)
    hands.settle()
    first = project.table().copy()
    name = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(name)[0]))
    for _ in range(3):
        hands.proofreader.commands.merge([hands.neighbour(project.active)])
        hands.settle()
    assert len(project.session.history) == 3
    for _ in range(20):
        hands.press("undo", wait=False)
    hands.settle()
    np.testing.assert_array_equal(project.table(), first)
    assert "undo" in dock.guide.steps["proofread"].message.text()
    assert not any("undo" in one for one in notices), "a notice for each key"
    for _ in range(20):
        hands.press("redo", wait=False)
    hands.settle()
    assert sum(not one.undone for one in project.session.history) == 3


# What cannot be used is said before anything runs.

SHAPE = (24, 30)
BOUNDARY = np.random.default_rng(0).random(SHAPE, np.float32)
GOLD = np.ones(SHAPE, np.uint8)


def colours(viewer, choose):
    viewer.add_image(np.zeros((*SHAPE, 3), np.uint8), name="photo", rgb=True)


def other_shape(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    choose("gold", viewer.add_labels(GOLD[:-3], name="short"))


def other_order(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    choose("gold", viewer.add_labels(GOLD.T.copy(), name="turned"))


def more_axes(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    choose("gold", viewer.add_labels(GOLD[None].repeat(4, 0), name="stack"))


def other_scale(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    choose("gold", viewer.add_labels(GOLD, name="big", scale=(2, 2)))


def other_place(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    choose("gold", viewer.add_labels(GOLD, name="away", translate=(2, 2)))


def turned(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob", rotate=30)


def floats(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    choose("superpixels", viewer.add_image(GOLD.astype(float), name="floats"))


def no_numbers(viewer, choose):
    layer = viewer.add_image(np.zeros(SHAPE, bool), name="mask prob")
    (row,) = selection_of(viewer).rows
    assert row.layer is layer
    selection_of(viewer).set_cue(row, used=True)


def no_name(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    selection_of(viewer).set_cue(selection_of(viewer).rows[0], name=" ")


def no_boundary(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    selection_of(viewer).set_cue(selection_of(viewer).rows[0], name="texture")


def two_of_a_name(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    viewer.add_image(BOUNDARY, name="other prob")
    for row in selection_of(viewer).rows:
        selection_of(viewer).set_cue(row, used=True, name="boundary")


def no_range(viewer, choose):
    viewer.add_image(BOUNDARY, name="prob")
    selection_of(viewer).set_cue(selection_of(viewer).rows[0], range_text="much")


BAD = (
    (lambda viewer, choose: None, "No image is open", ""),
    (colours, "make one from the image", ""),
    (other_shape, "must have one shape", ""),
    (other_order, "axes seem to be in another order", ""),
    (more_axes, "one has more axes", "Use it as 4 gold standards"),
    (other_scale, "different placements", "Give all layers the placement of “big”"),
    (other_place, "different placements", "Give all layers the placement of “prob”"),
    (turned, "resample it first", ""),
    (floats, "must be labels", "Use it as labels"),
    (no_numbers, "a cue must be numbers", ""),
    (no_name, "A cue has no name", ""),
    (no_boundary, "No cue is called “boundary”", ""),
    (two_of_a_name, "Two cues are called “boundary”", ""),
    (no_range, "much", ""),
)


@pytest.mark.slow
def test_unusable_layers_are_named_with_a_remedy(viewer, project, notices):
    step = DataWidget(viewer)
    viewer.window.add_dock_widget(step, name="Data")
    for bad, words, remedy in BAD:
        viewer.layers.clear()
        bad(viewer, selection_of(viewer).choose)
        draw()
        assert project.dataset is None, words
        assert words in step.trouble.message.text()
        assert step.trouble.isVisible()
        assert step.trouble.button.isVisible() == bool(remedy), words
        assert not step.run.button.isEnabled()
        assert status(DataWidget, project) == "empty"
        if remedy:
            assert step.trouble.button.text() == remedy
            QTest.mouseClick(step.trouble.button, LEFT)
            settle(project, LONG)
            assert project.dataset is not None, words
            assert not step.trouble.isVisible()
    assert notices == []
