"""The table of segments, the history, the scores, the marks, 3-D."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qtpy.QtCore import QItemSelectionModel, Qt
from qtpy.QtTest import QTest
from windows import camera, draw, project_of, scene_of, settle, show

import napari_agglo as agglo
from napari_agglo.evaluate import breakdown
from napari_agglo.volumes import contingency
from napari_agglo.widgets.proofread._gestures import pick
from napari_agglo.widgets.proofread._segment_table import (
    ERROR,
    ID,
    NAME,
    REVIEWED,
    SIZE,
    Columns,
    SegmentModel,
    columns_of,
)

LEFT = Qt.MouseButton.LeftButton
DOWN, UP = Qt.SortOrder.DescendingOrder, Qt.SortOrder.AscendingOrder


def model_of(columns, marks=None):
    made = SegmentModel(lambda *_: None, lambda *_: None)
    made.show(columns, marks or {})
    return made


def texts(model, column):
    return [model.data(model.index(row, column)) for row in range(model.rowCount())]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(0, 2**32))
def test_the_table_sorts_and_filters_as_python_does(sizes, seed):
    ids = np.unique(np.random.default_rng(seed).integers(1, 500, len(sizes)))
    n = len(ids)
    columns = Columns(np.arange(1, n + 1), ids.astype(np.uint64), np.array(sizes[:n]))
    marks = {int(one): (f"n{one % 7}", bool(one % 2)) for one in ids[::3]}
    model = model_of(columns, marks)
    model.sort(SIZE, DOWN)
    assert [int(x.replace(",", "")) for x in texts(model, SIZE)] == sorted(sizes[:n], reverse=True)
    model.sort(ID, UP)
    assert [int(x) for x in texts(model, ID)] == sorted(ids.tolist())
    model.sort(NAME, UP)
    names = texts(model, NAME)
    assert names == sorted(names)
    model.set_filter("3")
    shown = {int(x) for x in texts(model, ID)}
    assert shown == {int(k) for k in ids if "3" in str(k) or "3" in marks.get(int(k), ("",))[0]}
    for name in columns.names.tolist():
        row = model.row_of(name)
        assert (row >= 0) == (int(ids[name - 1]) in shown)
        if row >= 0:
            assert model.name_at(row) == name


def test_the_columns_are_those_of_the_labels(small_sample):
    _, cues, gold = small_sample
    graph = agglo.region_graph(agglo.oversegment(cues["boundary"]), cues)
    tree = agglo.agglomerate(graph, "mean")
    found = columns_of(graph, tree.lut(0.3), contingency(graph.superpixels, gold))
    assert found.unit == "pixels"
    labels = tree.segment(0.3)
    ids, counts = np.unique(labels[labels > 0], return_counts=True)
    np.testing.assert_array_equal(found.ids, ids)
    np.testing.assert_array_equal(found.sizes, counts)
    expected = breakdown(labels, gold).segments["contribution"]
    for one, error in zip(found.ids.tolist(), found.errors, strict=True):
        assert error == pytest.approx(expected.get(one, 0.0), abs=1e-12)


def test_a_hundred_thousand_rows_cost_no_more_than_those_that_are_seen():
    n = 100_000
    rng = np.random.default_rng(0)
    model = model_of(Columns(np.arange(1, n + 1), np.arange(1, n + 1, dtype=np.uint64),
                             rng.integers(1, 10**6, n), rng.random(n)))  # fmt: skip
    asked = 0
    read = model.data

    def counting(*arguments):
        nonlocal asked
        asked += 1
        return read(*arguments)

    model.data = counting
    for column in (ID, SIZE, NAME, REVIEWED, ERROR):
        model.sort(column, DOWN)
    model.set_filter("99999")
    assert model.rowCount() == 1
    assert asked == 0


def open_tab(hands, title):
    tabs = hands.step.tabs
    tabs.setCurrentIndex([tabs.tabText(k) for k in range(tabs.count())].index(title))
    hands.settle()
    QTest.qWait(250)
    hands.settle()


def test_rows_activate_and_take_names_and_reviews(hands):
    """Rows of the table, in one window."""
    # A row activates and flies to its segment.
    open_tab(hands, "Segments")
    segments = hands.step.segments
    model, view = segments.model, segments.view
    assert model.rowCount() == hands.project.n_segments
    for _ in range(200):  # errors come later: all of the gold is read
        if model.columnCount() == 5:
            break
        QTest.qWait(20)
    errors = [float(model.data(model.index(row, ERROR))) for row in range(model.rowCount())]
    false_merge, _ = agglo.split_vi(hands.project.session.labels(), hands.project.gold)
    assert sum(errors) == pytest.approx(false_merge, abs=1e-4 * len(errors))
    name = model.name_at(3)
    where = view.visualRect(model.index(3, ID)).center()
    QTest.mouseClick(view.viewport(), LEFT, pos=where)
    hands.settle()
    assert hands.project.active == name
    centre = camera(hands.viewer).center[-2:]
    graph = hands.project.graph
    boxes = graph.boxes[hands.superpixels_of(name)]
    low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
    assert (np.array(centre) >= low * hands.project.placement.scale - 1).all()
    assert (np.array(centre) <= high * hands.project.placement.scale + 1).all()

    # A name and a review are entered in the table.
    open_tab(hands, "Segments")
    segments = hands.step.segments
    model = segments.model
    name = model.name_at(2)
    model.setData(model.index(2, NAME), "axon")
    model.setData(model.index(2, REVIEWED), Qt.CheckState.Checked.value,
                  Qt.ItemDataRole.CheckStateRole)  # fmt: skip
    hands.settle()
    QTest.qWait(250)
    hands.settle()
    mark = hands.project.session.marks.of(hands.project.id_of(name))
    assert (mark.name, mark.reviewed) == ("axon", True)
    assert model.data(model.index(model.row_of(name), NAME)) == "axon"
    segments.search.setText("axo")
    assert model.rowCount() == 1
    assert "1 of" in hands.step.scores.text.text()


@pytest.mark.slow
def test_several_rows_are_merged_at_once(hands):
    open_tab(hands, "Segments")
    segments = hands.step.segments
    model, view = segments.model, segments.view
    first = hands.largest()[0]
    ids = hands.project.session.segments.neighbours(hands.project.id_of(first))
    names = [first, *[int(k) for k in np.searchsorted(hands.project.graph.ids, ids)][:3]]
    hands.project.select(first)
    flags = QItemSelectionModel.SelectionFlag
    for name in names[1:]:
        view.selectionModel().select(model.index(model.row_of(name), 0), flags.Select | flags.Rows)
    assert set(hands.project.selected) == set(names[1:])
    assert hands.project.active == first
    rows = model.rowCount()
    QTest.mouseClick(segments.merge, LEFT)
    hands.settle()
    QTest.qWait(250)
    hands.settle()
    assert model.rowCount() == rows - 3
    assert len(hands.project.session.history) == 1


def test_a_click_in_the_history_goes_there_and_back(hands):
    tables = [hands.project.table().copy()]
    first = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(first)[0]))
    for _ in range(4):
        hands.proofreader.commands.merge([hands.neighbour(hands.project.active)])
        hands.settle()
        tables.append(hands.project.table().copy())
    open_tab(hands, "History")
    listed = hands.step.history.list
    assert listed.count() == 5
    for row in (1, 4, 0, 3):
        spot = listed.visualItemRect(listed.item(row)).center()
        QTest.mouseClick(listed.viewport(), LEFT, pos=spot)
        hands.settle()
        np.testing.assert_array_equal(hands.project.table(), tables[row])
        assert listed.currentRow() == row
        assert listed.count() == 5


@pytest.mark.slow
def test_live_errors_follow_the_edits(hands):
    first = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(first)[0]))
    for _ in range(3):
        hands.proofreader.commands.merge([hands.neighbour(hands.project.active)])
    hands.settle()
    QTest.qWait(150)
    hands.settle()
    expected = agglo.split_vi(hands.project.session.labels(), hands.project.gold)
    shown = hands.step.scores.text.text()
    assert "3 edits" in shown
    assert f"false merge {expected[0]:.4f}" in shown
    assert f"false split {expected[1]:.4f}" in shown


def test_marks_of_the_active_segment(hands):
    details = hands.step.details
    hands.click(hands.pixel_of(hands.superpixels_of(hands.largest()[0])[0]))
    segment = hands.project.id_of(hands.project.active)
    QTest.keyClicks(details.name, "soma")
    QTest.keyClick(details.name, Qt.Key.Key_Return)
    QTest.keyClicks(details.comment, "looks right")
    QTest.keyClick(details.comment, Qt.Key.Key_Return)
    QTest.mouseClick(details.reviewed, LEFT, pos=details.reviewed.rect().center() * 0.2)
    hands.settle()
    mark = hands.project.session.marks.of(segment)
    assert (mark.name, mark.comment) == ("soma", "looks right")
    assert len(hands.project.session.history) == 2 + mark.reviewed
    hands.click(hands.pixel_of(hands.superpixels_of(hands.largest(2)[1])[0]))
    assert details.name.text() == ""


@pytest.fixture
def deep(viewer, project, step, dataset3d):
    show(project, dataset3d)
    QTest.mouseClick(step.bar.run.button, LEFT)
    settle(project)
    assert project.session is not None
    draw()
    return project


@pytest.mark.slow
def test_in_3d_the_first_segment_along_the_line_of_sight_is_meant(viewer, deep, step):
    scene = scene_of(viewer)
    viewer.dims.ndisplay = 3
    draw()
    camera(viewer).angles = (0, 0, 90)
    image = deep.graph.superpixels.image
    direction = camera(viewer).calculate_nd_view_direction(3, [0, 1, 2])
    axis = int(np.argmax(np.abs(direction)))
    assert abs(direction[axis]) > 0.99, "test invalid"
    middle = [n // 2 for n in image.shape]
    position = deep.placement.to_world(middle)
    line = image[tuple(slice(None) if k == axis else middle[k] for k in range(3))]
    seen = line if direction[axis] > 0 else line[::-1]
    hit = pick(scene, position)
    assert hit.superpixel == int(seen[seen > 0][0])
    # With all but the last one on that line hidden, that is the one.
    behind = int(deep.table()[seen[seen > 0][-1]])
    assert behind != deep.table()[hit.superpixel], "test invalid"
    deep.select(behind)
    scene.isolate(True)
    assert deep.table()[pick(scene, position).superpixel] == behind


@pytest.mark.slow
def test_the_selected_segments_alone_in_3d(viewer, deep, step):
    name = int(deep.table()[deep.graph.superpixels.image[12, 30, 30]])
    deep.select(name)
    assert step.in_3d.isVisible()
    step.in_3d.click()
    draw()
    assert viewer.dims.ndisplay == 3
    assert step.isolate.isChecked()
    shown = np.asarray(scene_of(viewer).segmentation.data)
    assert set(np.unique(shown)) == {0, name}
    step.in_3d.click()
    step.isolate.click()
    assert viewer.dims.ndisplay == 2
    assert project_of(viewer) is deep
    assert len(np.unique(np.asarray(scene_of(viewer).segmentation.data))) > 2
    viewer.dims.ndisplay = 3  # by napari's own button
    scene_of(viewer).isolate(True)  # by another step
    assert step.in_3d.isChecked()
    assert step.isolate.isChecked()


def test_the_sizes_of_a_volume_are_in_voxels():
    labels = np.array([[[1, 1], [2, 2]], [[1, 1], [2, 2]]])
    graph = agglo.region_graph(labels, np.zeros(labels.shape))
    model = model_of(columns_of(graph, np.array([0, 1, 2], np.uint32), None))
    assert model.headerData(SIZE, Qt.Orientation.Horizontal) == "voxels"
