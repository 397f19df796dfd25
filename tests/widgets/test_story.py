"""The whole story in one window: from Open Sample to an exported, proofread segmentation.

How long the window stood still in each part is noted with the test, not judged: `-rP` shows it.
"""

from __future__ import annotations

import numpy as np
import pytest
import tifffile
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QFileDialog
from widgets.plots.mouse import Mouse
from widgets.proofread.conftest import Hands
from windows import Watch, camera, draw, project_of, replace_samples, scene_of, settle, status

import napari_agglo as agglo
from napari_agglo.policy import LearnedPolicy
from napari_agglo.widgets import ProofreadWidget

LEFT = Qt.MouseButton.LeftButton
LONG = 240  # seconds: kernels may have to be compiled


class Person:
    """Somebody in front of a window with the dock, who does what it says."""

    def __init__(self, viewer):
        self.viewer = viewer
        _, self.dock = viewer.window.add_plugin_dock_widget("napari-agglo", "Agglo")
        self.project = project_of(viewer)
        self.scene = scene_of(viewer)
        self.rest()

    def rest(self):
        settle(self.project, LONG)
        draw()

    def open(self, step):
        header = self.dock.guide.headers[step].button
        if not header.isChecked():
            QTest.mouseClick(header, LEFT)
        draw()
        return self.dock.guide.steps[step]

    def press(self, button):
        assert button.isVisible()
        assert button.isEnabled(), button.toolTip()
        QTest.mouseClick(button, LEFT)

    def says(self, step):
        return self.dock.guide.headers[step].badge.text()


def wrong_split(hands, gold):
    """Return pixels of two segments that touch and lie in one object of gold."""
    project = hands.project
    for name in hands.largest(40):
        here = hands.pixel_of(hands.superpixels_of(name)[0])
        ids = project.session.segments.neighbours(project.id_of(name))
        for other in np.searchsorted(project.graph.ids, ids):
            there = hands.pixel_of(hands.superpixels_of(other)[0])
            if gold[here] == gold[there] != 0:
                return here, there
    raise AssertionError("test invalid: nothing is split wrongly")


def test_from_open_sample_to_an_exported_segmentation(
    painted, viewer, project, crop, home, monkeypatch, make_napari_viewer, record_property
):
    replace_samples(monkeypatch, lambda kind: crop)
    viewer.open_sample("napari-agglo", "neuropil2d")
    with Watch() as watch:

        def note(part):
            worst = watch.worst()
            record_property(f"longest gaps, ms: {part}", worst)
            print(f"{part}: {worst}")

        person = Person(viewer)
        note("opening the dock")
        assert [person.says(step) for step in person.dock.guide.steps] == [
            "ready",
            "ready",
            "ready",
            "empty",
            "empty",
        ]

        # Data, Train.
        train = person.open("train")
        train.options["epochs"].value = 1
        person.press(train.run.button)
        assert person.says("train") == "running"
        person.rest()
        assert isinstance(project.policy, LearnedPolicy)
        assert "Hierarchy" in train.hint.text()
        note("training")

        # Hierarchy: build, scrub with the mouse, type, step with keys.
        hierarchy = person.open("hierarchy")
        person.press(hierarchy.run.button)
        person.rest()
        note("building the hierarchy")
        assert project.threshold == 0.5
        assert viewer.layers[-1] is scene_of(viewer).segmentation
        bar = hierarchy.scale.slider.slider
        QTest.mouseClick(bar, LEFT, pos=QPoint(4, bar.height() // 2))
        assert project.threshold < 0.5
        many = project.n_segments
        hands = Hands(viewer)
        hands.press("D")
        assert project.n_segments < many
        note("scrubbing")

        # Evaluate: a click on a dot flies there.
        evaluate = person.open("evaluate")
        person.press(evaluate.least)
        project.threshold = min(project.threshold, 0.1)  # with something left to mend
        evaluate.tabs.setCurrentIndex(2)
        QTest.qWait(50)
        person.rest()
        while evaluate.comparison.waiting or evaluate.comparison.breakdown is None:
            QTest.qWait(20)
            person.rest()
        note("comparing")
        dots = evaluate.breakdown.splits
        x, y = dots._points()
        Mouse(dots).click(x[0], y[0])
        assert project.active != 0
        assert scene_of(viewer).layer("Selected").visible
        note("a click on a dot")

        # Proofread: mend a wrong split, see it counted, take it back, do it again.
        proofread = person.open("proofread")
        person.press(proofread.bar.run.button)
        hands.step = proofread
        person.rest()
        hands.settle()
        note("starting a session")
        session = project.session
        assert session.path.parent == home / "napari-agglo"
        start = project.table().copy()
        before = session.errors.now()
        a, b = wrong_split(hands, crop.gold)
        viewer.reset_view()
        hands.click(a)
        assert f"segment {hands.id_at(a)}" in proofread.strip.text()
        watch.worst()
        hands.click(b, "shift")
        note("a merge")
        assert hands.id_at(a) == hands.id_at(b)
        assert session.errors.false_split < before.false_split
        assert "saved" in proofread.bar.saved.text()
        hands.press("undo")
        note("undo")
        np.testing.assert_array_equal(project.table(), start)
        hands.press("redo")
        mended = project.table().copy()

        # Export what is seen.
        path = home / "mine.tif"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
        hierarchy = person.open("hierarchy")
        person.press(hierarchy.export.labels)
        person.rest()
        labels = tifffile.imread(path)
        np.testing.assert_array_equal(labels, session.labels())
        assert labels[a] == labels[b] != 0
        assert sum(agglo.split_vi(labels, crop.gold)) == pytest.approx(session.errors.vi)
        note("saving the labels")

        # Close, and go on in another window.
        threshold, folder, centre = project.threshold, session.path, camera(viewer).center
        person.open("proofread")
        person.press(proofread.bar.close_)
        person.rest()
        assert project.session is None
        assert status(ProofreadWidget, project) == "ready"
        other = make_napari_viewer(show=True)
        other.open(str(folder), plugin="napari-agglo")
        again = project_of(other)
        settle(again, LONG)
        draw()
        note("opening it again")
    assert again.session is not None
    assert again.threshold == threshold
    np.testing.assert_array_equal(again.table(), mended)
    np.testing.assert_allclose(camera(other).center, centre)
    found = {type(one).__name__: one for one in other.window.dock_widgets.values()}
    assert found["Dock"].guide.headers["proofread"].button.isChecked()
    scores = found["Dock"].guide.steps["proofread"].scores
    while "VI" not in scores.text.text():
        QTest.qWait(20)
        settle(again, LONG)
    assert "1 edit " in scores.text.text()
    assert "±" not in scores.text.text(), "it says that the edit changed nothing"
    again.close()
    settle(again)
