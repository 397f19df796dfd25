"""The Hierarchy step in a real window, driven as a person does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QDialog, QFileDialog, QMessageBox, QPushButton
from windows import give_policy, give_regions, project_of, scene_of, settle, show, status

import napari_agglo as agglo
from napari_agglo.evaluate import minimum
from napari_agglo.session import export_kinds
from napari_agglo.widgets import DataWidget, HierarchyWidget
from napari_agglo.widgets.proofread import ProofreadWidget, create_session, open_session


@pytest.fixture
def step(viewer, project):
    widget = HierarchyWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Hierarchy")
    return widget


@pytest.fixture
def built(step, shown):
    """Return the step with a hierarchy on the screen, and its curve."""
    shown.set_curve(agglo.vi_curve(shown.tree, shown.gold))
    return step


def press(widget):
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def answer(project, words):
    """Answer the question that is open; return its text."""
    (box,) = [one for one in QApplication.topLevelWidgets() if isinstance(one, QMessageBox)]
    text = box.text()
    press(next(button for button in box.buttons() if button.text() == words))
    settle(project)
    return text


def key(viewer, letter, modifier=Qt.KeyboardModifier.NoModifier):
    """Press a key while the canvas has the focus."""
    canvas = next(
        one
        for one in QApplication.allWidgets()
        if type(one).__name__ == "CanvasBackendDesktop" and one.isVisible()
    )
    QTest.keyClick(canvas, letter, modifier)


def test_regions_of_removed_data_are_no_data(built, project):
    project.set_dataset(None, "No image is open.")
    project.drop_hierarchy()
    assert project.regions is not None, "test invalid"
    assert status(DataWidget, project) == status(HierarchyWidget, project) == "empty"


def test_from_bare_cues_to_a_hierarchy_with_one_click(step, project, dataset):
    assert not step.run.button.isEnabled()
    project.set_dataset(replace(dataset, superpixels=None))
    assert step.run.button.isEnabled()
    press(step.run.button)
    assert status(HierarchyWidget, project) == "running"
    settle(project)
    assert status(HierarchyWidget, project) == "done"
    assert status(DataWidget, project) == "done"
    assert project.curve is not None
    assert scene_of(step.viewer).segmentation is not None
    at = minimum(project.curve)
    assert project.n_segments == at["segments"], "mean begins where the VI is least"
    assert step.scale.segments.value() == at["segments"]


def test_without_gold_it_begins_at_the_knee(step, project, dataset):
    project.set_dataset(replace(dataset, gold=None))
    press(step.run.button)
    settle(project)
    assert project.curve is None
    assert 1 < project.n_segments < project.graph.n_regions / 2


def test_a_policy_of_other_data_is_asked_about_and_the_cues_adapted(step, project, dataset):
    graph = dataset.graph()
    policy = agglo.train(graph, dataset.gold, epochs=0, preset="minimal")
    name = next(iter(dataset.cues))
    inverted = {**dataset.cues, name: 1 - np.asarray(dataset.cues[name])}
    project.set_dataset(replace(dataset, cues=inverted))
    give_policy(project, policy)
    press(step.run.button)
    settle(project)
    assert project.built is None, "nothing is merged before the answer"
    text = answer(project, "Adapt the cues")
    assert "inverted" in text
    assert "--adapt" not in text, "options of the command line are not for a window"
    again = np.asarray(project.built.regions.dataset.cues[name])
    np.testing.assert_allclose(again, dataset.cues[name], atol=0.5 / 255 + 1e-6)
    assert project.dataset is project.built.regions.dataset
    assert status(HierarchyWidget, project) == "done"


def test_a_policy_of_other_data_is_used_if_one_insists(step, project, dataset):
    graph = dataset.graph()
    give_policy(project, agglo.train(graph, dataset.gold, epochs=0, preset="minimal"))
    name = next(iter(dataset.cues))
    project.set_dataset(replace(dataset, cues={**dataset.cues, name: dataset.cues[name] / 3}))
    press(step.run.button)
    settle(project)
    answer(project, "Build anyway")
    assert project.built is not None
    assert project.built.training, "its other cues are those of the training"


def test_a_learned_policy_begins_at_one_half(step, project, dataset):
    graph = dataset.graph()
    project.set_dataset(dataset)
    give_regions(project, dataset, graph)
    policy = agglo.train(graph, dataset.gold, epochs=0, preset="minimal")
    give_policy(project, policy)
    press(step.run.button)
    settle(project)
    assert project.threshold == 0.5
    assert project.built.training, "it was trained on these"
    assert project.curve.attrs["training"]
    assert project.graph is graph, "the graph was built a second time"


def test_a_cue_of_any_name_will_do(step, project, dataset):
    name, cue = next(iter(dataset.cues.items()))
    ranges = {"membrane": dataset.ranges[name]} if name in dataset.ranges else {}
    project.set_dataset(replace(dataset, cues={"membrane": cue}, ranges=ranges))
    press(step.run.button)
    settle(project)
    assert status(HierarchyWidget, project) == "done", "it is stale at once"
    assert project.policy == agglo.MeanPolicy("membrane")


def test_gold_of_another_shape_is_told_and_the_hierarchy_shown(step, project, dataset, notices):
    project.set_dataset(replace(dataset, gold=dataset.gold[:-3]))
    press(step.run.button)
    settle(project)
    assert project.has_hierarchy
    assert project.curve is None
    assert project.gold is None
    assert any("gold" in message for message in notices)


@pytest.mark.slow
def test_cancel_leaves_everything_as_it_was(built, project, dataset):
    before = project.tree, project.threshold
    project.set_dataset(replace(dataset, superpixels=None, options={"min_size": 3}))
    press(built.run.button)
    assert built.run.button.text() == "Cancel"
    press(built.run.button)
    settle(project)
    assert (project.tree, project.threshold) == before
    assert built.run.button.text() == "Build again"
    assert status(HierarchyWidget, project) != "running"


def test_the_threshold_by_slider_keys_words_and_marks(built, project, qtbot, viewer):
    """Every way to set the threshold, in one window."""
    # Dragging the slider scrubs.
    bar = built.scale.slider.slider
    heights = project.tree.heights
    last = len(heights)
    # Merges of equal height cannot be told apart: only the state after the last can be seen.
    states = [0, *(np.flatnonzero(np.diff(heights)) + 1), last]
    seen = []
    project.threshold_changed.connect(seen.append)
    bar.setSliderDown(True)
    for value in (0, last // 2, last - 5):
        bar.setSliderPosition(project.ticks.place(value))
        reachable = max(state for state in states if state <= value)
        assert project.tree.n_merges_at(project.threshold) == reachable
        assert built.scale.segments.value() == project.n_segments
        assert built.scale.threshold.value() == pytest.approx(project.threshold, abs=1e-4)
    bar.setSliderDown(False)
    assert len(seen) == 3

    # Arrow keys on the slider always move.
    built.scale.slider.slider.setFocus()
    project.threshold = 0.0
    counts = []
    for _ in range(5):
        QTest.keyClick(built.scale.slider.slider, Qt.Key.Key_Right)
        counts.append(project.n_segments)
    assert counts == sorted(set(counts), reverse=True)
    QTest.keyClick(built.scale.slider.slider, Qt.Key.Key_Left)
    assert project.n_segments > counts[-1]

    # Typing a threshold or a number of segments.
    project.threshold = 0.3
    box = built.scale.threshold
    box.setFocus()
    box.selectAll()
    QTest.keyClicks(box, "0.25")
    assert project.threshold == 0.3, "test invalid: not before it is finished"
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert project.threshold == 0.25
    count = built.scale.segments
    count.selectAll()
    QTest.keyClicks(count, "40")
    QTest.keyClick(count, Qt.Key.Key_Return)
    assert project.n_segments == 40
    place = project.ticks.place(project.tree.n_superpixels - 40)
    assert built.scale.slider.slider.value() == place

    # A click on a mark goes there.
    marks = built.scale.slider.marks
    half, least = marks._marks
    qtbot.waitUntil(lambda: marks.height() >= marks.sizeHint().height())  # for the second row
    QTest.mouseClick(marks, Qt.MouseButton.LeftButton, pos=marks.spot(half).center())
    assert project.threshold == 0.5
    QTest.mouseClick(marks, Qt.MouseButton.LeftButton, pos=QPoint(marks.place(least), 2))
    assert project.n_segments == minimum(project.curve)["segments"]
    assert not marks.spot(half).intersects(marks.spot(least))
    for mark in (half, least):
        assert marks.rect().contains(marks.spot(mark)), "cut off"

    # Keys on the canvas.
    project.threshold = 0.3
    n = project.n_segments
    key(viewer, Qt.Key.Key_D)
    coarse = project.n_segments
    assert coarse < n
    key(viewer, Qt.Key.Key_A)
    assert project.n_segments > coarse
    before = project.n_segments
    key(viewer, Qt.Key.Key_D, Qt.KeyboardModifier.ShiftModifier)
    assert before - project.n_segments in (1, 2), "one merge, or a plateau"

    # Every control has a tooltip.
    from qtpy.QtWidgets import QAbstractButton, QAbstractSlider, QAbstractSpinBox, QComboBox

    for kind in (QAbstractButton, QAbstractSpinBox, QComboBox, QAbstractSlider):
        for control in built.findChildren(kind):
            here = control
            while here is not built and not here.toolTip():
                here = here.parentWidget()
            assert here.toolTip(), control.objectName()


@pytest.mark.slow
def test_keys_without_a_hierarchy_do_nothing(step, project, viewer):
    key(viewer, Qt.Key.Key_D)
    assert project.threshold == 0.5


@pytest.mark.slow
def test_play_runs_to_the_end_and_stops(built, project, qtbot):
    last = len(project.tree.heights)
    project.threshold = float(project.tree.heights[-4])
    built.scale.player.speed.setCurrentText("fast")
    press(built.scale.player.button)
    assert built.scale.player.button.isChecked()
    qtbot.waitUntil(lambda: not built.scale.player.button.isChecked(), timeout=5000)
    assert project.tree.n_merges_at(project.threshold) == last
    press(built.scale.player.button)  # from the beginning again
    qtbot.waitUntil(lambda: project.tree.n_merges_at(project.threshold) < last, timeout=5000)
    press(built.scale.player.button)
    assert not built.scale.player.playing


@pytest.mark.slow
def test_playing_stops_when_the_step_is_closed(built):
    press(built.scale.player.button)
    built.setVisible(False)
    assert not built.scale.player.playing


@pytest.mark.slow
def test_switches_change_the_layer(built, viewer):
    layer = scene_of(viewer).segmentation
    press_box(built.view.contours)
    assert layer.contour == 2
    press_box(built.view.contours)
    assert layer.contour == 0
    built.view.opacity.setValue(30)
    assert layer.opacity == pytest.approx(0.3)
    press_box(built.view.superpixels)
    assert scene_of(viewer).layer("Superpixel outlines").visible
    assert not built.view.solid.isVisible(), "there is no 3-D of a plane"


def press_box(box):
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))


def test_only_the_selected(built, project, viewer):
    name = int(project.table()[1])
    project.select(name)
    press_box(built.view.isolate)
    shown_now = np.unique(np.asarray(scene_of(viewer).segmentation.data))
    assert shown_now.tolist() == sorted({0, name})
    press_box(built.view.isolate)
    assert len(np.unique(np.asarray(scene_of(viewer).segmentation.data))) > 2


@pytest.mark.slow
def test_3d(viewer, project, dataset3d, step):
    show(project, dataset3d)
    assert step.view.solid.isVisible()
    press_box(step.view.solid)
    assert viewer.dims.ndisplay == 3
    project.threshold = 0.2
    QTest.qWait(50)
    viewer.dims.ndisplay = 2  # by napari's own button
    assert not step.view.solid.isChecked()


@pytest.mark.slow
def test_a_deleted_layer_comes_back_when_it_is_needed(built, project, viewer):
    viewer.layers.remove(scene_of(viewer).segmentation)
    project.threshold = 0.2
    built.scale.slider.slider.setValue(10)
    assert scene_of(viewer).segmentation is not None


@pytest.mark.slow
def test_a_reopened_dock_shows_what_there_is(built, project, viewer):
    project.threshold = 0.2
    again = HierarchyWidget(viewer)
    viewer.window.add_dock_widget(again, name="again")
    assert again.scale.threshold.value() == pytest.approx(0.2)
    assert again.scale.isVisibleTo(again)
    assert len(again.scale.slider.marks._marks) == 2
    again.scale.threshold.setValue(0.3)
    assert built.scale.threshold.value() == pytest.approx(0.3)


def test_save_labels_and_merges(built, project, tmp_path, monkeypatch):
    def choose(path):
        def answer(parent, title, name, patterns):
            proposed.append(name)
            return str(path), ""

        monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)

    proposed = []
    choose(tmp_path / "a.tif")
    press(built.export.labels)
    assert proposed == [f"{project.dataset.name}_merged.tif"], "not that of an edited session"
    settle(project)
    written = agglo.open_volume(tmp_path / "a.tif")
    assert (np.asarray(written) == project.tree.segment(project.threshold)).all()
    assert "a.tif" in built.export.saved.text()
    assert str(tmp_path) in built.export.saved.toolTip()
    assert built.export.saved.isVisibleTo(built)
    choose(tmp_path / "a.csv")
    press(built.export.tree)
    settle(project)
    assert "a.csv" in built.export.saved.text()
    assert str(tmp_path) in built.export.saved.toolTip()
    assert len((tmp_path / "a.csv").read_text().splitlines()) == project.tree.n_merges + 1
    choose("")
    press(built.export.labels)  # the dialog was cancelled
    assert project.jobs.running() == []


def test_saving_what_a_session_shows(built, project, tmp_path):
    session = agglo.Session.create(tmp_path / "a.agglo", project.graph)
    session.threshold = project.threshold
    project.set_session(session, project.built)
    a = int(session.segments.ids()[0])
    project.has_edited(session.merge(a, int(session.segments.neighbours(a)[0])))
    built.export.write_labels(str(tmp_path / "a.tif"))
    assert project.worker.busy, "the slider would wait for the file"
    built.scale.threshold.setValue(0.2)
    settle(project)
    assert not project.worker.busy
    assert session.threshold == 0.2
    session.threshold = 0.3
    assert (np.asarray(agglo.open_volume(tmp_path / "a.tif")) == session.labels()).all()


def test_every_export_kind_is_in_the_menu(built, project, tmp_path, monkeypatch):
    assert not built.export.more.isEnabled(), "there is no session"
    assert "step 5" in built.export.more.text(), "a grey button says why"
    step = ProofreadWidget(built.viewer)
    assert not step.export.isVisibleTo(step)
    session = agglo.Session.create(tmp_path / "a.agglo", project.graph)
    session.marks.review(int(session.segments.ids()[0]))
    project.set_session(session, project.built)
    assert built.export.more.isEnabled()
    assert step.export.isVisibleTo(step), "the way out is in the step of the edits"
    assert step.export.more.isEnabled()
    built.export.list_kinds()
    kinds = {f"export {kind.name}": kind for kind in export_kinds() if not kind.in_3d}
    actions = {action.objectName(): action for action in built.export.menu.actions()}
    assert actions.keys() == kinds.keys()
    filters, proposed = [], []

    def choose(parent, title, name, patterns):
        filters.append(patterns)
        proposed.append(name)
        return str(tmp_path / name), ""

    monkeypatch.setattr("qtpy.QtWidgets.QFileDialog.getSaveFileName", choose)
    for name, kind in kinds.items():
        actions[name].trigger()
        for dialog in built.findChildren(QDialog, "agglo form"):
            press(dialog.findChild(QPushButton, "Export"))
        settle(project)
        suffix = kind.suffixes[0] if kind.suffixes else ""
        stem = project.built.regions.dataset.name
        assert (tmp_path / f"{stem}_{kind.name}{suffix}").exists()
        assert all(f"*{suffix}" in filters[-1] for suffix in kind.suffixes)
    press(built.export.labels)
    settle(project)
    assert proposed[-1] == f"{project.built.regions.dataset.name}_labels.tif"


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_told(built, project, tmp_path, notices):
    built.export.write_labels(str(tmp_path / "none" / "a.tif"))
    settle(project)
    assert len(notices) == 1


def test_an_open_session_is_closed_only_when_asked(built, project, tmp_path):
    session = agglo.Session.create(tmp_path / "a.agglo", project.graph)
    project.set_session(session, project.built)

    press(built.run.button)
    answer(project, "Cancel")
    assert project.jobs.running() == []
    assert project.session is session
    press(built.run.button)
    answer(project, "Close and build")
    assert project.session is None
    assert project.has_hierarchy


def test_a_repair_is_seen_and_can_be_stopped(built, project):
    assert not built.repair.isVisible()
    go_on = []

    def work(progress):
        import time

        while not go_on:
            progress(agglo.Progress("repair", 1, 2))
            time.sleep(0.005)

    project.jobs.start("look", "Repairing", work, lambda _: None)
    assert built.repair.isVisible()
    press(built.repair.cancel)
    settle(project)
    assert not built.repair.isVisible()


@pytest.mark.slow
def test_two_viewers_keep_apart(built, project, make_napari_viewer, dataset):
    other = make_napari_viewer(show=True)
    widget = HierarchyWidget(other)
    other.window.add_dock_widget(widget)
    assert not widget.scale.isVisible()
    show(project_of(other), dataset, threshold=0.1)
    built.scale.threshold.setValue(0.4)
    assert widget.scale.threshold.value() == pytest.approx(0.1)


def test_segments_by_an_adaptive_cut_begin_at_one_half_and_can_be_proofread(
    step, viewer, project, dataset, tmp_path
):
    project.set_dataset(replace(dataset, superpixels=None))
    step.options["method"].value = "adaptive"
    press(step.run.button)
    settle(project)
    assert project.built.method == "adaptive"
    assert project.threshold == 0.5
    greedy = agglo.agglomerate(project.graph, project.policy)
    expected = agglo.adaptive_cut(greedy).lut(0.5)
    np.testing.assert_array_equal(project.table(), expected)
    create_session(viewer, tmp_path / "a.agglo")
    settle(project)
    pairs = np.unique(np.stack([project.table(), expected]), axis=1)
    assert len(pairs[0]) == len(np.unique(expected)), "the same segments"
    assert len(np.unique(project.table())) == len(np.unique(expected))


def test_the_slider_of_own_weights_reaches_their_largest(viewer, project, tmp_path):
    labels = np.array([[5, 5, 6, 6], [8, 8, 6, 6]])
    weights = {(5, 6): 0.25, (5, 8): 40.0, (6, 8): 60.0}
    graph = agglo.RegionGraph.from_edges(list(weights), list(weights.values()), superpixels=labels)
    agglo.Session.create(tmp_path / "own.agglo", graph).close()
    open_session(viewer, tmp_path / "own.agglo")
    settle(project)
    widget = HierarchyWidget(viewer)
    widget.show()
    slider = widget.scale.slider.slider
    for place, n in ((slider.minimum(), 3), (slider.maximum(), 1)):
        slider.setValue(place)
        settle(project)
        assert project.n_segments == n
    assert project.threshold >= 50
    widget.close()
