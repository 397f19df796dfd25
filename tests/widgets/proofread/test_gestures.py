"""Each gesture on the canvas, as a person makes it, and each refusal."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QMessageBox
from windows import camera, draw, text_overlay

RIGHT = Qt.MouseButton.RightButton


def inside(hands, name):
    """Return a pixel well inside a segment."""
    sizes = hands.project.graph.sizes
    superpixels = hands.superpixels_of(name)
    return hands.pixel_of(superpixels[np.argmax(sizes[superpixels])])


def pair(hands):
    """Return pixels in two segments that touch, the first of which is the largest."""
    first = hands.largest()[0]
    a, b = inside(hands, first), inside(hands, hands.neighbour(first))
    assert hands.id_at(a) != hands.id_at(b), "test invalid"
    return a, b


def apart(hands):
    """Return pixels in two segments that do not touch."""
    first = hands.largest()[0]
    session, project = hands.project.session, hands.project
    near = set(session.segments.neighbours(project.id_of(first)).tolist())
    for name in hands.largest(20)[1:]:
        if project.id_of(name) not in near:
            return inside(hands, first), inside(hands, name)
    raise AssertionError("test invalid")


def test_clicks_activate_merge_and_lock(hands, notices, qtbot):
    """Gestures one after another in one window, which takes longer to open than each."""
    # A click activates and a drag does not.
    first, second = hands.largest(2)
    a, b = inside(hands, first), inside(hands, second)
    hands.click(a)
    assert hands.project.active == hands.name_at(a) == first
    assert f"segment {hands.id_at(a)}" in hands.step.strip.text()
    # The canvas gets a few new letters at a time.
    qtbot.waitUntil(lambda: f"segment {hands.id_at(a)}" in text_overlay(hands.viewer).text)
    hands.drag(b, a)
    assert hands.project.active == first

    # Shift click merges and undo takes it back.
    a, b = pair(hands)
    active = hands.name_at(a)
    before = hands.project.table().copy()
    hands.click(a)
    hands.click(b, "shift")
    assert hands.name_at(b) == active == hands.project.active
    shown = hands.scene.segmentation
    assert int(shown.get_value(hands.project.placement.to_world(b), world=True)) == active
    hands.press("undo")
    np.testing.assert_array_equal(hands.project.table(), before)
    hands.press("redo")
    assert hands.name_at(b) == active

    # What does not touch is merged only if one says so.
    hands.press("undo")
    a, b = apart(hands)
    hands.click(a)
    hands.click(b, "shift")
    assert hands.id_at(a) != hands.id_at(b)
    assert "force" not in hands.step.message.text(), "a word of Python"
    (box,) = [one for one in QApplication.topLevelWidgets() if isinstance(one, QMessageBox)]
    QTest.keyClick(box, Qt.Key.Key_Return)
    hands.settle()
    assert hands.id_at(a) != hands.id_at(b), "Enter is no yes"
    hands.click(b, "shift")
    hands.answer("Merge anyway")
    assert hands.id_at(a) == hands.id_at(b)
    hands.press("undo")
    assert hands.id_at(a) != hands.id_at(b)

    # A locked segment is not merged and the refusal says why.
    a, b = pair(hands)
    hands.click(a)
    hands.press("H")
    assert hands.project.session.segments.is_locked(hands.id_at(a))
    assert "locked" in hands.step.details.title.text()
    hands.click(b)
    hands.click(a, "shift")
    assert hands.id_at(a) != hands.id_at(b)
    assert any("locked" in told for told in notices)
    hands.click(a)
    hands.press("H")
    assert not hands.project.session.segments.is_locked(hands.id_at(a))


def test_another_key_as_the_page_of_keys_says(hands, notices):
    page = Path(__file__).parents[3] / "docs" / "keys.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    names = {}
    exec(code, names)
    a, _ = pair(hands)
    locked = hands.project.session.segments.is_locked
    hands.click(a)
    hands.press("F")
    assert not locked(hands.id_at(a)), "test invalid"
    names["add_key"](hands.viewer, "F", "H")
    hands.press("F")
    assert locked(hands.id_at(a))
    hands.press("H")
    assert not locked(hands.id_at(a))
    hands.project.close_session()
    hands.press("F")
    assert notices == []


@pytest.mark.slow
def test_background_is_never_activated_or_merged(hands):
    a, _ = pair(hands)
    hands.click(a)
    outside = hands.spot((-6, 60))
    hands.click_at(outside, "shift")
    assert hands.project.active == hands.name_at(a)
    assert not hands.project.session.history
    assert "background" in hands.step.message.text()
    hands.click_at(outside, "ctrl")
    assert not hands.proofreader.seeds
    hands.click_at(outside)
    assert hands.project.active == 0


@pytest.mark.slow
def test_merging_without_an_active_segment_says_what_to_do(hands):
    a, _ = pair(hands)
    hands.click(a, "shift")
    assert not hands.project.session.history
    assert "click" in hands.step.message.text()


def test_selections_branches_and_other_layers(hands, crop):
    """Further gestures in one window."""
    # Right clicks select and one key merges them all.
    first = hands.largest()[0]
    session, project = hands.project.session, hands.project
    ids = session.segments.neighbours(project.id_of(first))
    names = [int(k) for k in np.searchsorted(project.graph.ids, ids)][:3]
    spots = [inside(hands, name) for name in names]
    hands.click(inside(hands, first))
    hands.click(spots[0], button=RIGHT)
    hands.click(spots[1], "ctrl shift")
    hands.click(spots[2], button=RIGHT)
    assert project.selected == tuple(names)
    hands.click(spots[2], button=RIGHT)
    assert project.selected == tuple(names[:2])
    hands.press("W")
    assert [hands.name_at(spot) for spot in spots[:2]] == [first, first]
    assert hands.name_at(spots[2]) == names[2]
    assert len(session.history) == 1
    assert project.selected == ()

    # Down and up the branch.
    hands.press("undo")
    a, _ = pair(hands)
    hands.click(a)
    whole = hands.superpixels_of(hands.project.active)
    n = hands.project.n_segments
    hands.press(",")
    assert hands.project.n_segments == n + 1
    assert hands.project.active == hands.name_at(a)
    hands.press(".")
    np.testing.assert_array_equal(hands.superpixels_of(hands.project.active), whole)

    # A key detaches the superpixel under the mouse.
    first = hands.largest()[0]
    superpixels = hands.superpixels_of(first)
    sizes = hands.project.graph.sizes[superpixels]
    taken = int(superpixels[np.argsort(sizes)[-2]])
    at = hands.pixel_of(taken)
    hands.move(at)
    hands.press("K")
    assert list(hands.superpixels_of(hands.name_at(at))) == [taken]

    # A click works whichever layer is selected unless it is painted.
    hands.press("undo")
    a, b = pair(hands)
    image = hands.viewer.add_image(crop.image)
    assert hands.viewer.layers.selection.active is image, "test invalid"
    hands.click(a)
    assert hands.project.active == hands.name_at(a)
    painted = hands.viewer.add_labels(np.zeros((120, 140), np.uint8), name="mine")
    painted.mode = "paint"
    hands.click(b)
    assert hands.project.active == hands.name_at(a)
    painted.mode = "pan_zoom"
    hands.click(b)
    assert hands.project.active == hands.name_at(b)
    # The keys go to the segmentation again, not to the other label layer.
    assert hands.viewer.layers.selection.active is hands.scene.segmentation


@pytest.mark.slow
def test_keys_of_napari_stay_napari_s(hands):
    bound = {str(key) for key in hands.viewer.keymap} | {
        str(key) for key in hands.scene.segmentation.keymap
    }
    theirs = {*"1234567EPFLZMXBV", "-", "=", "[", "]", "Space", "Ctrl+G", "Ctrl+E", "Ctrl+Y"}
    assert not bound & theirs
    assert not bound & {"Enter", "Escape"}  # ours only while there are seeds


@pytest.mark.slow
def test_undo_pressed_twenty_times_fast(hands):
    project = hands.project
    start = project.table().copy()
    done = 0
    while done < 20:
        first = hands.largest()[0]
        if done == 0:
            hands.click(inside(hands, first))
        hands.proofreader.commands.merge([hands.neighbour(first)])
        done += 1
    hands.settle()
    assert len(project.session.history) == 20
    end = project.table().copy()
    for _ in range(20):
        hands.press("undo", wait=False)
    hands.settle()
    np.testing.assert_array_equal(project.table(), start)
    hands.press("undo")  # one more is one too many, and harmless
    assert "undo" in hands.step.message.text()
    for _ in range(20):
        hands.press("redo", wait=False)
    hands.settle()
    np.testing.assert_array_equal(project.table(), end)


@pytest.mark.slow
def test_the_active_segment_follows_the_threshold(hands):
    a, _ = pair(hands)
    hands.click(a)
    for threshold in (0.1, 0.5, 0.25):
        hands.project.threshold = threshold
        hands.settle()
        assert hands.project.active == hands.name_at(a)


@pytest.mark.slow
def test_a_hidden_or_deleted_segmentation_is_not_edited_blindly(hands):
    a, b = pair(hands)
    hands.click(a)
    hands.scene.segmentation.visible = False
    hands.click(b, "shift")
    assert not hands.project.session.history
    assert "hidden" in hands.step.message.text()
    hands.viewer.layers.remove(hands.scene.segmentation)
    draw()
    hands.click(b, "shift")
    assert not hands.project.session.history
    assert hands.scene.segmentation is not None
    hands.click(b, "shift")
    assert hands.id_at(a) == hands.id_at(b)
    hands.press("undo")  # its keys work too
    assert hands.id_at(a) != hands.id_at(b)


@pytest.mark.slow
def test_a_click_moves_no_camera(hands):
    a, b = pair(hands)
    lens = camera(hands.viewer)
    before = lens.center, lens.zoom
    hands.click(a)
    hands.click(b, "shift")
    assert (lens.center, lens.zoom) == before
