"""A pointer on the canvas that the keyboard moves and clicks with, for work without a mouse."""

# In its own file: a widget over the canvas, which knows nothing of sessions.

from __future__ import annotations

from contextlib import suppress
from typing import Any

from qtpy.QtCore import QEvent, QObject, QPoint, QPointF, QRect, Qt
from qtpy.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import QApplication, QWidget

from napari_agglo.widgets._napari import canvas_widget

_SIZE = 25  # pixels of the cross
_NONE = Qt.KeyboardModifier.NoModifier
_SHIFT, _CONTROL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
# An arrow key on a keypad, or on a Mac, has a modifier of its own.
_KEYPAD = Qt.KeyboardModifier.KeypadModifier
# By number: Qt's keys are whole numbers, and not every number that a keyboard sends is one of them.
_WAYS: dict[int, tuple[int, int]] = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}


class _Cross(QWidget):
    """A cross with a hole in its middle, white on black, to be seen on any image."""

    def __init__(self, canvas: QWidget) -> None:
        super().__init__(canvas)
        self.setObjectName("key pointer")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFixedSize(_SIZE, _SIZE)
        self.hide()

    def paintEvent(self, _: QPaintEvent | None) -> None:
        """Draw the cross."""
        painter = QPainter(self)
        middle, hole = _SIZE / 2, 3.0
        for width, colour in ((5, "#000000"), (2, "#ffffff")):
            edge = 2.5
            painter.setPen(QPen(QColor(colour), width))
            for a, b in ((edge, middle - hole), (middle + hole, _SIZE - edge)):
                painter.drawLine(QPointF(a, middle), QPointF(b, middle))
                painter.drawLine(QPointF(middle, a), QPointF(middle, b))


class KeyPointer(QObject):
    """The pointer of one viewer: it sends the canvas what a mouse would.

    It appears in the middle of the canvas when it is first used, and goes when the mouse moves. It
    looks at the events of the canvas only while it is visible: a click of the mouse costs nothing.
    """

    step, leap = 6, 48  # pixels that an arrow moves it with Shift, and with Ctrl + Shift

    def __init__(self, viewer: Any) -> None:
        super().__init__()
        self.active = False  # whether the arrow keys move it
        self.canvas = canvas_widget(viewer)  # None for layers without a window
        self._cross: _Cross | None = None
        self._control: QWidget | None = None  # had the focus before the canvas
        if self.canvas is not None:
            self._cross = _Cross(self.canvas)

    @property
    def place(self) -> QPoint:
        """The middle of the cross, in pixels of the canvas."""
        return QPoint() if self._cross is None else self._cross.geometry().center()

    def click(self, modifiers: Qt.KeyboardModifier = _NONE) -> None:
        """Click at the pointer; if it is hidden, show it instead, and focus the canvas."""
        canvas, cross = self.canvas, self._cross
        if canvas is None or cross is None:
            return
        focused = canvas.window().focusWidget()
        if focused is not None and focused is not canvas:
            self._control = focused
        canvas.setFocus(Qt.FocusReason.ShortcutFocusReason)
        if not cross.isVisible():
            self._show()
            return
        left, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
        self._send(QEvent.Type.MouseMove, none, none, _NONE)
        self._send(QEvent.Type.MouseButtonPress, left, left, modifiers)
        self._send(QEvent.Type.MouseButtonRelease, left, none, modifiers)

    def hide(self) -> None:
        """Hide the pointer, and leave the arrow keys to napari."""
        self.active = False
        self._give_way()

    def _give_way(self) -> None:
        with suppress(RuntimeError):  # the window is closed, and Qt has deleted the cross
            if self.canvas is not None and self._cross is not None:
                self.canvas.removeEventFilter(self)
                self._cross.hide()

    def eventFilter(self, _: QObject | None, event: QEvent | None) -> bool:
        """Move by arrow keys with Shift, go back by Escape with Shift; give way to the mouse."""
        if not self.active or event is None or self._cross is None:
            return False
        # Of Qt's own events: those that this object sends are not spontaneous.
        if event.type() == QEvent.Type.MouseMove and event.spontaneous():
            self._give_way()
        elif isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            way = _WAYS.get(event.key())
            steps = {_SHIFT: self.step, _SHIFT | _CONTROL: self.leap}
            step = steps.get(event.modifiers() & ~_KEYPAD)
            if way is not None and step is not None:
                self._move(way[0] * step, way[1] * step)
                return True
            if event.key() == Qt.Key.Key_Escape and event.modifiers() == _SHIFT:
                self._go_back()
                return True
        return False

    def _go_back(self) -> None:
        """Hide the cross, and give the focus back to the control that had it."""
        control, self._control = self._control, None
        self._give_way()
        with suppress(RuntimeError):  # Qt may have deleted the control
            if control is not None:
                control.setFocus(Qt.FocusReason.BacktabFocusReason)

    def _show(self) -> None:
        canvas, cross = self.canvas, self._cross
        if canvas is not None and cross is not None:
            self._put(canvas.rect().center() if cross.pos() == QPoint() else self.place)
            cross.show()
            cross.raise_()
            canvas.installEventFilter(self)

    def _move(self, x: int, y: int) -> None:
        self._put(self.place + QPoint(x, y))
        none = Qt.MouseButton.NoButton
        self._send(QEvent.Type.MouseMove, none, none, _NONE)  # the status bar follows

    def _put(self, middle: QPoint) -> None:
        canvas, cross = self.canvas, self._cross
        if canvas is not None and cross is not None:
            room = canvas.rect()
            x = min(max(middle.x(), room.left()), room.right())
            y = min(max(middle.y(), room.top()), room.bottom())
            box = QRect(cross.rect())
            box.moveCenter(QPoint(x, y))
            cross.move(box.topLeft())

    def _send(
        self,
        kind: QEvent.Type,
        button: Qt.MouseButton,
        pressed: Qt.MouseButton,
        modifiers: Qt.KeyboardModifier,
    ) -> None:
        canvas = self.canvas
        if canvas is not None:
            place = self.place
            there = QPointF(canvas.mapToGlobal(place))
            event = QMouseEvent(kind, QPointF(place), there, button, pressed, modifiers)
            QApplication.sendEvent(canvas, event)


def clicks(pointer: KeyPointer) -> dict[str, Any]:
    """Return the commands that click with the pointer, each with the modifiers of the mouse."""
    return {
        "click": pointer.click,
        "merge here": lambda: pointer.click(_SHIFT),
        "seed here": lambda: pointer.click(_CONTROL),
        "select here": lambda: pointer.click(_SHIFT | _CONTROL),
    }
