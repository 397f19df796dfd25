"""The Evaluate step in a real window, driven as a person does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from napari.utils.theme import get_theme
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QDialog, QFileDialog, QPushButton
from widgets.plots.mouse import Mouse
from windows import build, camera, form_in, give_policy, project_of, scene_of, settle, show, status

import napari_agglo as agglo
from napari_agglo.evaluate import breakdown, metrics, minimum, state_at, vi_curve
from napari_agglo.widgets import EvaluateWidget


@pytest.fixture
def step(viewer, project):
    widget = EvaluateWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Evaluate")
    return widget


@pytest.fixture
def compared(step, shown):
    """Return the step with everything compared."""
    follow(step)
    assert step.comparison.numbers is not None
    return step


def follow(step):
    """Wait until numbers and dots have followed."""
    QTest.qWait(20)
    settle(step.project)
    while step.comparison.waiting:
        QTest.qWait(20)
        settle(step.project)


def tab(step, k):
    step.tabs.setCurrentIndex(k)
    QTest.qWait(30)


def written(step):
    """Return the table of numbers as it is read."""
    table = step.numbers
    return {table.item(k, 0).text(): table.item(k, 1).text() for k in range(table.rowCount())}


def test_step_says_what_is_missing(step, project, dataset):
    assert "gold labels" in step.hint.text()
    assert not step.tabs.isVisible()
    show(project, replace(dataset, gold=None))
    assert "gold labels" in step.hint.text()
    assert not step.run.button.isEnabled()


def test_numbers_plots_and_the_least_follow_the_threshold(compared, project):
    """A comparison with gold in one window."""
    # It compares by itself when it is looked at.
    assert project.curve is not None
    assert status(EvaluateWidget, project) == "done"
    assert compared.tabs.isVisible()
    assert not compared.run.isVisible()

    # Numbers and dots are those of what is seen.
    for at in (0.3, 0.15):
        project.threshold = at
        follow(compared)
        labels = project.tree.segment(at)
        expected = metrics(labels, project.gold)
        assert written(compared)["VI (bits)"] == f"{expected['vi']:.4f}"
        assert written(compared)["Merges needed"] == f"{expected['merges_needed']:,.0f}"
        assert np.allclose(compared.comparison.numbers, expected)
        worst = breakdown(labels, project.gold).worst(5)
        assert compared.comparison.breakdown.worst(5)["id"].tolist() == worst["id"].tolist()
        assert f"VI {expected['vi']:.3f}" in compared.summary.text()

    # Go to the least.
    project.threshold = 0.05
    QTest.mouseClick(compared.least, Qt.MouseButton.LeftButton)
    assert project.n_segments == minimum(project.curve)["segments"]

    # A drag in a plot sets the threshold and the point follows.
    split = compared.curves.split
    curve = project.curve
    row = int(curve["vi"].argmin())
    Mouse(split).click(curve["false_merge"][row], curve["false_split"][row])
    assert project.n_segments == pytest.approx(curve["segments"][row], abs=3)
    tab(compared, 1)
    line = compared.curves.by_threshold
    Mouse(line).drag((20, 0.5), (60, 0.5))
    assert project.tree.n_merges_at(project.threshold) == pytest.approx(60, abs=4)
    project.threshold = 0.2
    x, y = split._curves["mean"].point.getData()
    state = curve[curve["threshold"] <= 0.2].iloc[-1]
    right, top = split.canvas.box.viewRange()[0][1], split.canvas.box.viewRange()[1][1]
    assert (x[0], y[0]) == (min(state["false_merge"], right), min(state["false_split"], top))


@pytest.mark.slow
def test_not_while_nobody_looks(step, project, dataset):
    step.parentWidget().hide()
    show(project, dataset)
    QTest.qWait(200)
    assert project.jobs.running() == []
    assert step.comparison.counts is None
    step.parentWidget().show()
    follow(step)
    assert step.comparison.numbers is not None


@pytest.mark.slow
def test_a_cancelled_comparison_is_not_begun_again_by_itself(step, project, dataset):
    show(project, dataset)
    project.jobs.cancel("evaluate")
    settle(project)
    project.threshold = 0.2
    assert project.jobs.running() == []
    assert step.run.isVisible()
    QTest.mouseClick(step.run.button, Qt.MouseButton.LeftButton)
    follow(step)
    assert step.comparison.numbers is not None


@pytest.mark.slow
def test_a_burst_of_thresholds_ends_with_the_last(compared, project):
    for at in np.linspace(0.1, 0.4, 20):
        project.threshold = float(at)
        QTest.qWait(5)
    follow(compared)
    expected = metrics(project.tree.segment(0.4), project.gold)
    assert compared.comparison.numbers["vi"] == pytest.approx(expected["vi"])


def test_clicks_on_dots_fly_outline_and_select(compared, project, viewer):
    """Dots of both kinds of error, in one window."""
    # A click on a dot flies there and outlines.
    tab(compared, 2)
    dots = compared.breakdown.merges
    x, y = dots._points()
    worst = int(dots._table.index[0])
    camera(viewer).center = (0.0, 0.0, 0.0)
    Mouse(dots).click(x[0], y[0])
    assert project.id_of(project.active) == worst
    outline = scene_of(viewer).layer("Selected")
    assert outline is not None
    assert outline.visible
    at = np.array(camera(viewer).center[-2:]) / project.placement.scale
    labels = project.tree.segment(project.threshold)
    assert labels[tuple(at.round().astype(int))] == worst
    wrong = compared.comparison.breakdown.merged(worst).iloc[1]["id"]
    assert project.gold[tuple(at.round().astype(int))] == wrong

    # A false split selects all its pieces.
    project.threshold = 0.1
    follow(compared)
    tab(compared, 2)
    dots = compared.breakdown.splits
    x, y = dots._points()
    worst = int(dots._table.index[0])
    Mouse(dots).click(x[0], y[0])
    pieces = compared.comparison.breakdown.pieces(worst)
    assert project.id_of(project.active) == pieces["id"][0]
    codes = np.asarray(scene_of(viewer).layer("Selected").data)
    assert (codes == 1).any()
    assert (codes == 3).any()


@pytest.mark.slow
def test_a_dot_of_what_is_gone_is_said(compared, project, notices):
    found = compared.comparison.breakdown
    project.threshold = 1.0
    gone = int(found.segments.index[-1])
    if (project.tree.segment(1.0) == gone).any():
        gone = int(found.segments.index[-2])
    compared.breakdown.picked.emit("false merge", gone)
    assert any("no longer" in message for message in notices)
    compared.breakdown.picked.emit("false merge", 10**9)


def test_edits_move_the_point_off_the_curve(compared, project, tmp_path):
    session = agglo.Session.create(tmp_path / "a.agglo", project.graph, gold=project.gold)
    session.threshold = project.threshold
    project.set_session(session, project.built)
    follow(compared)
    a = int(session.segments.ids()[0])
    change = session.merge(a, int(session.segments.neighbours(a)[0]))
    project.has_edited(change)
    follow(compared)
    errors = session.errors.now()
    assert compared.curves.errors() == pytest.approx((errors.false_merge, errors.false_split))
    assert f"VI {errors.vi:.3f}" in compared.summary.text()
    state = project.curve[project.curve["threshold"] <= project.threshold].iloc[-1]
    assert errors.vi != pytest.approx(state["vi"]), "test invalid"


@pytest.fixture
def edited(compared, project, tmp_path):
    """Return the step with a session of two edits, one of them through a superpixel."""
    session = agglo.Session.create(tmp_path / "a.agglo", project.graph, gold=project.gold)
    session.threshold = project.threshold
    project.set_session(session, project.built)
    a = int(session.segments.ids()[0])
    session.merge(a, int(session.segments.neighbours(a)[0]))
    image = session.graph.superpixels.image
    largest = int(np.argmax(session.graph.sizes * (np.arange(len(session.graph.sizes)) > 0)))
    inside = np.argwhere(image == largest)
    ends = [[tuple(inside[k].tolist())] for k in (0, -1)]
    project.has_edited(session.cut(session.segments.at(ends[0][0]), points=ends, method="seeded"))
    follow(compared)
    return compared


def fill_in(step, **values):
    """Fill in the form that is open, and save."""
    dialog = step.window().findChild(QDialog, "agglo form")
    form = form_in(dialog)
    for name, value in values.items():
        form[name].value = value
    dialog.findChild(QPushButton, "Save").click()
    QTest.qWait(10)


def save(step, entry, monkeypatch, path, **values):
    """Choose an entry of the menu, and a place."""
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(path), ""))
    (action,) = [one for one in step.export.menu().actions() if one.text() == entry]
    action.trigger()
    if entry == "Plots…":
        fill_in(step, folder=path, **values)
    if entry == "HTML report…":
        fill_in(step, path=path, **values)
    while True:  # one job after the other
        settle(step.project)
        QTest.qWait(10)
        if not (step.project.jobs.running() or step.project.worker.busy):
            return


def test_a_report_at_the_left_end_of_the_slider(compared, project, tmp_path, monkeypatch):
    project.threshold = project.ticks.threshold(0)
    follow(compared)
    assert "before any merge" in compared.summary.text()
    assert "before any merge" in compared.curves.split.key.text().replace("&nbsp;", " ")
    save(compared, "HTML report…", monkeypatch, tmp_path / "r.html", boundaries=False)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Before any merge" in page
    assert "e-324" not in page


@pytest.mark.slow
def test_saved_results_of_a_session_have_its_edits(edited, project, tmp_path, monkeypatch, notices):
    session = project.session
    assert "before" in edited.summary.text()
    expected = vi_curve(session.tree, project.gold)
    save(edited, "Curve as CSV…", monkeypatch, tmp_path / "c.csv")
    written = pd.read_csv(tmp_path / "c.csv")
    np.testing.assert_allclose(written["vi"], expected["vi"])
    assert len(written) != len(project.curve) or (written["vi"] != project.curve["vi"]).any()
    assert all(words in notices[-1] for words in ("2 edits", "a.agglo"))
    save(edited, "HTML report…", monkeypatch, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "mean, edited" in page
    assert all(words in page for words in ("2 edits", "a.agglo"))
    assert f"{session.errors.vi:.3f}" in page, "the numbers are of what is seen"
    assert "2 edits" in notices[-1]
    # Without edits it says so, too.
    session.undo()
    session.undo()
    project.has_edited(None)
    follow(edited)
    assert "edits" not in edited.summary.text()
    save(edited, "HTML report…", monkeypatch, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "without edits" in page
    assert "mean, edited" not in page
    assert "edits" not in notices[-1]


@pytest.mark.slow
def test_plots_of_a_session_have_a_curve_with_its_edits(edited, project, tmp_path, monkeypatch):
    curves = edited.curves
    assert list(curves.split._curves) == ["mean"]
    (tmp_path / "plots").mkdir()
    save(edited, "Plots…", monkeypatch, tmp_path / "plots", ending="svg")
    assert len(list((tmp_path / "plots").iterdir())) == 3
    assert list(curves.split._curves) == ["mean", "mean, edited"]
    assert "drawn" in edited.summary.text()
    # What is seen lies on it.
    at = state_at(vi_curve(project.session.tree, project.gold), project.threshold)
    assert curves.errors() == pytest.approx((at["false_merge"], at["false_split"]))
    project.threshold = 0.31  # a look elsewhere is no edit
    follow(edited)
    assert "mean, edited" in curves.split._curves
    project.has_edited(project.session.undo())
    follow(edited)
    assert list(curves.split._curves) == ["mean"]
    assert "before" in edited.summary.text()
    project.close_session()
    follow(edited)
    assert "edits" not in edited.summary.text()


def test_gold_chosen_afterwards_is_compared_with(step, project, dataset):
    show(project, replace(dataset, gold=None))
    assert status(EvaluateWidget, project) == "empty"
    project.set_dataset(replace(project.dataset, gold=dataset.gold))
    follow(step)
    assert project.curve is not None
    assert step.comparison.numbers is not None
    project.set_dataset(replace(project.dataset, gold=dataset.gold[:5]))  # of another shape
    assert project.gold is dataset.gold


def test_another_policy_is_drawn_beside_the_first(compared, project, dataset):
    graph = project.graph
    policy = agglo.train(graph, dataset.gold, epochs=0, preset="minimal")
    give_policy(project, policy)
    project.built = build(project)
    follow(compared)
    names = list(compared.curves.split._curves)
    assert len(names) == 2
    assert "mean" in names
    assert not compared.curves.split._curves["mean"].pickable
    show(project, replace(dataset))  # another graph: nothing to compare with
    follow(compared)
    assert len(compared.curves.split._curves) == 1


@pytest.mark.slow
def test_a_theme_is_followed(compared, viewer):
    viewer.theme = "light"
    light = get_theme("light").background.as_hex()
    assert compared.curves.split.colours.paper == light
    viewer.theme = "dark"
    dark = get_theme("dark").background.as_hex()
    assert compared.breakdown.merges.colours.paper == dark != light


def test_save_plots_numbers_and_report(compared, project, tmp_path, monkeypatch, notices):
    save(compared, "Plots…", monkeypatch, tmp_path)
    save(compared, "Plots…", monkeypatch, tmp_path, ending="svg")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".png"] * 3 + [".svg"] * 3
    for entry, name in (
        ("Numbers as CSV…", "n.csv"), ("Curve as CSV…", "c.csv"), ("HTML report…", "r.html")
    ):  # fmt: skip
        save(compared, entry, monkeypatch, tmp_path / name)
    assert "vi," in (tmp_path / "n.csv").read_text()
    assert len((tmp_path / "c.csv").read_text().splitlines()) == len(project.curve) + 1
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    compared.export.write_plots(str(tmp_path / "none"), "png")
    assert any("folder" in message for message in notices)


@pytest.mark.slow
def test_a_closed_and_reopened_dock(compared, project, viewer):
    again = EvaluateWidget(viewer)
    viewer.window.add_dock_widget(again, name="again")
    assert again.comparison is compared.comparison
    assert written(again) == written(compared)
    assert not again.curves.split.empty
    project.threshold = 0.2
    follow(again)
    assert written(again) == written(compared)


@pytest.mark.slow
def test_the_viewer_may_close_while_it_compares(make_napari_viewer, dataset):

    other = make_napari_viewer(show=True)
    widget = EvaluateWidget(other)
    other.window.add_dock_widget(widget)
    project = project_of(other)
    QTest.qWait(50)
    show(project, dataset)
    assert project.jobs["evaluate"] is not None, "test invalid"
    other.close()
    QTest.qWait(300)
    settle(project)
    assert project.jobs["numbers"] is None


@pytest.mark.slow
def test_3d(step, project, dataset3d, viewer):
    show(project, dataset3d)
    follow(step)
    tab(step, 2)
    dots = step.breakdown.splits
    worst = int(dots._table.index[0])
    step.breakdown.picked.emit("false split", worst)
    plane = round(viewer.dims.point[0] / project.placement.scale[0])
    assert (project.gold[plane] == worst).any()


class OnDisk:
    """Labels in a file: parts of them are counted, and nothing makes an array of the whole."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.voxels = array, array.shape, array.dtype, 0
        self.ndim = array.ndim

    def __getitem__(self, index):
        self.voxels += self.array[index].size
        return self.array[index]

    def __array__(self, *_, **__):
        raise AssertionError("the volume was read whole")


def test_the_report_of_a_volume_on_disk(compared, project, tmp_path, monkeypatch, notices):
    """It is written of gold on disk, and refused before a voxel is read if that is too large."""
    gold = OnDisk(np.asarray(project.gold))
    monkeypatch.setattr(type(project), "gold", property(lambda _: gold))
    with monkeypatch.context() as patch:
        patch.setattr("napari_agglo.volumes._volume.available_memory", lambda: 10)
        save(compared, "HTML report…", patch, tmp_path / "r.html")
    assert gold.voxels == 0
    assert not (tmp_path / "r.html").exists()
    assert any("vi_curve" in message for message in notices)
    save(compared, "HTML report…", monkeypatch, tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert gold.voxels == gold.array.size
