"""Clicks on the canvas in 3-D mean what is seen there: the colour of the pixel is the oracle."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from qtpy.QtCore import QEvent, QPoint, QPointF, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication
from scipy import ndimage
from windows import camera, draw

# So near to an edge in pixels, napari's picture, which is sampled about once a voxel of ten pixels,
# may show the next voxel.
NEAR = 14
VIEWS = [((0, 0, 90), 0), ((20, 40, -30), 0), ((150, -25, 70), 0), ((20, 40, -30), 60)]
pytestmark = pytest.mark.usefixtures("painted")  # clicks are compared with pixels
CASES = [*(pytest.param(*view, marks=pytest.mark.slow) for view in VIEWS[:-1]), VIEWS[-1]]


def look(hands, angles, perspective):
    """Look at the volume in 3-D from somewhere, with plain colours."""
    hands.viewer.dims.ndisplay = 3
    layer = hands.scene.segmentation
    layer.rendering, layer.opacity = "translucent", 1.0
    lens = camera(hands.viewer)
    lens.perspective = perspective
    lens.angles = angles
    draw()


def seen(hands, n=4, seed=0):
    """Return places on the canvas within something of one colour, with it; all colours in turn."""
    picture = hands.viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    edges = np.zeros(picture.shape[:2], bool)
    for axis in (0, 1):
        edges |= np.abs(np.roll(picture, 1, axis) - picture).max(axis=2) > 0
    depth = ndimage.distance_transform_edt(~edges)
    background = picture[2, 2]
    inside = (np.abs(picture - background).max(axis=2) > 3) & (depth > NEAR)
    inside[:70] = False  # the banner
    assert inside.any(), "test invalid"
    places = np.argwhere(inside)
    shuffled = np.random.default_rng(seed).permutation(len(places))
    turns = Counter()
    rounds = []
    for row, column in places[shuffled]:
        turns[tuple(picture[row, column])] += 1
        rounds.append(turns[tuple(picture[row, column])])
    chosen = shuffled[np.argsort(rounds, kind="stable")][:n]
    ratio = hands.canvas.devicePixelRatio()
    return [
        (QPoint(round(column / ratio), round(row / ratio)), picture[row, column])
        for row, column in places[chosen]
    ]


def colour(hands, name):
    return np.round(255 * np.asarray(hands.scene.segmentation.get_color(name))[:3]).astype(int)


def assert_seen(hands, name, pixel):
    assert name > 0
    np.testing.assert_allclose(colour(hands, name), pixel, atol=3)


@pytest.mark.parametrize(("angles", "perspective"), CASES)
def test_a_click_chooses_the_segment_that_is_seen(deep, angles, perspective):
    look(deep, angles, perspective)
    names = set()
    for spot, pixel in seen(deep, 6):
        deep.click_at(spot)
        assert_seen(deep, deep.project.active, pixel)
        names.add(deep.project.active)
    assert len(names) > 1, "test invalid"
    deep.click_at(QPoint(3, 3))
    assert deep.project.active == 0
    assert "no segment" in deep.step.message.text()


@pytest.mark.slow
@pytest.mark.parametrize(("angles", "perspective"), CASES[1:])
def test_shift_click_merges_two_segments_that_are_seen(deep, angles, perspective):
    look(deep, angles, perspective)
    session = deep.project.session
    places = seen(deep, 200)
    table = session.lut(dense=True).copy()
    for spot, _ in places:
        deep.click_at(spot)
        first = deep.project.active
        beside = np.searchsorted(
            deep.project.graph.ids, session.segments.neighbours(deep.project.id_of(first))
        )
        found = [
            other
            for other, pixel in places
            if any(np.abs(colour(deep, k) - pixel).max() <= 1 for k in beside)
            and np.abs(colour(deep, first) - pixel).max() > 3
        ]
        if found:
            break
    else:
        raise AssertionError("test invalid")
    n = deep.project.n_segments
    deep.click_at(found[0], "shift")
    assert deep.project.n_segments == n - 1
    assert deep.project.active == first
    (merged,) = np.unique(table[session.lut(dense=True) != table])
    assert merged in beside
    deep.press("undo")
    assert deep.project.n_segments == n


@pytest.mark.slow
def test_a_click_goes_through_hidden_segments(deep):
    look(deep, *VIEWS[1])
    (spot, _), *_ = seen(deep, 1)
    deep.click_at(spot)
    hidden = deep.project.active
    behind = deep.neighbour(hidden)
    deep.project.select(behind)
    deep.step.isolate.click()
    draw()
    for spot, pixel in seen(deep, 4):
        deep.project.select(0)
        deep.project.select(behind)
        deep.click_at(spot)
        assert deep.project.active == behind
        assert_seen(deep, behind, pixel)


@pytest.mark.slow
def test_a_drag_turns_the_volume_and_chooses_nothing(deep):
    look(deep, *VIEWS[1])
    (spot, _), *_ = seen(deep, 1)
    before = camera(deep.viewer).angles
    left = Qt.MouseButton.LeftButton
    QTest.mousePress(deep.canvas, left, pos=spot)
    for k in range(1, 8):  # QTest moves the mouse without a button
        at = QPointF(spot + QPoint(8 * k, 3 * k))
        held = Qt.KeyboardModifier.NoModifier
        move = QMouseEvent(
            QEvent.Type.MouseMove, at, QPointF(deep.canvas.mapToGlobal(at.toPoint())),
            Qt.MouseButton.NoButton, left, held,
        )  # fmt: skip
        QApplication.sendEvent(deep.canvas, move)
    QTest.mouseRelease(deep.canvas, left, pos=spot + QPoint(56, 21))
    deep.settle()
    assert camera(deep.viewer).angles != before
    assert deep.project.active == 0


@pytest.mark.slow
def test_seeds_of_two_groups_cut_what_is_seen(deep):
    look(deep, *VIEWS[1])
    project = deep.project
    name = deep.largest()[0]
    project.select(name)
    deep.step.isolate.click()
    draw()
    places = seen(deep, 300)
    spots = np.array([(spot.x(), spot.y()) for spot, _ in places])
    far = [places[int(np.argmin(spots[:, 0]))][0], places[int(np.argmax(spots[:, 0]))][0]]
    deep.click_at(far[0], "ctrl")
    deep.press("G")
    deep.click_at(far[1], "ctrl")
    a, b = deep.proofreader.seeds.placed
    assert (a.group, b.group) == (0, 1)
    assert {deep.name_at(a.index), deep.name_at(b.index)} == {name}
    assert deep.step.cut.commit.isEnabled(), deep.step.cut.message.text()
    deep.press("enter")
    assert deep.id_at(a.index) != deep.id_at(b.index)


@pytest.mark.slow
def test_k_detaches_the_superpixel_under_the_mouse(deep):
    look(deep, *VIEWS[3])
    before = deep.project.table().copy()
    for spot, pixel in seen(deep, 40):
        QTest.mouseMove(deep.canvas, spot)
        draw()
        deep.press("K")
        if not deep.project.session.history.can_undo:
            continue  # a segment of one superpixel
        changed = np.flatnonzero(deep.project.table() != before)
        assert len(changed)
        assert_seen(deep, int(before[changed[0]]), pixel)
        return
    raise AssertionError("test invalid")
