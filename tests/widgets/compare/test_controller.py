"""The state of a comparison, without a window."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtTest import QTest
from windows import draw, give_policy, project_of, proofreader_of, scene_of, settle, show

import napari_agglo as agglo
from napari_agglo.policy import MeanPolicy
from napari_agglo.widgets import ProofreadWidget
from napari_agglo.widgets._qt import per_viewer
from napari_agglo.widgets.compare._choices import Choice, Cut, PanelSource
from napari_agglo.widgets.compare._controller import CompareController
from napari_agglo.widgets.compare._widget import PanelForm
from napari_agglo.widgets.proofread import create_session


@pytest.fixture
def project(layers_only, dataset):
    project = project_of(layers_only)
    show(project, dataset)
    return project


@pytest.fixture
def controller(layers_only, project):
    return per_viewer(layers_only, CompareController)


def test_the_last_step_by_threshold_ends_at_the_last_threshold(controller, project):
    sources = [PanelSource(Choice(name, "mean"), cut=Cut(project.tree)) for name in ("a", "b")]
    controller.show(sources, project.graph)
    last = controller.ticks.span[1]
    controller.set(position=last - 1e-3)
    assert controller.step(1, by_threshold=True)
    assert controller.comparison.position == last
    assert not controller.step(1, by_threshold=True)


def test_the_canvas_follows_once_when_a_comparison_is_left(controller, layers_only, project):
    if not hasattr(layers_only.layers, "batched_update"):
        pytest.skip("before napari 0.9, the canvas follows each layer")
    sources = [PanelSource(Choice(name, "mean"), cut=Cut(project.tree)) for name in ("a", "b")]
    names = [layer.name for layer in layers_only.layers]
    controller.show(sources, project.graph)
    assert len(layers_only.layers) > len(names) + 2, "test invalid"
    follows = []  # one by one, each takes most of a second: napari collects garbage for each
    events = layers_only.layers.events
    events.begin_batch.connect(lambda: follows.append("begin"))
    events.removed.connect(lambda: follows.append("removed"))
    events.end_batch.connect(lambda: follows.append("end"))
    controller.leave()
    assert [layer.name for layer in layers_only.layers] == names
    assert (follows[0], follows[-1]) == ("begin", "end")
    assert set(follows[1:-1]) == {"removed"}


def test_strategies_are_trained_again_after_gold_was_painted(controller, project, monkeypatch):
    monkeypatch.setattr(project.jobs, "start", lambda *arguments: None)
    choices = [Choice("mean", "mean")]
    controller.start(choices)
    controller._policies["flat"] = MeanPolicy()  # as after a comparison
    controller.start(choices)
    assert "flat" in controller._policies
    project.has_painted(project.gold)
    controller.start(choices)
    assert controller._policies == {}


def test_policies_of_one_file_name_are_two_choices(layers_only, project):
    form = PanelForm(layers_only, project, scene_of(layers_only))
    paths = [Path("a/policy.npz"), Path("b/policy.npz")]
    for k, path in enumerate(paths, 1):
        form.add_policy(path, f"panel_{k}")
    assert [choice.value for choice in form.chosen()[:2]] == paths


def trained(plan):
    """Return the strategies that a plan names before its first full stop."""
    return re.findall(r"\b(?:flat|agglo)\b", plan.partition(".")[0])


def test_a_comparison_uses_policies_that_exist_and_clears_the_canvas(
    controller, project, layers_only, monkeypatch
):
    """What it trains is said before; seeds and the mode are gone while it runs."""
    both = [Choice("flat", "strategy", "flat"), Choice("agglo", "strategy", "agglo")]
    assert trained(controller.plan(both)) == ["flat", "agglo"]
    policy = agglo.train(project.graph, project.gold, strategy="flat", preset="minimal")
    give_policy(project, policy)
    assert trained(controller.plan(both)) == ["agglo"]
    assert re.match(r"Uses .*\bflat\b", controller.plan(both[:1]))
    assert controller.known_policies()["flat"] is policy
    project.has_painted(project.gold)
    give_policy(project, MeanPolicy())
    scene = scene_of(layers_only)
    layer = layers_only.add_points(
        np.zeros((1, project.graph.superpixels.image.ndim)), metadata={"napari_agglo": "Seeds"}
    )
    controller.start([Choice("mean", "mean"), Choice("gold", "gold", project.gold)])
    assert scene.suspended
    assert not layer.visible
    settle(project)
    assert scene.suspended
    assert controller.comparison is not None
    controller.leave()
    assert not scene.suspended
    assert layer.visible
    # A comparison that fails gives the canvas back too.
    wrong = Choice("gold", "gold", np.zeros((2, 2), int))
    controller.start([Choice("mean", "mean"), wrong])
    settle(project)
    assert not scene.suspended


def rest(project):
    """Wait until the queue of errors has looked, a moment after an edit, and nothing runs."""
    QTest.qWait(60)
    settle(project)
    draw()


def test_proofreading_waits_while_panels_are_shown(viewer, dataset3d, tmp_path):
    """The dock says so, no click or answer edits, and the plane of the question comes back."""
    project = project_of(viewer)
    show(project, dataset3d)
    step = ProofreadWidget(viewer)
    viewer.window.add_dock_widget(step, name="Proofread")
    create_session(viewer, tmp_path / "a.agglo")
    settle(project)
    proofreader, session = proofreader_of(viewer), project.session
    queue = proofreader.queue
    queue.start()
    rest(project)
    one, plane, text = queue.current, viewer.dims.point, step.strip.text()
    controller = per_viewer(viewer, CompareController)
    sources = [PanelSource(Choice(name, "mean"), cut=Cut(project.tree)) for name in ("a", "b")]
    controller.show(sources, project.graph)
    draw()
    before = len(session.history)
    assert "Leave" in step.strip.text()
    assert not any(answer.isEnabled() for answer in step.queue.answers)
    proofreader.gestures.click(project.placement.to_world(one.position), set(), 1)
    assert "Leave" in step.message.text()
    queue.skip()
    away = viewer.dims.range[0].start
    assert away != plane[0], "test invalid"
    viewer.dims.set_point(0, away)
    project.has_edited()  # the queue looks again, and leaves the panels alone
    rest(project)
    assert viewer.dims.point[0] == away
    assert len(session.history) == before
    controller.leave()
    rest(project)
    assert viewer.dims.point == plane
    assert (step.strip.text(), step.message.text()) == (text, "")
    assert queue.current.superpixels == one.superpixels
    assert all(answer.isEnabled() for answer in step.queue.answers)
    queue.skip()
    rest(project)
    assert (len(session.history), session.history.n_edits) == (before + 1, 0)
    assert step.scores.text.text().startswith("0 edits")
