"""Proofreading without a mouse: all keys go to the control that has the keyboard's focus."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QPushButton
from widgets.proofread.conftest import modifiers
from widgets.proofread.test_gestures import pair
from windows import draw

ARROWS = {
    (1, 0): Qt.Key.Key_Right, (-1, 0): Qt.Key.Key_Left,
    (0, 1): Qt.Key.Key_Down, (0, -1): Qt.Key.Key_Up,
}  # fmt: skip


class Keys:
    """A keyboard in front of a window."""

    def __init__(self, hands):
        self.hands = hands
        self.window = hands.canvas.window()
        self.pointer = hands.proofreader.gestures.pointer

    def press(self, key, words=""):
        QTest.keyClick(self.window.focusWidget() or self.window, key, modifiers(words))
        draw()
        self.hands.settle()

    def go(self, index):
        """Move the pointer to a pixel of the volume: by leaps, then by steps."""
        spot = self.hands.spot(index)
        for held, step in (("ctrl shift", self.pointer.leap), ("shift", self.pointer.step)):
            away = spot - self.pointer.place
            for much, side in ((away.x(), (1, 0)), (away.y(), (0, 1))):
                arrow = ARROWS[side if much > 0 else (-side[0], -side[1])]
                for _ in range(abs(much) // step):
                    QTest.keyClick(self.window.focusWidget(), arrow, modifiers(held))
        draw()
        assert (self.pointer.place - spot).manhattanLength() < 2 * self.pointer.step, (
            "the pointer does not get there"
        )


def test_a_session_is_corrected_by_keys_alone(hands):
    keys = Keys(hands)
    project, session = hands.project, hands.project.session
    buttons = hands.step.findChildren(QPushButton)
    button = next(one for one in buttons if one.isVisible() and one.isEnabled())
    button.setFocus()
    assert not keys.pointer._cross.isVisible()
    keys.press(Qt.Key.Key_J)  # from the dock
    assert keys.pointer._cross.isVisible()
    assert keys.window.focusWidget() is hands.canvas
    assert project.active == 0, "the first press only shows where it is"

    a, b = pair(hands)
    keys.go(a)
    keys.press(Qt.Key.Key_J)
    assert project.active == hands.name_at(a)
    keys.go(b)
    keys.press(Qt.Key.Key_J, "shift")
    assert hands.id_at(a) == hands.id_at(b)

    # Seeds, a cut, undo, and the superpixel under the pointer.
    keys.press(Qt.Key.Key_J, "ctrl")
    keys.press(Qt.Key.Key_G)
    keys.go(a)
    keys.press(Qt.Key.Key_J, "ctrl")
    assert len(hands.proofreader.seeds.groups) == 2
    keys.press(Qt.Key.Key_Return)
    assert hands.id_at(a) != hands.id_at(b)
    keys.press(Qt.Key.Key_Z, "ctrl")
    assert hands.id_at(a) == hands.id_at(b)
    keys.press(Qt.Key.Key_K)
    assert hands.id_at(a) != hands.id_at(b)
    keys.press(Qt.Key.Key_Z, "ctrl")

    # Several at once.
    keys.press(Qt.Key.Key_Z, "ctrl")
    keys.press(Qt.Key.Key_J)
    keys.go(b)
    keys.press(Qt.Key.Key_J, "ctrl shift")
    assert project.selected == (hands.name_at(b),)
    keys.press(Qt.Key.Key_W)
    assert hands.id_at(a) == hands.id_at(b)
    assert session.history.can_undo

    # Back to the dock, and here again.
    keys.press(Qt.Key.Key_Escape, "shift")
    assert keys.window.focusWidget() is button
    assert not keys.pointer._cross.isVisible()
    keys.press(Qt.Key.Key_J)
    assert keys.window.focusWidget() is hands.canvas

    # The mouse takes over, and the arrows are napari's again once the session is closed.
    QTest.mouseMove(hands.canvas, hands.spot(a))
    draw()
    assert not keys.pointer._cross.isVisible()
    keys.press(Qt.Key.Key_J, "shift")
    assert keys.pointer._cross.isVisible()
    hands.proofreader.close_session()
    hands.settle()
    before = keys.pointer.place
    keys.press(Qt.Key.Key_Right, "shift")
    keys.press(Qt.Key.Key_J)
    assert not keys.pointer._cross.isVisible()
    assert keys.pointer.place == before


def test_the_pointer_stays_on_the_canvas(hands):
    keys = Keys(hands)
    keys.press(Qt.Key.Key_J)
    for _ in range(60):
        QTest.keyClick(hands.canvas, Qt.Key.Key_Left, modifiers("ctrl shift"))
    assert keys.pointer.place.x() == 0
