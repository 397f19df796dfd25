"""Teach by answering, on the canvas and in the dock, without gold."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget
from windows import build, camera, give_regions, scene_of, settle, status

import napari_agglo as agglo
from napari_agglo.learning import answer_by_gold
from napari_agglo.policy import LearnedPolicy, MeanPolicy
from napari_agglo.widgets import TrainWidget

pytestmark = pytest.mark.compiled
PAIR = "Same object?"  # the layer of the two regions


@pytest.fixture
def volume(dataset):
    return replace(dataset, gold=None)


def open_step(viewer, project, volume):
    widget = TrainWidget(viewer)
    widget.options["preset"].value = "minimal"
    widget.options["epochs"].value = 1
    widget.show()
    if volume is not None:
        project.set_dataset(volume)
        give_regions(project, volume)
    return widget


@pytest.fixture
def step(layers_only, volume):
    """Return the step without a window, with regions and without gold."""
    widget = open_step(layers_only, scene_of(layers_only).project, volume)
    yield widget
    widget.close()


def begin(step):
    step.teach.run.button.click()
    settle(step.project)
    assert step.teach.question.text() == "Same object?"
    return step.teach.mode


def answer(step, person, n):
    """Answer with the buttons, as the simulated person does, learning when it is due."""
    teach = step.teach
    for _ in range(n):
        same = person(teach.mode.current)
        (teach.skip if same is None else teach.yes if same else teach.no).click()
        if teach.mode.current is None:
            settle(step.project)
    settle(step.project)


def test_keys_answer_what_the_canvas_shows(viewer, project, volume, dataset, monkeypatch):
    """A window: the pair and its place, the keys, learning, and the policy at the end."""
    viewer.add_image(np.asarray(dataset.image), scale=dataset.placement.scale)
    viewer.add_labels(np.zeros(dataset.shape, np.uint8))  # active, with a Ctrl + Z of its own
    step = open_step(viewer, project, volume)
    viewer.window.add_dock_widget(step)
    assert not any(part.isVisible() for part in (step.teach.yes, step.teach.stop))
    mode = begin(step)
    first = mode.current
    layer = viewer.layers[PAIR]
    drawn = np.asarray(layer.data)
    for k, side in enumerate((first.first, first.second), 1):
        np.testing.assert_array_equal(drawn == k, np.isin(volume.superpixels, side))
    row, column = (round(x) for x in np.divide(camera(viewer).center[-2:], layer.scale))
    near = drawn[row - 1 : row + 2, column - 1 : column + 2]
    assert {1, 2} <= set(near.ravel().tolist()), "the view is at their contact"

    window = viewer.window._qt_window
    (canvas,) = [
        one
        for one in window.findChildren(QWidget)
        if type(one).__name__.startswith("CanvasBackend")
    ]

    def press(letter, modifier=Qt.KeyboardModifier.NoModifier):
        QTest.keyClick(canvas, getattr(Qt.Key, f"Key_{letter}"), modifier)

    press("S")
    assert mode.questions.counts == (0, 0, 1)
    assert mode.current is not first
    press("Z", Qt.KeyboardModifier.ControlModifier)
    assert mode.questions.counts == (0, 0, 0)
    assert mode.current.first.tolist() == first.first.tolist()
    person = answer_by_gold(project.regions.graph, dataset.gold)
    begun, fit = threading.Event(), mode.questions._fit
    monkeypatch.setattr(mode.questions, "_fit", lambda *of: (begun.set(), fit(*of))[1])
    while mode.questions.n_answers < 5:
        press({True: "Y", False: "N", None: "S"}[person(mode.current)])
    assert project.jobs["teach"] is not None, "five answers are learned from"
    assert "learning" in step.teach.line.text()
    assert step.teach.run.button.text() == "Cancel"
    assert begun.wait(60), "the answers to learn from have been taken"
    press("S")
    assert mode.questions.n_answers == 6, "meanwhile questions go on"
    settle(project)
    assert mode.questions.n_new == 1
    answer(step, person, 14)
    assert "20 answered" in step.teach.line.text()
    assert isinstance(project.policy, MeanPolicy), "until the end"
    step.teach.stop.click()
    assert status(TrainWidget, project) == "running"
    assert PAIR not in viewer.layers
    settle(project)
    assert isinstance(project.policy, LearnedPolicy)
    assert project.policy.record["answers"] == 20
    assert "20 answers" in step.summary.text.text()
    assert status(TrainWidget, project) == "done"
    assert build(project).tree.n_segments(0.5) < project.regions.graph.n_regions
    press("Y")
    assert mode.questions.n_answers == 20, "the keys are free again"
    assert step.teach.run.button.text() == "Continue answering…"


def test_too_few_answers_are_said_and_kept(step):
    mode, project = begin(step), step.project
    assert not step.teach.run.button.isEnabled(), "nothing to learn from"
    step.teach.skip.click()
    step.teach.stop.click()
    settle(project)
    assert isinstance(project.policy, MeanPolicy)
    assert all(words in step.teach.line.text() for words in ("0 yes", "0 no", "both"))
    step.teach.run.button.click()
    settle(project)
    assert mode.questions.n_answers == 1
    step.teach.undo.click()
    assert not step.teach.undo.isEnabled()
    step.teach.stop.click()
    assert "as before" in step.teach.line.text()


def test_a_cancelled_training_keeps_the_answers(step):
    mode, project = begin(step), step.project
    for _ in range(5):
        mode.no()
    step.teach.run.button.click()  # it cancels
    settle(project)
    assert mode.on
    assert mode.questions.n_answers == mode.questions.n_new == 5
    assert mode.current is not None
    step.teach.run.button.click()  # it learns now
    settle(project)
    assert mode.questions.n_new == 0


def test_other_data_end_the_questions_and_the_answers_stay(layers_only, step, volume):
    mode, project = begin(step), step.project
    mode.yes()
    project.set_dataset(replace(volume, superpixels=None))
    assert not mode.on
    assert PAIR not in layers_only.layers
    assert "1 answer" in step.teach.line.text()
    assert not step.teach.run.button.isEnabled()
    again = replace(volume)
    project.set_dataset(again)
    give_regions(project, again)
    begin(step)
    assert mode.questions.n_answers == 1


def test_states_without_questions_are_said(layers_only, dataset):
    project = scene_of(layers_only).project
    step = open_step(layers_only, project, None)
    assert not step.teach.run.button.isEnabled()
    assert "step 1" in step.teach.line.text()
    one = replace(dataset, gold=None, superpixels=np.ones(dataset.shape, np.uint32) * 7)
    project.set_dataset(one)
    give_regions(project, one)
    assert not step.teach.run.button.isEnabled()
    assert "regions" in step.teach.line.text()
    step.close()


def test_a_session_and_the_questions_exclude_each_other(layers_only, step, tmp_path):
    mode, project = begin(step), step.project
    project.built = build(project)
    assert mode.on, "a hierarchy of the same regions does no harm"
    assert PAIR in layers_only.layers
    session = agglo.Session.create(tmp_path / "one.agglo", project.regions.graph, project.policy)
    project.set_session(session, project.built)
    assert not mode.on
    assert "session" in step.teach.line.text()
